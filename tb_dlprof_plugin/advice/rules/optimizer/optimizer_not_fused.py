"""The optimizer is not fused.

A step of Adam, AdamW, SGD or Adagrad by ops over lists of parameters (`foreach`). Its fused version would save a
notable part of the training step.

Why it matters: Each op over lists reads and writes all parameters once more: a step of AdamW moves 21 times as many
elements as there are parameters, its fused version 7 times. The time is that of moving memory.

What to change: Pass `fused=True` to the optimizer.

When to leave it: The parameters are of a type or on a device that the fused version does not take. Or hooks need the
single ops.

To confirm: Record again: instead of aten::_foreach_* ops the optimizer's step should hold an aten::_fused_* op.

In other tools:
- torch-tb-profiler: Optimizer recommendation: FusedAdam

Read on:
- [PyTorch: optimizer algorithms](https://docs.pytorch.org/docs/stable/optim.html#algorithms)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.optimizer_work import optimizer_work, passes_over_parameters
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import shorter_step
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("FUSED_PASSES",),
    confidence="high",
    facts=("optimizer",),
)

FUSED_CPU_OPS = 6.0
"""A step of n ops over lists takes the CPU (this + n) / (this + 1) times as long as a fused one: recorded steps of
AdamW take 0.3 to 0.5 ms fused and 0.6 to 1.3 ms over lists, those of SGD without momentum as long either way
(tests/data/planted)."""

FUSED_OPTIMIZER_SAVING_PERCENT = 3.0
"""Of the step without the profiler: more than step times of one run vary by."""

_RATE = {"low": 1.25, "high": 0.85}
"""How unlike the rates may be at which the two versions move memory."""
_CPU = {"low": 1.4, "high": 0.7}
"""How far off the CPU's time may be."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the passes that a fused step saves are a notable part of the step."""
    work = optimizer_work(context.view, context.selection)
    if not work.kernels.any():
        return Silent("No kernel was launched in an optimizer's step.", applicable=False)
    time = context.per_step(work.lists)
    if not time or context.per_step(work.fused) > time:
        return Silent("The optimizer's step does not go over lists of parameters.")
    fused_passes = thresholds.FUSED_PASSES.get(work.optimizer)
    if fused_passes is None:
        return Silent(f"{work.optimizer or 'The optimizer'} has no fused version in PyTorch.")
    passes = passes_over_parameters(context.view, work.lists)
    if passes is None:
        return Silent("The data types of the ops' inputs were not recorded.", applicable=False)
    ratio = fused_passes / passes
    share = percent(time, context.step_ns) or 0.0
    if ratio >= 1:
        return Silent(f"{work.optimizer} moves {passes:.0f} elements per parameter, fused it would move no less.")
    keeps = (FUSED_CPU_OPS + 1) / (FUSED_CPU_OPS + max(work.list_ops, 1))
    least, most = keeps * _CPU["high"], min(1.0, keeps * _CPU["low"])
    estimate = shorter_step(
        context,
        Change(work.steps, most, np.where(work.lists, min(1.0, ratio * _RATE["low"]), 1.0)),
        Change(work.steps, keeps, np.where(work.lists, ratio, 1.0)),
        Change(work.steps, least, np.where(work.lists, ratio * _RATE["high"], 1.0)),
        f"{passes:.0f} passes over the parameters take {ms(time)}; fused {fused_passes} do, at rates that may "
        f"differ by {_RATE['high']:g} to {_RATE['low']:g}. The CPU keeps {100 * least:.0f} to {100 * most:.0f} % of "
        f"the {ms(work.cpu_ns)} that it takes for {work.list_ops:.0f} ops.",
    )
    whole = percent(time, context.step_ns) or 0.0
    if min(estimate.percent, whole) < FUSED_OPTIMIZER_SAVING_PERCENT:
        return Silent(f"Its kernels take {share:.1f} % of the step; fused it should save {estimate.percent:.1f} %.")
    return RULE.finding(
        title=f"{work.optimizer} is not fused: its kernels take {ms(time, 1)} of each step",
        seen=f"{int(work.lists.sum()) // context.selection.count} kernels of ops over lists of parameters take "
        f"{time / 1e6:.2f} of {ms(context.step_ns)}. They read or write as many elements as there are "
        f"parameters "
        f"{passes:.0f} times; a fused step does so {fused_passes} times.",
        readings=[
            Reading("Optimizer kernels per step", time, "ns"),
            Reading("Share of the step", share, "percent"),
            Reading("Passes over the parameters", passes, "ratio", float(fused_passes)),
            Reading("Expected saving", estimate.percent, "percent", FUSED_OPTIMIZER_SAVING_PERCENT),
        ],
        evidence=op_rows(context, work.lists),
        change=f"Pass fused=True to {work.optimizer}. It computes the same, up to rounding.",
        code=f"optimizer = torch.optim.{work.optimizer}(model.parameters(), ..., fused=True)\n",
        saving=estimate,
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """A fused step where there was none."""
    before, after = (optimizer_work(view, view.selection()) for view in (base, candidate))
    return "fused optimizer" if after.fused.any() and not before.fused.any() else ""
