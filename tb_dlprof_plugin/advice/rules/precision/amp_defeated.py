"""Part of a mixed-precision run stays in FP32.

Matrix products, convolutions and attention on FP32 tensors, with the casts around them. The run's other matrix work is
in half precision.

Why it matters: One layer in FP32 takes as long as many in half precision: FP32 multiplies without Tensor Cores, or at
half the rate with TF32. Its inputs and gradients are cast back and forth. It happens to layers outside the autocast
region and under `autocast(enabled=False)`. Autocast does not reach the backward pass of custom autograd Functions,
either.

What to change: Move the layer into the autocast region, and take `enabled=False` and `.float()` away from it. Decorate
custom Functions with `torch.amp.custom_fwd` and `torch.amp.custom_bwd`. Losses and norms stay in FP32: autocast sees to
it.

When to leave it: The layer needs FP32's precision: check the loss without it.

Read on:
- [PyTorch: automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
- [PyTorch: autocast and custom autograd Functions](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#autocast-and-custom-autograd-functions)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import confirmed_by_kernels, work_rows
from tb_dlprof_plugin.advice.op_patterns import ops_named
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.precision.precision_speedups import OpRatios, matrix_ops
from tb_dlprof_plugin.advice.savings import Saving, change, step_saving
from tb_dlprof_plugin.advice.text import listed, milliseconds
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.precision_mode import precision_mode
from tb_dlprof_plugin.metrics.precision_signals import HALF
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Floats, Role
from tb_dlprof_plugin.model.shapes import Shape, shape_at, tensors_of
from tb_dlprof_plugin.names.ops import COPY
from tb_dlprof_plugin.profile_view import op_name

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    without_steps=True,
    thresholds=("WORTHWHILE_SAVING_PERCENT", "AMP_MATRIX_FROM_FP32", "AMP_MATRIX_FROM_TF32", "STEP_NOISE"),
    group="precision",
)

_CASTS = frozenset({COPY})
_CAREFUL = frozenset(
    f"aten::{name}"
    for name in (
        *("mean", "pow", "rsqrt", "var", "var_mean", "std", "sum", "norm", "linalg_vector_norm", "exp", "log"),
        *("native_layer_norm", "native_group_norm", "native_batch_norm", "cudnn_batch_norm", "_fused_rms_norm"),
        *("_softmax", "_log_softmax", "nll_loss_forward", "nll_loss2d_forward", "logsumexp", "mse_loss", "cumsum"),
        *("binary_cross_entropy_with_logits", "smooth_l1_loss", "huber_loss", "cos", "sin"),
    )
)
"""Ops that need FP32, as autocast's own list of them has it."""
_LARGE = 100_000
"""Elements from which a cast takes longer than the shortest kernel."""
_CODE = {
    "bf16": 'with torch.autocast("cuda", dtype=torch.bfloat16):\n    x = layer(x)  # not layer(x.float())\n',
    "fp16": 'with torch.autocast("cuda", dtype=torch.float16):\n    x = layer(x)  # not layer(x.float())\n',
}


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the FP32 part of a mixed-precision run would take notably less in half precision."""
    mode = precision_mode(context.view)
    half = next((share.precision for share in mode.shares if share.precision in HALF), "")
    if not half and not context.facts.autocast:
        return Silent("The run does not use mixed precision.", applicable=False)
    if mode.precision not in (*HALF, "mixed") and not context.facts.autocast:
        return Silent("Most matrix work is in FP32: half precision is the exception here.", applicable=False)
    half = half or ("fp16" if context.facts.autocast_dtype == "float16" else "bf16")
    matrix = context.matrix_launches
    # Attention kernels that make FP32 results of three TF32 products have FP32 inputs.
    full = matrix & context.in_precision("fp32", "tf32", "3xtf32")
    time = context.per_step(full)
    share, whole = _share(context, full)
    eligible = context.per_step(matrix)
    of_matrix = percent(time, eligible) or 0.0
    trips = _round_trips(context)
    trip_share, _ = _share(context, trips)
    if max(share, trip_share) < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"Matrix work on FP32 tensors takes {milliseconds(time)} {context.a_step} ({share:.1f} %).")
    casts = _casts(context, full) | trips
    stays = _stays(context, full, half)
    estimate: Saving | str = context.saving_unknown or step_saving(
        context,
        change(context, (full, stays[0])),
        change(context, (full, stays[1]), (casts, 0.0)),
        change(context, (full, stays[2]), (casts, 0.0)),
        f"{milliseconds(time)} of FP32 matrix kernels a step should take "
        f"{milliseconds(_after(context, full, stays[1]))} in {half.upper()}, as measured ops like them do (within one "
        f"standard deviation), and {milliseconds(context.per_step(casts))} of casts to FP32 and back go.",
    )
    if isinstance(estimate, Saving) and estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(
            f"Matrix work on FP32 tensors takes {milliseconds(time)} a step; in {half.upper()} the step should be "
            f"{estimate.percent:.1f} % shorter."
        )
    in_fp32 = share >= thresholds.WORTHWHILE_SAVING_PERCENT
    names = _names(context, full if in_fp32 else trips)
    runs = f"run{'s' if len(names) == 1 else ''}"
    finding = RULE.finding(
        title=f"Mixed precision is on, but {listed(names)} {runs} in FP32: {milliseconds(time)} {context.a_step}"
        if in_fp32
        else f"Tensors go to FP32 and back: {milliseconds(context.per_step(trips))} of casts {context.a_step}",
        seen=(
            f"{milliseconds(time)} of matrix kernels {context.a_step} ({share:.0f} %, {of_matrix:.0f} % of all "
            f"matrix kernels) have FP32 inputs while others have {half.upper()}: {listed(names, 5)}."
            if in_fp32
            else f"{listed(names, 5)}: tensors go from {half.upper()} to FP32, and the next layer casts them back."
        )
        + (f" Casts to FP32 and back take {milliseconds(context.per_step(casts))}." if casts.any() else ""),
        readings=[
            Reading("Matrix kernels on FP32 tensors, per step", time, "ns"),
            Reading(f"Share of {whole}", share, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
            Reading("Share of all matrix kernels", of_matrix, "percent"),
            Reading("Casts to FP32 around them, per step", context.per_step(casts), "ns"),
        ],
        evidence=work_rows(context, full | casts),
        change=f"Let {'what launches ' if context.by_kernels else ''}{listed(names, 5)} run in {half.upper()}: "
        f"{_why(context, full)}"
        if in_fp32
        else f"Leave out the casts in {listed(names, 5)}: what follows in {half.upper()} has their precision anyway.",
        code=_CODE[half],
        saving=estimate,
    ).but(confirm=f"Record again: on the Tensor Cores page these ops should use Tensor Cores in {half.upper()}.")
    return confirmed_by_kernels(context, finding, half.upper())


def _share(context: RuleContext, launches: Bools) -> tuple[float, str]:
    """Of the step, percent; where no steps are known, of the kernels' time."""
    if context.saving_unknown:
        return context.kernel_share(launches), "the kernels' time"
    return percent(context.per_step(launches), context.step_ns) or 0.0, "the step"


def _stays(context: RuleContext, full: Bools, half: str) -> Sequence[Floats]:
    """What stays of the time of each launch at the low end, in the middle and at the high end."""
    stays = [np.ones(len(full)) for _ in range(3)]
    on_tensor_cores = full & context.in_precision("tf32")
    for launches, factor in (
        (full & ~on_tensor_cores, thresholds.AMP_MATRIX_FROM_FP32),
        (on_tensor_cores, thresholds.AMP_MATRIX_FROM_TF32),
    ):
        for ends, speed in zip(stays, (factor.low, factor.expected, factor.high), strict=True):
            ends[launches] = 1 / speed
    ops = matrix_ops(context, full & ~on_tensor_cores)
    for one, ratio in zip(ops, OpRatios(context).to_half(ops, half), strict=True):
        if ratio is None:
            continue
        mine = full & (context.view.launch_op == one.op) & ~on_tensor_cores
        for ends, shift in zip(stays, (1.0, 0.0, -1.0), strict=True):
            ends[mine] = min(ratio.at(shift), 1.0)
    return stays


def _after(context: RuleContext, launches: Bools, stays: Floats) -> int:
    return round(float((context.profile.launches.duration_ns * stays)[launches].sum()) / context.selection.count)


def _casts(context: RuleContext, full: Bools) -> Bools:
    """Casts from half precision to FP32 of what the FP32 matrix ops read, and back of their gradients."""
    ops, _strings = context.profile.ops, context.profile.strings
    row, group = context.view.launch_op, context.view.launch_group
    shapes: set[Shape] = set()
    for op in np.unique(row[full & (row >= 0)]).tolist():
        shapes |= {shape for shape in tensors_of(context.profile.shapes_of(op)) if len(shape) > 1}
    elements = {math.prod(shape) for shape in shapes}
    wanted = np.zeros(len(ops) + 1, dtype=np.bool_)
    for op in np.flatnonzero(ops_named(context, _CASTS.__contains__)).tolist():
        types = [dtype.precision for dtype in context.profile.dtypes_of(op)[:2]] or [""]
        shape = shape_at(context.profile.shapes_of(op), 0)
        if shape is None or len(types) < 2 or math.prod(shape) not in elements:
            continue
        forward = types[0] == "fp32" and types[1] in HALF and ops.role[op] != Role.BACKWARD
        backward = types[1] == "fp32" and types[0] in HALF and ops.role[op] == Role.BACKWARD
        wanted[op] = forward or backward
    casts: Bools = context.kernel_launches & (group >= 0) & wanted[row]
    return casts


def _round_trips(context: RuleContext) -> Bools:
    """Casts to FP32 that the model asks for, and the next layer's casts back, forward and backward.

    Modules that average, exponentiate or compute a loss do so in FP32 for good reason: their casts do not count.
    """
    ops, _strings, view = context.profile.ops, context.profile.strings, context.view
    row, group, call = view.launch_op, view.launch_group, context.profile.launches.call
    copies = context.kernel_launches & take_or(ops_named(context, _CASTS.__contains__), row, False)
    if not copies.any():
        return copies
    careful = np.unique(ops.module[ops_named(context, _CAREFUL.__contains__)])
    top = context.profile.calls.op[np.maximum(view.call_top[np.maximum(call, 0)], 0)]
    explicit = ops_named(context, lambda name: name == "aten::to")[top] & ~np.isin(ops.module[row], careful)
    matrix = take_or(view.groups_with_matrix_op, group, False)
    backward = context.in_role(Role.BACKWARD)
    to_full, to_half, size = np.zeros_like(copies), np.zeros_like(copies), np.zeros(len(copies), dtype=np.int64)
    for op in np.unique(row[copies]).tolist():
        types = [dtype.precision for dtype in context.profile.dtypes_of(op)[:2]] or [""]
        shape = shape_at(context.profile.shapes_of(op), 0)
        mine = copies & (row == op)
        size[mine] = math.prod(shape) if shape else 0
        to_full[mine] = types[0] == "fp32" and types[-1] in HALF
        to_half[mine] = types[-1] == "fp32" and types[0] in HALF
    out = explicit & ~backward & to_full & (size >= _LARGE)
    back = matrix & ~backward & to_half & np.isin(size, size[out])
    modules = ops.module[row]
    # Each cast of the forward pass is turned round in the backward pass.
    gradients = backward & (
        (to_half & np.isin(modules, modules[out])) | (to_full & matrix & np.isin(modules, modules[back]))
    )
    trips: Bools = out | back | (gradients & np.isin(size, size[out]))
    return trips if back.any() else np.zeros_like(copies)


def _names(context: RuleContext, full: Bools) -> list[str]:
    """The ops of the model by falling FP32 time; the kernels where no op was recorded."""
    if context.by_kernels:
        return [row.label for row in work_rows(context, full)]
    groups, strings = context.view.groups, context.profile.strings
    rows = full & (context.view.launch_group >= 0)
    time = np.bincount(
        context.view.launch_group[rows], weights=context.profile.launches.duration_ns[rows], minlength=len(groups)
    )
    order = [group for group in np.argsort(-time, kind="stable").tolist() if time[group] > 0]
    names = [op_name(strings[groups.module[group]], strings[groups.op_type[group]]) for group in order]
    return list(dict.fromkeys(names))


def _why(context: RuleContext, full: Bools) -> str:
    backward = context.in_role(Role.BACKWARD)
    if not (full & ~backward).any():
        return (
            "only their backward pass is in FP32, as that of a custom autograd Function without torch.amp.custom_bwd "
            "is."
        )
    return (
        "they lie outside the autocast region, or under autocast(enabled=False). Under autocast their FP32 inputs "
        "would be cast by themselves."
    )
