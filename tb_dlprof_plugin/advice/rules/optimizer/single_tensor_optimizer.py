"""The optimizer steps parameter by parameter.

Optimizer steps that launch kernels of their own for each parameter. Ops over lists of parameters, or a fused one, would
launch few.

Why it matters: Each parameter costs the CPU several launches. Most parameters are so small that their kernels are over
before the next one is launched.

What to change: Pass `fused=True` to the optimizer where it has that, else `foreach=True`. In an optimizer of your own
use `torch._foreach_*` ops.

When to leave it: Memory is short: ops over lists hold as much memory again as the parameters. Fused ones do not.

To confirm: Record again: the optimizer's step should hold a few aten::_fused_* or aten::_foreach_* ops.

In other tools:
- PyTorch: OptimizerSingleTensorPattern
- torch-tb-profiler: Optimizer recommendation: FusedAdam

Read on:
- [PyTorch: optimizer algorithms](https://docs.pytorch.org/docs/stable/optim.html#algorithms)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import of_recorded_step, op_rows
from tb_dlprof_plugin.advice.optimizer_work import OptimizerWork, optimizer_work, passes_over_parameters
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import shorter_step
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.profile import Floats
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("WORTHWHILE_SAVING_PERCENT", "FUSED_PASSES"),
    facts=("optimizer",),
)

SINGLE_TENSOR_KERNELS = 20
"""Kernels per optimizer step that each change one tensor. torch.profiler's OptimizerSingleTensorPattern has no limit;
fewer cannot cost much."""

OPTIMIZER_CPU_LEFT = SpeedupRange(0.05, 0.15, 0.4)
"""Share of the CPU's time in the optimizer's step that is left if one op goes through all parameters. Ours: recorded
steps over lists or fused take 0.2 to 0.6 ms for 6 to 100 parameters, those parameter by parameter 0.1 ms for each."""

_SHORT_NS, _SHORT_LEFT = 5_000, 0.3
"""A kernel below this time, and what is left of it. Ours: the shortest kernels take 1 to 2 us whatever they do."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where most of the optimizer's kernels change one tensor each and fewer launches pay."""
    work = optimizer_work(context.view, context.selection)
    if not work.kernels.any():
        return Silent("No kernel was launched in an optimizer's step.", applicable=False)
    count = context.selection.count
    number, every = int(work.single.sum()) // count, int(work.kernels.sum()) // count
    if number < SINGLE_TENSOR_KERNELS or 2 * number < every:
        return Silent(f"{number} of {every} kernels of the optimizer's step change one tensor each.")
    time = context.per_step(work.single)
    left, kernels = OPTIMIZER_CPU_LEFT, _kernels_left(context, work)
    remain = percent(float((kernels * context.profile.launches.duration_ns)[work.single].sum()) / count, time) or 0.0
    estimate = shorter_step(
        context,
        Change(work.steps, left.high),
        Change(work.steps, left.expected, kernels),
        Change(work.steps, left.low, np.where(work.single, kernels / 2, 1.0)),
        f"{number} kernels take {ms(time)}, of which {remain / 2:.0f} to 100 % are left, expected "
        f"{remain:.0f} %. The CPU keeps {100 * left.low:.0f} to {100 * left.high:.0f} % of the "
        f"{ms(work.cpu_ns)} that it takes for the step as recorded.",
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(
            f"{number} kernels of the optimizer's step change one tensor each, but the step should get only "
            f"{estimate.percent:.1f} % shorter without them."
        )
    optimizer = work.optimizer or context.facts.optimizer or "The optimizer"
    fusable = optimizer in thresholds.FUSED_PASSES
    return RULE.finding(
        title=f"{optimizer} steps parameter by parameter: {number} kernels and {ms(work.cpu_ns, 1)} of the CPU "
        "in each step",
        seen=f"Its step launches {number} kernels that change one tensor each, {time / number / 1e3:.1f} us on "
        f"average. The CPU is in it for {of_recorded_step(context, work.cpu_ns)}.",
        readings=[
            Reading("Kernels on one tensor each per step", number, "count", float(SINGLE_TENSOR_KERNELS)),
            Reading("Their GPU time per step", time, "ns"),
            Reading("CPU time of the optimizer's step", work.cpu_ns, "ns"),
            Reading("CPU time, of the recorded step", percent(work.cpu_ns, context.recorded_step_ns), "percent"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=op_rows(context, work.single),
        change=f"Pass fused=True to {optimizer}."
        if fusable
        else "Pass foreach=True to the optimizer, or use torch._foreach_* ops over all parameters in its step.",
        code=f"optimizer = torch.optim.{optimizer}(model.parameters(), ..., fused=True)\n"
        if fusable
        else "optimizer = ...(model.parameters(), ..., foreach=True)\n",
        saving=estimate,
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Lists or a fused step where most kernels were for one tensor each."""
    before, after = (optimizer_work(view, view.selection()) for view in (base, candidate))
    if not _mostly_single(before) or _mostly_single(after):
        return ""
    return "fused optimizer" if after.fused.any() else "optimizer over lists of parameters"


def _mostly_single(work: OptimizerWork) -> bool:
    return 2 * int(work.single.sum()) >= int(work.kernels.sum())


def _kernels_left(context: RuleContext, work: OptimizerWork) -> Floats:
    """Per launch the share of its time that is left: of a fused step by the elements it moves, of ops over lists all.

    Short kernels take as long as it takes to start them, which few kernels over many parameters do less often.
    """
    fused, passes = thresholds.FUSED_PASSES.get(work.optimizer), passes_over_parameters(context.view, work.single)
    ratio = min(1.0, fused / passes) if fused and passes else 1.0
    short = context.profile.launches.duration_ns < _SHORT_NS
    return np.where(work.single, np.where(short, _SHORT_LEFT, 1.0) * ratio, 1.0)
