"""Mixed precision does not pay here.

Runs with matrix work for Tensor Cores that mixed precision would not make shorter, by the forecast. Also runs under
autocast that would be shorter in FP32.

Why it matters: Autocast makes kernels faster and the CPU slower: each layer's inputs and weights are cast by ops and
launches of their own. With FP16 a gradient scaler also makes the CPU wait. Where the CPU sets the pace, as in small
models and small batches, nothing is left of the gain.

What to change: Leave the run in FP32 (or allow TF32, which costs nothing), and first give the GPU more to do: a
larger batch, or fewer launches by `torch.compile` or CUDA graphs. Then forecast again.

When to leave it: Mixed precision is wanted for its memory, or to find out about its numbers.

To confirm: tb-dlprof predict --batch-size shows from which batch size on mixed precision pays.

Read on:
- [PyTorch: automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
- [PyTorch: CUDA graphs](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import work_rows
from tb_dlprof_plugin.advice.op_patterns import launched_in, ops_named
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rule_context import HALF_PRECISIONS, PRECISIONS
from tb_dlprof_plugin.advice.rules.precision.gradient_scaling import scaler_calls
from tb_dlprof_plugin.advice.rules.precision.precision_speedups import OpRatios, matrix_ops
from tb_dlprof_plugin.advice.savings import change, step_saving
from tb_dlprof_plugin.advice.text import NOTHING_ELIGIBLE, milliseconds, ms
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.precision_mode import precision_mode
from tb_dlprof_plugin.metrics.precision_signals import HALF
from tb_dlprof_plugin.model.profile import Bools, Floats
from tb_dlprof_plugin.model.tree import any_in_subtree, outermost
from tb_dlprof_plugin.names.ops import COPY
from tb_dlprof_plugin.names.tensor_core_eligibility import is_convolution, tensor_core_precisions
from tb_dlprof_plugin.planning import ForecastError
from tb_dlprof_plugin.planning.candidates import forecasts
from tb_dlprof_plugin.planning.forecast_text import LIMITS, SAME, gains, headline
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU, Need.TENSOR_CORES),
    thresholds=("WORTHWHILE_SAVING_PERCENT", "AMP_MATRIX_FROM_FP32", "STEP_NOISE"),
    facts=("precision", "batch_size"),
)

AMP_OTHER = SpeedupRange(1.0, 1.4, 2.0)
"""Kernels limited by memory, FP32 to half precision. 2: half the bytes, as in Daydream; 1: autocast keeps FP32."""

CASTS_ON_CPU = SpeedupRange(0.6, 1.0, 1.8)
"""What casts cost the CPU without the profiler, over what the replay says. From recorded runs that the CPU paces, AMP
against FP32, where the steps without the profiler are known: 0.75 to 0.88 for DistilBERT and T5
(tests/data/precision_pairs), 1.3 to 1.5 for MLP (demo/recorded)."""

ELIGIBLE_SHARE_PERCENT = 5.0
"""Of the step, in matrix kernels: with less, mixed precision is not expected to help."""

GPU_SETS_THE_PACE_PERCENT = 80.0
"""GPU utilization of the recorded step, from which additional CPU work does not lengthen the step: without the profiler
the CPU is even faster."""

_CAST_NODE = "ToCopyBackward"


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the forecast shows no gain, or where leaving autocast should shorten the step."""
    precisions = tensor_core_precisions(context.compute_capability)
    matrix = context.matrix_launches
    if not matrix.any():
        return Silent(NOTHING_ELIGIBLE, applicable=False)
    mode = precision_mode(context.view)
    if mode.precision in HALF:
        if mode.means != "autocast":
            return Silent("Half precision is used without autocast, so no casts could be left out.", applicable=False)
        return _in_use(context, matrix)
    return _not_in_use(context, matrix, "bf16" if "bf16" in precisions else "fp16")


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """FP32 where there was autocast."""
    before, after = precision_mode(base), precision_mode(candidate)
    return after.label if before.means == "autocast" and after.precision in ("fp32", "tf32") else ""


def _not_in_use(context: RuleContext, matrix: Bools, precision: str) -> Finding | Silent:
    eligible = context.per_step(matrix)
    share = percent(eligible, context.step_ns) or 0.0
    if share < ELIGIBLE_SHARE_PERCENT:
        return Silent(f"{context.eligible_words} take {share:.1f} % of the step.", applicable=False)
    if (context.facts.world_size or 1) > 1:
        return Silent("The forecast does not cover the other processes.", applicable=False)
    try:
        found = forecasts(context.view).of("bf16" if precision == "bf16" else "fp16")
    except ForecastError as error:
        return Silent(f"There is no forecast: {error}", applicable=False)
    if gains(found) or found.least_share < 1 - SAME:
        return Silent(f"Forecast: {headline(found)}")
    return RULE.finding(
        title=f"Mixed precision would not pay: {ms(found.predicted_ns)} a step instead of {found.base_ns / 1e6:.2f}",
        seen=f"{milliseconds(eligible)} of matrix kernels a step ({share:.0f} %) could run in half precision. "
        f"Forecast: {headline(found)} Casts would add {found.casts:.0f} kernels to a step.",
        readings=[
            Reading("Step now, without the profiler", found.base_ns, "ns"),
            Reading(f"Step in {found.target.precision.upper()}, by the forecast", found.predicted_ns, "ns"),
            Reading("Eligible kernel time per step", eligible, "ns"),
            Reading("Kernels that casts would add per step", found.casts, "count"),
        ],
        evidence=work_rows(context, matrix),
        change=f"Do not turn on autocast for speed, as the run is: {LIMITS[found.limited_by]}. "
        + (
            "First fix the loading of data."
            if found.limited_by == "dataloader"
            else "First give each launch more to do: a larger batch, torch.compile or CUDA graphs."
        ),
        saving="Nothing is to be changed: this finding saves the attempt.",
    ).but(severity="low")


def _in_use(context: RuleContext, matrix: Bools) -> Finding | Silent:
    busy = context.steps.gpu_utilization or 0.0
    if busy >= GPU_SETS_THE_PACE_PERCENT:
        return Silent(f"The GPU is busy {busy:.0f} % of the step: it sets the pace, and gains by half precision.")
    casts = _casts(context) | scaler_calls(context)
    launches = launched_in(context, casts) & context.view.selected_launches(context.selection)
    half = context.in_precision(*HALF_PRECISIONS) & context.kernel_launches & ~launches
    longer = _longer(context, half, matrix)
    ends = [change(context, (half, times), gone=casts) for times in longer]
    count = int(casts.sum()) / context.selection.count
    time = context.per_step(launches)
    doubt = CASTS_ON_CPU
    estimate = step_saving(
        context,
        ends[0],
        ends[1],
        ends[2],
        f"{count:.0f} casts and scaler calls a step go, with {milliseconds(time)} of kernels. "
        f"{milliseconds(context.per_step(half))} of half-precision kernels take "
        f"{_mean(context, half, longer[1]):.2f} times "
        f"as long in FP32 ({_mean(context, half, longer[2]):.2f} to {_mean(context, half, longer[0]):.2f}), as "
        f"measured ops "
        f"like them do. What the casts cost the CPU is known to a factor of {doubt.low:g} to {doubt.high:g}.",
    )
    # The profiler slows small calls most, and the dispatcher's share of a cast lies in no call.
    estimate = estimate.between(doubt.low * estimate.low_ns, doubt.high * estimate.high_ns)
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT or not estimate.low_ns:
        return Silent(
            f"Without autocast's {count:.0f} casts the step would be between {estimate.low_ns / 1e6:.2f} and "
            f"{ms(estimate.high_ns)} shorter, so mixed precision may well pay."
        )
    return RULE.finding(
        title=f"Mixed precision makes the step longer: its casts cost about {milliseconds(estimate.expected_ns)}",
        seen=f"Autocast and the gradient scaler make {count:.0f} calls a step, and matrix kernels take only "
        f"{milliseconds(context.per_step(matrix))} of {ms(context.step_ns)}. The GPU is busy {busy:.0f} % "
        f"of the "
        f"step: "
        "the CPU sets the pace.",
        readings=[
            Reading("Calls for casts and the scaler, per step", count, "count"),
            Reading("Matrix kernels, per step", context.per_step(matrix), "ns"),
            Reading("GPU utilization", busy, "percent"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=work_rows(context, launches),
        change="Run without autocast and gradient scaler; TF32 may be on. Or give each launch more to do: a larger "
        "batch, torch.compile or CUDA graphs.",
        code='with torch.autocast("cuda", enabled=False):  # or leave autocast and GradScaler out\n'
        "    loss = loss_fn(model(inputs), targets)\n",
        saving=estimate,
    ).but(
        confirm="Record a run in FP32 and open Compare: the step should be shorter, with fewer kernels.",
        group="precision",
    )


def _longer(context: RuleContext, half: Bools, matrix: Bools) -> list[Floats]:
    """Time of each launch in FP32 over its time now: at the low end of the saving, in the middle, at the high end."""
    factors = [np.ones(len(half)) for _ in range(3)]
    for launches, slower in ((half & matrix, thresholds.AMP_MATRIX_FROM_FP32), (half & ~matrix, AMP_OTHER)):
        for ends, factor in zip(factors, (slower.high, slower.expected, slower.low), strict=True):
            ends[launches] = factor
    facts, ops = context.facts, matrix_ops(context, half & matrix)
    names = [context.profile.strings[context.profile.ops.name[one.op]] for one in ops]
    rows = [np.flatnonzero(half & (context.view.launch_op == one.op)) for one in ops]
    tf32 = [bool(facts.cudnn_allow_tf32 if is_convolution(name) else facts.matmul_allow_tf32) for name in names]
    precisions = [PRECISIONS[int(context.launch_precision[mine[0]])] if len(mine) else "" for mine in rows]
    for ratio, mine in zip(OpRatios(context).to_full(ops, precisions, tf32), rows, strict=True):
        if ratio is None:
            continue
        for ends, shift in zip(factors, (1.0, 0.0, -1.0), strict=True):
            ends[mine] = max(ratio.at(shift), 1.0)
    return factors


def _mean(context: RuleContext, launches: Bools, factor: Floats) -> float:
    times = context.profile.launches.duration_ns[launches]
    return float((times * factor[launches]).sum() / max(times.sum(), 1))


def _casts(context: RuleContext) -> Bools:
    """Outermost calls that only cast between FP32 and half precision, and autograd's for their gradients."""
    profile, parent = context.profile, context.view.call_parent
    ops, _strings, calls = profile.ops, profile.strings, profile.calls
    copies = np.zeros(len(ops), dtype=np.bool_)
    for op in np.flatnonzero(ops_named(context, COPY.__eq__)).tolist():
        types = {dtype.precision for dtype in profile.dtypes_of(op)[:2]}
        copies[op] = "fp32" in types and bool(types & set(HALF))
    holds = any_in_subtree(copies[calls.op], context.view.call_end)
    casting = ops_named(context, lambda name: name in ("aten::to", "aten::_to_copy"))[calls.op]
    nodes = ops_named(context, lambda name: _CAST_NODE in name)[calls.op]
    wanted = holds & (casting | nodes) & context.view.selected_calls(context.selection)
    top: Bools = wanted & (outermost(wanted, parent) == np.arange(len(calls)))
    return top
