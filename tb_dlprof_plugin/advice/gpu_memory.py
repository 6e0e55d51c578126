"""The GPU memory available to a training, and what a change would do to it by the planner."""

from __future__ import annotations

from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.model.plan_request import PlanError, PlanRequest
from tb_dlprof_plugin.planning.memory.plan import planner
from tb_dlprof_plugin.planning.memory.step_program import UnknownModule

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def capacity_bytes(context: RuleContext) -> int | None:
    """GPU memory available to the process, else all memory of the smallest GPU it used; None where unknown."""
    if context.facts.available_memory_bytes:
        return context.facts.available_memory_bytes
    used = set(context.profile.iterations.gpu_ids)
    sizes = [gpu.memory_bytes for gpu in context.profile.system.gpus if gpu.id in used and gpu.memory_bytes]
    return min(sizes, default=None)


def gigabytes(size: int) -> str:
    """ "12.3 GiB", or in a smaller unit below 1."""
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"


def memory_after(context: RuleContext, request: PlanRequest) -> str:
    """A sentence on the peaks with and without a change; "" where the planner does not know them."""
    try:
        known = planner(context.view)
        before, after = known.plan(PlanRequest()), known.plan(request)
    except (PlanError, UnknownModule):
        return ""
    return (
        f" By a replay of the allocator, tensors would then take {gigabytes(after.peak_allocated.value)} at the peak "
        f"in place of {gigabytes(before.peak_allocated.value)}, and the allocator would reserve "
        f"{gigabytes(after.peak_reserved.value)} in place of {gigabytes(before.peak_reserved.value)}."
    )
