"""The setup of a run: the facts that distinguish runs. None is a fact that was not recorded."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.metrics.precision_mode import precision_mode
from tb_dlprof_plugin.metrics.precision_signals import HALF
from tb_dlprof_plugin.model.profile import CallKind
from tb_dlprof_plugin.profile_view import ProfileView

_TF32_FROM = (8, 0)
_HALF_PARAMETERS = ("cast_model", "apex_o3", "")
_PARTLY_PERCENT = 10.0
"""Of the matrix time; as in the label of `precision_mode`."""
_COMPILED_PREFIXES = ("Torch-Compiled Region", "CompiledFunction", "## Call CompiledFxGraph")


class RunSetup(msgspec.Struct, frozen=True):
    """The facts of one run.

    ``parameters`` is the number of the model's parameters: it distinguishes models of one class (ResNet-18 and
    ResNet-50 are both "ResNet"). ``precision`` is a value of `precision_of`. ``gpu`` is the GPU's name, or the CPU's
    where none was used; ``gpus`` the number that the process used.
    """

    model: str | None
    parameters: int | None
    precision: str | None
    batch_size: int | None
    workers: int | None
    gpu: str | None
    gpus: int
    processes: int | None
    compiled: bool | None
    channels_last: bool | None
    cudnn_benchmark: bool | None
    optimizer: str | None
    torch: str | None


def run_setup(view: ProfileView) -> RunSetup:
    """The facts of a profile's run."""
    profile, facts = view.profile, view.profile.facts
    used = profile.iterations.gpu_ids
    gpu = next((gpu.name for gpu in profile.system.gpus if gpu.id in used), None)
    return RunSetup(
        model=facts.model,
        parameters=facts.parameter_count,
        precision=precision_of(view),
        batch_size=facts.batch_size,
        workers=facts.dataloader.num_workers if facts.dataloader else None,
        gpu=gpu if profile.has_gpu else profile.system.cpu_model,
        gpus=len(used),
        processes=facts.world_size,
        compiled=_compiled(view),
        channels_last=facts.channels_last,
        cudnn_benchmark=facts.cudnn_benchmark,
        optimizer=facts.optimizer,
        torch=profile.system.torch_version,
    )


def precision_of(view: ProfileView) -> str | None:
    """The precision of the run as a key: `precision_mode` without its percentages, so that equal runs have one key.

    "amp-fp16" and "amp-bf16" for FP32 parameters computed with in half precision by whatever means, "fp16" and "bf16"
    for parameters in it. "tf32-partly" is an FP32 run with a part in TF32, "tf32-allowed" one whose switches both
    allowed TF32 and that has none. None if unknown.
    """
    mode, facts = precision_mode(view), view.profile.facts
    if mode.precision in HALF:
        return mode.precision if mode.means in _HALF_PARAMETERS else f"amp-{mode.precision}"
    if mode.precision == "fp32":
        if any(share.precision == "tf32" and share.percent >= _PARTLY_PERCENT for share in mode.shares):
            return "tf32-partly"
        able = view.compute_capability is not None and view.compute_capability >= _TF32_FROM
        if able and facts.matmul_allow_tf32 and facts.cudnn_allow_tf32:
            return "tf32-allowed"
    return mode.precision or None


def _compiled(view: ProfileView) -> bool | None:
    # The ops come first: the hook sees the model that it was passed, not the compiled one around or inside it.
    ops, strings = view.profile.ops, view.profile.strings
    names = {strings[i] for i in ops.name[(ops.kind == CallKind.OP) | (ops.kind == CallKind.ANNOTATION)].tolist()}
    if any(name.startswith(_COMPILED_PREFIXES) for name in names):
        return True
    return view.profile.facts.compiled
