"""What a change would do to the memory, by the planner: the price of advice about memory."""

from __future__ import annotations

from tb_dlprof_plugin.advice.memory_headroom import gigabytes
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.model.plan_request import PlanError, PlanRequest
from tb_dlprof_plugin.planning.memory.plan import planner
from tb_dlprof_plugin.planning.memory.step_program import UnknownModule


def memory_after(context: RuleContext, request: PlanRequest) -> str:
    """A sentence on the peaks with and without a change; "" where the planner does not know them."""
    try:
        known = planner(context.view)
        before, after = known.plan(PlanRequest(), largest=False), known.plan(request, largest=False)
    except (PlanError, UnknownModule):
        return ""
    return (
        f" By a replay of the allocator, tensors would then take {gigabytes(after.peak_allocated.value)} at the peak "
        f"in place of {gigabytes(before.peak_allocated.value)}, and the allocator would reserve "
        f"{gigabytes(after.peak_reserved.value)} in place of {gigabytes(before.peak_reserved.value)}."
    )
