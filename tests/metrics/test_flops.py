"""FLOPs of whole training steps: the six demo models on a CPU and on a GPU, against ``torch.utils.flop_counter``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from support.marks import short_of

from tb_dlprof_plugin import analyze, read_profiles
from tb_dlprof_plugin.metrics.flops import UNKNOWN, matrix_calls
from tb_dlprof_plugin.profile_view import ProfileView

torch = pytest.importorskip("torch")

from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count  # noqa: E402

from models import MODELS, Setting  # noqa: E402
from tb_dlprof_plugin.capture import profile  # noqa: E402
from training import Training  # noqa: E402

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
STEPS = 2
CONVOLUTIONS = ("cudnn_convolution", "mkldnn_convolution", "_slow_conv2d_forward")


def _flops_per_iteration(view: ProfileView) -> Counter[str]:
    """By op type as torch's counter names it; every call's FLOPs must be known."""
    profile_ = view.profile
    work = matrix_calls(view, view.selection())
    assert UNKNOWN not in work.flops
    result: Counter[str] = Counter()
    for op, flops in zip(profile_.calls.op[work.call].tolist(), work.flops.tolist(), strict=True):
        name = profile_.strings[profile_.ops.name[op]].removeprefix("aten::")
        if name in CONVOLUTIONS:
            name = "convolution"
        if "attention" in name:
            name = "attention_backward" if "backward" in name else "attention"
        result[name] += flops
    assert all(flops % len(profile_.iterations) == 0 for flops in result.values())
    return Counter({name: flops // len(profile_.iterations) for name, flops in result.items()})


def _counted(model: str, setting: Setting) -> Counter[str]:
    """What torch counts in forward and backward pass, on tensors without data."""
    spec = MODELS[model]
    with torch.device("meta"):
        network = spec.build(setting.image_shape, spec.num_classes)
        images = torch.zeros(setting.batch_size, *setting.image_shape)
        labels = torch.zeros(setting.batch_size, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        torch.nn.functional.cross_entropy(network(images), labels).backward()
    found: Counter[str] = Counter(
        {str(op).removeprefix("aten."): flops for op, flops in counter.get_flop_counts()["Global"].items()}
    )
    if found.pop("bmm", 0):
        # Without data torch computes attention by separate products. The fused op counts by torch's own formulas.
        blocks, heads = len(network.blocks), network.blocks[0].attention.heads
        tokens, dim = network.position.shape[1:]
        shape = (setting.batch_size, heads, tokens, dim // heads)
        found["attention"] = blocks * sdpa_flop_count(shape, shape, shape)
        found["attention_backward"] = blocks * sdpa_backward_flop_count(shape, shape, shape, shape)
    return found


@pytest.mark.parametrize("model", MODELS)
def test_a_step_on_the_gpu_has_the_flops_that_torch_counts(model: str) -> None:
    expected = _counted(model, MODELS[model].full)
    for precision in ("fp32", "tf32", "amp-fp16", "amp-bf16"):
        (stored,) = read_profiles(RECORDED / model / precision)
        assert _flops_per_iteration(ProfileView(stored.profile)) == expected, precision


@pytest.mark.parametrize("model", short_of(MODELS, {"mlp", "lenet", "custom"}))
def test_a_step_recorded_with_the_hook_on_the_cpu_has_the_flops_that_torch_counts(model: str, tmp_path: Path) -> None:
    spec = MODELS[model]
    training = Training(spec.build(spec.quick.image_shape, spec.num_classes), torch.device("cpu"), "fp32")
    images = torch.zeros(spec.quick.batch_size, *spec.quick.image_shape)
    labels = torch.zeros(spec.quick.batch_size, dtype=torch.long)
    with profile(tmp_path, training.model, schedule=(0, 1, STEPS, 1), wait=True) as recording:
        for _ in range(1 + STEPS):
            training.step(images, labels)
            recording.step()
    (stored,) = read_profiles(tmp_path)
    assert len(stored.profile.iterations) == STEPS
    assert _flops_per_iteration(ProfileView(stored.profile)) == _counted(model, spec.quick)


def test_inference_takes_the_size_of_a_convolution_from_the_next_op(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    _convolution(trace, 10, [8, 3, 32, 32], [16, 3, 5, 5])
    trace.op("aten::reshape", 28, 1, dims=[[16], []], types=["float", "ScalarList"])
    trace.op("aten::add_", 30, 5, dims=[[8, 16, 14, 14], [1, 16, 1, 1]], types=["float", "float"])
    # Two convolutions of one image: the second one's input is not the first one's output.
    _convolution(trace, 40, [8, 3, 32, 32], [3, 3, 5, 5])
    _convolution(trace, 60, [8, 3, 32, 32], [16, 3, 1, 1])
    trace.op("aten::relu", 80, 5, dims=[[8, 16, 32, 32]], types=["float"])
    work = matrix_calls(trace.view(), trace.view().selection())
    assert work.flops.tolist() == [2 * 8 * 14 * 14 * 16 * 75, UNKNOWN, 2 * 8 * 32 * 32 * 16 * 3]


@pytest.mark.parametrize(
    ("shapes_of_later_gradients", "products"),
    [
        ([[16, 3, 5, 5], [16]], 1),
        ([[16, 3, 5, 5], [16], [8, 3, 32, 32]], 2),
        ([[8, 3, 32, 32]], 1),
        ([[16]], None),
    ],
)
def test_a_gradient_counts_that_a_later_node_takes(
    new_trace, shapes_of_later_gradients: list[list[int]], products: int | None
) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    _backward(trace, 10, [[8, 16, 14, 14], [8, 3, 32, 32], [16, 3, 5, 5]])
    for place, shape in enumerate(shapes_of_later_gradients):
        at = 40 + 10 * place
        trace.backward("torch::autograd::AccumulateGrad", at, 8, 1)
        trace.op("torch::autograd::AccumulateGrad", at + 1, 6, tid=2, dims=[shape], types=["float"])
    work = matrix_calls(trace.view(), trace.view().selection())
    assert work.flops.tolist() == [UNKNOWN if products is None else products * 2 * 8 * 14 * 14 * 16 * 75]


def test_a_backward_convolution_outside_its_own_node_is_unknown(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.backward("CompiledFunctionBackward", 10, 60, 1)
    trace.op(
        "aten::convolution_backward", 20, 10, tid=2, dims=[[8, 16, 14, 14], [8, 3, 32, 32], [16, 3, 5, 5]],
        types=["float"] * 3,
    )  # fmt: skip
    work = matrix_calls(trace.view(), trace.view().selection())
    assert (work.flops.tolist(), work.bytes.tolist()) == ([UNKNOWN], [UNKNOWN])


def test_an_op_inside_another_counts_once(gpu_view: ProfileView, new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    heads = [[4, 6, 196, 64]] * 3
    trace.op("aten::scaled_dot_product_attention", 10, 50, dims=heads, types=["float"] * 3)
    trace.op("aten::_scaled_dot_product_efficient_attention", 12, 40, dims=heads, types=["float"] * 3)
    trace.op("aten::_efficient_attention_forward", 14, 30, dims=[[4, 196, 6, 64]] * 3, types=["float"] * 3)
    view = trace.view()
    work = matrix_calls(view, view.selection())
    assert work.flops.tolist() == [sdpa_flop_count(*((4, 6, 196, 64),) * 3)]
    inside = np.flatnonzero(work.of_call >= 0)
    assert len(inside) == 2


def _convolution(trace, at: float, image: list[int], weight: list[int]) -> None:
    trace.op("aten::conv2d", at, 18, dims=[image, weight], types=["float", "float"])
    trace.op("aten::cudnn_convolution", at + 2, 10, dims=[image, weight], types=["float", "float"])


def _backward(trace, at: float, dims: list[list[int]]) -> None:
    trace.backward("ConvolutionBackward0", at, 25, 1)
    trace.op("ConvolutionBackward0", at + 1, 23, tid=2, dims=[dims[0]], types=["float"])
    trace.op("aten::convolution_backward", at + 2, 20, tid=2, dims=dims, types=["float"] * 3)


def test_a_recorded_lstm_has_its_formulas_flops_forward_and_twice_that_backward() -> None:
    trace = Path(__file__).resolve().parents[1] / "traces" / "lstm.pt.trace.json.gz"
    view = ProfileView(analyze(trace))
    work = matrix_calls(view, view.selection())
    # 20 steps of 16 sequences; two layers of four gates of 128 with inputs of 64 and 128.
    forward = 2 * 20 * 16 * ((64 + 128) * 4 * 128 + (128 + 128) * 4 * 128)
    names = [view.profile.strings[view.profile.ops.name[op]] for op in view.profile.calls.op[work.call].tolist()]
    flops = {(name, value) for name, value in zip(names, work.flops.tolist(), strict=True) if "rnn" in name}
    assert flops == {("aten::_cudnn_rnn", forward), ("aten::_cudnn_rnn_backward", 2 * forward)}
