"""Memory grows or is fragmented.

Allocated memory that grows in each recorded step. Also an allocator that reserved far more than tensors took at their
peak.

Why it matters: PyTorch's allocator keeps the blocks that it got from the GPU and hands them out again. Where each step
asks for other sizes, no old block fits: it reserves more and more, until the GPU is full. Then everything is freed and
allocated again, which stops the training each time. Memory that grows ends in the same way, for another reason:
something keeps the tensors of each step.

What to change: Growth: keep numbers instead of tensors with their graph (`loss.item()`, or `loss.detach()` without
waiting). Pieces: set `PYTORCH_ALLOC_CONF=expandable_segments:True`, pad inputs to a few lengths, or begin with the
longest.

When to leave it: The memory is reserved by something that comes once, such as an evaluation with a larger batch.

To confirm: Record memory again: the Memory page should show no growth per iteration.

Read on:
- [PyTorch: CUDA memory management](https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.gpu_memory import capacity_bytes, gigabytes
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.text import listed
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.memory import CPU, DeviceMemory, growth, kept_allocations, recorded_devices
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.names.cuda_calls import CudaCall
from tb_dlprof_plugin.profile_view import op_name

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
)

FRAGMENTATION_PERCENT = 60.0
"""Of the memory that the allocator reserved at its peak, unused at the peak of allocated memory. Ours: recorded
trainings with constant shapes leave up to 50 % unused (lab/planted)."""

FRAGMENTED_SHARE_PERCENT = 10.0
"""Of the GPU's memory: less lying about limits nothing."""

GROWTH_PERCENT = 0.1
"""Of the peak memory per step. A scalar that is kept with its graph holds the activations of its step."""

_ALLOCATES = (
    *(CudaCall.MALLOC, CudaCall.MALLOC_ASYNC, CudaCall.MEMORY_CREATE),
    *(CudaCall.FREE, CudaCall.FREE_ASYNC),
)
_LEAST_STEPS = 3
_SEGMENTS = "PYTORCH_ALLOC_CONF=expandable_segments:True python train.py  # PYTORCH_CUDA_ALLOC_CONF before torch 2.9\n"
_DETACH = "losses.append(loss.detach())  # not losses.append(loss), which keeps the graph of its step\n"


def check(context: RuleContext) -> Finding | Silent:
    """Growth first: it fills the memory whatever its pieces."""
    grows = _grows(context)
    if isinstance(grows, Finding):
        return grows
    return _in_pieces(context, grows)


def _grows(context: RuleContext) -> Finding | str:
    """A finding, or what is known of the growth."""
    view, selection = context.view, context.selection
    devices = [device for device in recorded_devices(view.profile) if device != CPU]
    if not devices or selection.count < _LEAST_STEPS:
        return "Memory was not recorded (profile_memory=True records it)." if not devices else "Too few steps."
    memory = DeviceMemory(view, devices[0])
    if not memory.has_totals:
        return "The GPU's totals were not recorded."
    # The first step may still find its memory; what the last one leaves may be freed by the next.
    by_step = growth(memory, selection)[1:]
    window = memory.window(selection.first, selection.last)
    peak = memory.peak(window).allocated
    least = min(by_step)
    share = percent(least, peak) or 0.0
    if share < GROWTH_PERCENT:
        return f"Allocated memory does not grow from step to step: {gigabytes(max(least, 0))} at least."
    average = sum(by_step) // len(by_step)
    capacity = capacity_bytes(context)
    left = (
        "" if capacity is None else f" At that rate {(capacity - peak) // max(average, 1):,} more steps fill the GPU."
    )
    places = _kept_by(context, memory) if memory.partners_known else []
    return RULE.finding(
        title=f"Memory grows by {gigabytes(average)} in each step",
        seen=f"Allocated memory grew in each of the last {len(by_step)} recorded steps, by {gigabytes(least)} to "
        f"{gigabytes(max(by_step))}.{left}"
        + (f" Most of what stays was allocated by {listed([name for name, _ in places])}." if places else ""),
        readings=[
            Reading("Growth per step", average, "bytes"),
            Reading("Least growth, of the peak", share, "percent", GROWTH_PERCENT),
            Reading("Peak memory of the recorded steps", peak, "bytes"),
        ],
        evidence=[
            EvidenceRow(f"{name}: {gigabytes(size)} a step", None, percent(size, average), "memory", "")
            for name, size in places
        ],
        change="Find what keeps tensors of earlier steps: a list of losses or outputs with their graph, a metric "
        "that is summed up as a tensor, a cache without bound. Keep them detached.",
        code=_DETACH,
        saving="A step gets no shorter by it; the training ends when the memory is full.",
    ).but(confidence="high", severity="high")


def _in_pieces(context: RuleContext, growing: str) -> Finding | Silent:
    facts, capacity = context.facts, capacity_bytes(context)
    allocated, reserved = facts.peak_memory_allocated_bytes, facts.peak_memory_reserved_bytes
    if allocated is None or reserved is None or not reserved or capacity is None:
        return Silent(f"{growing} The peaks of memory were not recorded.", applicable=False)
    unused = reserved - allocated
    share, of_gpu = percent(unused, reserved) or 0.0, percent(unused, capacity) or 0.0
    retries = facts.allocator_retries or 0
    known = (
        f"{growing} The allocator reserved {gigabytes(reserved)}, of which tensors took {gigabytes(allocated)} at "
        f"their "
        "peak."
    )
    in_pieces = share >= FRAGMENTATION_PERCENT or (retries > 0 and unused > 0)
    if not in_pieces or of_gpu < FRAGMENTED_SHARE_PERCENT:
        return Silent(known)
    calls = _allocating_calls(context)
    if calls:
        return Silent(f"{known} The recorded steps still allocate ({calls} calls), which has a rule of its own.")
    expandable = "expandable_segments:True" in (facts.allocator_settings or "")
    again = f" {retries} allocations failed at first, and all unused memory was freed." if retries else ""
    return RULE.finding(
        title=f"The allocator holds {gigabytes(unused)} more than tensors ever took",
        seen=f"The allocator reserved {gigabytes(reserved)} ({percent(reserved, capacity) or 0:.0f} % of the GPU's "
        f"memory), but tensors took {gigabytes(allocated)} at most: {share:.0f} % of it lies in pieces that later "
        f"sizes did not fit.{again}",
        readings=[
            Reading("Reserved but never used at once", unused, "bytes"),
            Reading("Its share of what is reserved", share, "percent", FRAGMENTATION_PERCENT),
            Reading("Its share of the GPU's memory", of_gpu, "percent", FRAGMENTED_SHARE_PERCENT),
            Reading("Allocations that failed at first", facts.allocator_retries, "count"),
        ],
        evidence=[EvidenceRow("Reserved and allocated memory", None, share, "memory", "")],
        change=(
            "Expandable segments are on already: pad inputs to a few lengths, so that sizes come back."
            if expandable
            else "Let the allocator grow its segments: set PYTORCH_ALLOC_CONF=expandable_segments:True. Or pad inputs "
            "to a few lengths, or begin with the longest."
        ),
        code=_SEGMENTS if not expandable else "",
        saving="The recorded steps lose no time by it; memory for a larger batch is lost, and the "
        "steps in which the allocator asks for more take longer.",
    ).but(
        confirm="Record again: reserved memory should stay close to the peak of allocated memory.",
        severity="high" if retries else "medium",
    )


def _allocating_calls(context: RuleContext) -> int:
    """Calls of the selected iterations that allocate or free GPU memory."""
    view = context.view
    return int((view.is_cuda_call(*_ALLOCATES) & view.selected_calls(context.selection)).sum())


def _kept_by(context: RuleContext, memory: DeviceMemory) -> list[tuple[str, int]]:
    """Ops whose allocations are kept, with bytes per step, the largest first."""
    view, groups, strings = context.view, context.view.groups, context.profile.strings
    rows = np.flatnonzero(kept_allocations(memory, context.selection))
    group = take_or(view.call_group, memory.call[rows], -1)
    inside = group >= 0
    sizes = np.bincount(group[inside], weights=memory.bytes[rows[inside]], minlength=len(groups))
    found = []
    for at in np.argsort(-sizes, kind="stable")[:3].tolist():
        if sizes[at] > 0:
            name = op_name(strings[groups.module[at]], strings[groups.op_type[at]])
            found.append((name, int(sizes[at]) // max(context.selection.count - 1, 1)))
    return found
