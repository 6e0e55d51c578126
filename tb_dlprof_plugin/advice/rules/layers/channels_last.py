"""Convolutions change the layout of their images.

Kernels that change layouts (nchwToNhwc, nhwcToNchw) around cuDNN's convolutions on Tensor Cores.

Why it matters: Tensor Cores multiply images whose channels lie side by side in memory. PyTorch's own layout has them
apart, so cuDNN transposes the images before each convolution and its result afterwards. That costs as much as reading
and writing them twice more. Batch norms are faster with channels last too.

What to change: Put model and images into the memory format `channels_last`. Shapes and results stay the same.

When to leave it: Most of the time goes into depthwise or three-dimensional convolutions. Or images go through ops
without a kernel for channels last, which change the layout themselves: on a GPU group norms are such ops.

To confirm: Record again: the kernels nchwToNhwc and nhwcToNchw should be gone from the convolutions.

Read on:
- [PyTorch: channels last memory format](https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html)
- [NVIDIA: convolutional layers user's guide, tensor layouts](https://docs.nvidia.com/deeplearning/performance/dl-performance-convolutional/index.html)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.op_patterns import calls_of, ops_named
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import change, step_saving
from tb_dlprof_plugin.advice.text import milliseconds
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Role
from tb_dlprof_plugin.names.tensor_core_eligibility import is_convolution, is_depthwise, is_vector_op
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("WORTHWHILE_SAVING_PERCENT", "STEP_NOISE"),
    facts=("channels_last",),
)

TRANSPOSES_STAY = 0.2
"""Share of the time for changing layouts that the low end of a saving leaves: first layers and single ops without a
kernel for channels last still change them."""

BATCH_NORM_CHANNELS_LAST_HALF = (SpeedupRange(1.5, 2.0, 2.5), SpeedupRange(2.0, 3.0, 4.5))
BATCH_NORM_CHANNELS_LAST_FP32 = (SpeedupRange(1.0, 1.25, 1.6), SpeedupRange(1.4, 2.0, 2.6))
"""Batch norm, forward and backward, with channels last against channels first. Measured on an H200 with torch 2.11:
ResNet-50 (demo/recorded/resnet50 and tests/data/precision_pairs/torchvision/resnet50-channels-last, per
image) 1.8 and 3.0 in BF16, 2.4 and 2.9 in FP16, 1.24 and 2.0 on FP32 tensors; lab/planted's channels_last 2.0
and 4.4 in BF16."""

DEPTHWISE_SHARE_PERCENT = 10.0
"""Of the convolutions' kernel time: with more of it in depthwise convolutions, whose kernels may be slower with
channels last, the low end of the saving is 0."""

GROUP_NORM_AS_CONVOLUTIONS = 2.0
"""A group norm changes layouts for as long as so many convolutions: its copies are strided. With seven of them for
sixteen convolutions, channels last made a step 4 % longer (two trials of lab/trying/unseen/gpu_denoiser.py, H200, torch
2.11)."""

_GROUP_NORM, _CUDNN = "aten::native_group_norm", "aten::cudnn_convolution"
"""On a GPU the former makes its images contiguous first (aten/src/ATen/native/group_norm.cpp, torch 2.11): the layout
changes before it and after it, as around a convolution."""

_CODE = """model = model.to(memory_format=torch.channels_last)
images = images.to(memory_format=torch.channels_last)  # each batch
"""
_TRANSPOSES = "transpose"
_NORM = "batch_norm"


def check(context: RuleContext) -> Finding | Silent:
    """Fires where changing layouts takes a notable share of the step."""
    convolution = _launched_by(context, is_convolution)
    if not convolution.any():
        return Silent("The run has no convolutions of cuDNN's.", applicable=False)
    launches = convolution & _beside_tensor_cores(context) & _of_family(context, _TRANSPOSES)
    time = context.per_step(launches)
    share = percent(time, context.step_ns) or 0.0
    if not time:
        return Silent("No convolution on Tensor Cores changes the layout of its images.")
    norms = context.kernel_launches & _norms(context)
    half = norms & context.in_precision("fp16", "bf16")
    parts = (
        (half, BATCH_NORM_CHANNELS_LAST_HALF),
        (norms & ~half, BATCH_NORM_CHANNELS_LAST_FP32),
    )
    norm_time = context.per_step(norms)
    if share < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"Changing layouts around convolutions takes {milliseconds(time)} a step ({share:.1f} %).")
    depthwise = (
        percent(context.per_step(_depthwise(context)), context.per_step(convolution | _depthwise(context))) or 0.0
    )
    mostly_depthwise = depthwise > DEPTHWISE_SHARE_PERCENT
    stays = _around_group_norms(context)
    low_stays = 1.0 if stays else TRANSPOSES_STAY
    estimate = step_saving(
        context,
        Change() if mostly_depthwise else _changed(context, launches, low_stays, parts, "low"),
        _changed(context, launches, stays, parts, "expected"),
        _changed(context, launches, stays / 2, parts, "high"),
        f"Changing layouts takes {milliseconds(time)} a step; "
        + (f"{100 * (1 - stays):.0f} % of it" if stays else "it")
        + f" goes (at the low end {100 * low_stays:.0f} % stays)."
        + (" Group norms change layouts, too." if stays else "")
        + (f" {milliseconds(norm_time)} of batch norms become {_factors(parts)} times as fast." if norm_time else "")
        + (f" Depthwise convolutions take {depthwise:.0f} % and may get slower." if mostly_depthwise else ""),
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(
            f"Changing layouts around convolutions takes {milliseconds(time)} a step; with channels last the step "
            f"should be {estimate.percent:.1f} % shorter."
        )
    already = bool(context.facts.channels_last)
    return RULE.finding(
        title=f"Changing the layout of images around convolutions costs {milliseconds(time)} a step"
        + (", and batch norms are slower than with channels last" if norm_time else ""),
        seen=f"cuDNN's convolutions on Tensor Cores are surrounded by {milliseconds(time)} of layout changes a step "
        f"({share:.1f} %)."
        + (f" Batch norms take {milliseconds(norm_time)}." if norm_time else "")
        + (
            " The images of the model's input have their channels last, so the model changes it back."
            if already
            else ""
        ),
        readings=[
            Reading("Changing layouts around convolutions, per step", time, "ns"),
            Reading("Share of the step", share, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
            Reading("Batch norms, per step", norm_time, "ns"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=op_rows(context, launches),
        change=(
            "Find the op that gives images with channels first (a view, a permute, or weights that were not "
            "converted): convert the model too, with model.to(memory_format=torch.channels_last)."
            if already
            else "Put the model and each batch of images into the memory format channels_last. Shapes in the code stay "
            "as they are."
        ),
        code=_CODE,
        saving=estimate,
    ).but(confidence="low" if mostly_depthwise or stays else "medium")


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """The memory format of the images, as the hook saw it."""
    return "channels last" if candidate.profile.facts.channels_last and not base.profile.facts.channels_last else ""


def _changed(
    context: RuleContext,
    launches: Bools,
    stays: float,
    parts: tuple[tuple[Bools, tuple[SpeedupRange, SpeedupRange]], ...],
    end: str,
) -> Change:
    backward = context.in_role(Role.BACKWARD)
    faster = [
        (norms & (backward if direction else ~backward), 1.0 / getattr(factors[direction], end))
        for norms, factors in parts
        for direction in (0, 1)
    ]
    return change(context, (launches, stays), *faster)


def _around_group_norms(context: RuleContext) -> float:
    """Share of the layout changes that stay."""
    norms, convolutions = (
        np.count_nonzero(calls_of(context, ops_named(context, one.__eq__))) for one in (_GROUP_NORM, _CUDNN)
    )
    return min(GROUP_NORM_AS_CONVOLUTIONS * norms / convolutions, 1.0) if convolutions else 0.0


def _factors(parts: tuple[tuple[Bools, tuple[SpeedupRange, SpeedupRange]], ...]) -> str:
    factors = [factor for norms, both in parts if norms.any() for factor in both]
    return f"{min(f.low for f in factors):g} to {max(f.high for f in factors):g}"


def _launched_by(context: RuleContext, wanted: Callable[[str], bool]) -> Bools:
    ops = ops_named(context, wanted)
    op = context.view.launch_op
    launched: Bools = context.kernel_launches & take_or(ops, op, False)
    return launched


def _of_family(context: RuleContext, family: str) -> Bools:
    kernels, strings = context.profile.kernels, context.profile.strings
    named = np.array([strings[i] == family for i in kernels.family.tolist()], dtype=np.bool_)
    of_family: Bools = named[context.profile.launches.kernel]
    return of_family


def _beside_tensor_cores(context: RuleContext) -> Bools:
    """Launches of ops that also launch a Tensor Core kernel."""
    op = context.view.launch_op
    multiplies = np.zeros(len(context.profile.ops) + 1, dtype=np.bool_)
    multiplies[op[context.on_tensor_cores]] = True
    multiplies[-1] = False
    found: Bools = multiplies[op]
    return found


def _norms(context: RuleContext) -> Bools:
    """Launches of batch norms over images with channels first."""
    groups, strings = context.view.groups, context.profile.strings
    if context.facts.channels_last or not len(groups):
        return np.zeros(len(context.profile.launches), dtype=np.bool_)
    named = np.array([strings[i] == _NORM for i in groups.op_type.tolist()], dtype=np.bool_)
    group = context.view.launch_group
    norms: Bools = take_or(named, group, False) & _of_family(context, "normalization")
    return norms


def _depthwise(context: RuleContext) -> Bools:
    ops, strings, shapes = context.profile.ops, context.profile.strings, context.profile.input_shapes
    alone = np.array(
        [
            is_vector_op(strings[name]) or (is_convolution(strings[name]) and is_depthwise(strings[name], shapes[row]))
            for name, row in zip(ops.name.tolist(), ops.shapes.tolist(), strict=True)
        ],
        dtype=np.bool_,
    )
    op = context.view.launch_op
    depthwise: Bools = context.kernel_launches & take_or(alone, op, False) & _of_family(context, "convolution")
    return depthwise
