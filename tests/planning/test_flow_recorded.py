"""What is predicted of autocast from FP32 runs, against what it did in the same models' FP16 runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from support.marks import short_of

from tb_dlprof_plugin.metrics.amp_calls import cast_calls, scaler_calls
from tb_dlprof_plugin.model.profile import Ints, KernelKind, Role
from tb_dlprof_plugin.planning.dtype_flow import flow
from tb_dlprof_plugin.profile_view import ProfileView

Op = tuple[str, str]
"""A module and an op type."""
EXACT = (
    "alexnet", "lenet", "mlp", "resnet50", "vgg16", "torchvision/resnet18", "torchvision/resnet18-b8",
    "torchvision/resnet50-channels-last", "torchvision/densenet121", "torchvision/mobilenet_v3_large",
    "timm/mixer_s16_224",
)  # fmt: skip
FORWARD_EXACT = ("custom", "torchvision/vit_b_16", "timm/deit_tiny_patch16_224", "torchvision/convnext_tiny")
OFF_PERCENT = {
    "torchvision/efficientnet_b0": 8,
    "torchvision/shufflenet_v2_x1_0": 30,
    "torchvision/swin_t": 10,
    "transformers/bert": 12,
    "transformers/distilbert": 12,
    "transformers/gpt2": 16,
    "transformers/llama": 6,
    "transformers/t5": 35,
}
"""How far the number of forward casts may be off: tensors of one shape and different types are easily mistaken."""
RIGHT_PERCENT = {"transformers/t5": 86, "torchvision/shufflenet_v2_x1_0": 94}
"""T5's attention is torch's by single products, which computes in FP32 whatever it is given."""
ITERATION = 1
SHORT = {"lenet", "resnet50", "torchvision/mobilenet_v3_large", "custom", "transformers/bert", "torchvision/swin_t"}


def of_iteration(view: ProfileView) -> Ints:
    """Rows of the launches of kernels in one iteration, each with its op."""
    launches, kind = view.profile.launches, view.profile.kernels.kind
    known = (launches.call >= 0) & (view.launch_iteration == ITERATION)
    return np.flatnonzero(known & (kind[launches.kernel] == KernelKind.KERNEL))


def casts_of(amp: ProfileView) -> tuple[int, int]:
    """Kernels that cast in the forward and in the backward pass, without GradScaler's."""
    rows = of_iteration(amp)
    call = amp.profile.launches.call[rows]
    call = call[(cast_calls(amp) & ~scaler_calls(amp))[call]]
    role = amp.profile.ops.role[amp.profile.calls.op[call]]
    return int((role == Role.FORWARD).sum()), int((role == Role.BACKWARD).sum())


def predicted_casts(view: ProfileView) -> tuple[int, int]:
    casts = [cast for op in flow(view, ITERATION).ops for cast in op.casts]
    return len(casts), sum(cast.differentiated for cast in casts)


def forward_ops(view: ProfileView) -> list[tuple[Op, int]]:
    """The op of the model and the row of each launch of the forward pass."""
    groups, strings = view.groups, view.profile.strings
    found = []
    for row in of_iteration(view).tolist():
        group = int(view.launch_group[row])
        if group >= 0 and groups.role[group] in (Role.FORWARD, Role.OTHER):
            found.append(((strings[groups.module[group]], strings[groups.op_type[group]]), row))
    return found


def ran_in_half(amp: ProfileView) -> dict[Op, bool]:
    """Whether most kernel time of each forward op read FP16, casts left out."""
    profile = amp.profile
    own = cast_calls(amp) | scaler_calls(amp)
    times: dict[Op, list[int]] = defaultdict(lambda: [0, 0])
    for op, row in forward_ops(amp):
        inner = int(amp.launch_op[row])
        if inner < 0 or own[profile.launches.call[row]]:
            continue
        floats = [dtype.name for dtype in profile.dtypes_of(inner) if dtype.name in ("float", "c10::Half")]
        if floats:
            half = floats[0] == "c10::Half" if "batch_norm" in op[1] else set(floats) == {"c10::Half"}
            times[op][half] += int(profile.launches.duration_ns[row])
    return {op: half > single for op, (single, half) in times.items()}


@pytest.mark.parametrize("model", short_of(EXACT, SHORT & set(EXACT)))
def test_as_many_casts_are_predicted_as_autocast_makes(recorded: Callable[[str], ProfileView], model: str) -> None:
    made = casts_of(recorded(f"{model}/amp-fp16"))
    assert sum(made) > 10
    assert predicted_casts(recorded(f"{model}/fp32")) == made


@pytest.mark.parametrize("model", short_of(FORWARD_EXACT, SHORT & set(FORWARD_EXACT)))
def test_as_many_forward_casts_are_predicted_as_autocast_makes(
    recorded: Callable[[str], ProfileView], model: str
) -> None:
    forward, backward = casts_of(recorded(f"{model}/amp-fp16"))
    predicted = predicted_casts(recorded(f"{model}/fp32"))
    assert predicted[0] == forward
    # Attention casts gradients of its own in the backward pass.
    assert 0.8 * backward < predicted[1] <= backward


@pytest.mark.parametrize("model", short_of(OFF_PERCENT, SHORT & set(OFF_PERCENT)))
def test_other_models_casts_are_predicted_within_bounds(recorded: Callable[[str], ProfileView], model: str) -> None:
    made, _ = casts_of(recorded(f"{model}/amp-fp16"))
    predicted, _ = predicted_casts(recorded(f"{model}/fp32"))
    assert abs(predicted - made) <= OFF_PERCENT[model] / 100 * made


@pytest.mark.parametrize("model", short_of([*EXACT, *FORWARD_EXACT, *OFF_PERCENT], SHORT))
def test_most_forward_time_is_predicted_in_the_right_precision(
    recorded: Callable[[str], ProfileView], model: str
) -> None:
    view = recorded(f"{model}/fp32")
    strings = view.profile.strings
    halves = flow(view, ITERATION).backward_half
    predicted = {(strings[module], strings[op]): half for (module, op), half in halves.items()}
    truth = ran_in_half(recorded(f"{model}/amp-fp16"))
    right = known = whole = 0
    for op, row in forward_ops(view):
        time = int(view.profile.launches.duration_ns[row])
        whole += time
        if op in truth:
            known += time
            right += time * (predicted.get(op, False) == truth[op])
    assert known > 0.88 * whole
    assert right >= RIGHT_PERCENT.get(model, 96) / 100 * known
