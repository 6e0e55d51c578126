"""Gradients stay in memory during the forward pass.

Gradients that are freed behind the forward pass, where freeing them before it would lower the peak.

Why it matters: Gradients are as large as the parameters. Where `zero_grad` stands between the forward and the backward
pass, those of the last step stay. They lie in memory while the forward pass fills it.

What to change: Call `zero_grad` right behind the optimizer's step, or before the forward pass.

When to leave it: Something reads the gradients after the step, or several batches are accumulated.

To confirm: Record memory again: the peak should be lower by what the replay says.

Read on:
- [PyTorch: Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice.gpu_memory import gigabytes
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.plan_request import PlanError, PlanRequest
from tb_dlprof_plugin.planning.memory.plan import planner
from tb_dlprof_plugin.planning.memory.recorded_step import recorded_program
from tb_dlprof_plugin.planning.memory.rewrite_optimizer import bytes_freed_late
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.MEMORY, Need.GPU),
    confidence="high",
    severity="low",
)

MEMORY_FOR_NOTHING_PERCENT = 5.0
"""Of the peak memory. Ours: a batch that is 5 % larger is the least that is worth a change."""

_CODE = "optimizer.step()\noptimizer.zero_grad(set_to_none=True)  # not between the loss and its backward pass\n"


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the replay of a step with gradients freed before the forward pass has a notably lower peak."""
    try:
        late = bytes_freed_late(recorded_program(context.view))
        if not late:
            return Silent("No gradient is freed behind the forward pass.")
        known = planner(context.view)
        peaks = [known.plan(one).peak_allocated.value for one in (PlanRequest(), _FREED)]
    except PlanError as error:
        return Silent(f"{error}", applicable=False)
    before, after = peaks
    gained = percent(before - after, before) or 0.0
    held = f"{gigabytes(late)} of gradients are freed behind the forward pass"
    if gained < MEMORY_FOR_NOTHING_PERCENT:
        return Silent(f"{held}; freed before it, the peak would be {max(gained, 0.0):.1f} % lower.")
    return RULE.finding(
        title=f"{gigabytes(before - after)} of the peak memory are gradients that the next step no longer needs",
        seen=f"{held}. By a replay of the allocator, tensors would take {gigabytes(after)} at the peak in place of "
        f"{gigabytes(before)} if they were freed before it.",
        readings=[
            Reading("Gradients freed behind the forward pass", late, "bytes"),
            Reading("Peak memory", before, "bytes"),
            Reading("Peak memory if they were freed before", after, "bytes"),
            Reading("Lower by", gained, "percent", MEMORY_FOR_NOTHING_PERCENT),
        ],
        evidence=[EvidenceRow("Gradients during the forward pass", None, percent(late, before), "memory", "")],
        change="Call zero_grad before the forward pass.",
        code=_CODE,
        saving="It saves memory, not time: room for a larger batch.",
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Gradients that were freed late, in one run and not in the other."""
    try:
        before, after = (bytes_freed_late(recorded_program(view)) for view in (base, candidate))
    except ValueError:
        return ""
    return "gradients freed before the forward pass" if before and not after else ""


_FREED = PlanRequest(set_to_none=True)
