"""The training is about to run out of memory.

Tensors that take nearly all of the memory which the process can have, and allocations that failed at first. Also peaks
that differ so much from step to step that a larger one does not fit.

Why it matters: A training that runs out of memory ends, often hours after its start. An input is longer than all before
it, or an evaluation takes some memory besides. Shortly before that, the allocator frees all that it has cached and asks
again. It waits for the GPU each time.

What to change: Take a smaller batch, or accumulate gradients over two of half the size; checkpoint what is cheap to
compute again; bound the length of inputs. `tb-dlprof plan RUN --checkpoint auto` says what fits.

When to leave it: All inputs have one size, nothing else runs on the GPU, and the training has run for an epoch.

To confirm: Record again: memory should be left at the peak, and no allocation should fail.

Read on:
- [PyTorch: CUDA memory management](https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.gpu_memory import capacity_bytes, gigabytes, memory_after
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, JobNeed, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.memory import CPU, DeviceMemory, recorded_devices
from tb_dlprof_plugin.model.plan_request import PlanRequest

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.PROCESS, Need.GPU, JobNeed.PEAK_MEMORY),
    without_steps=True,
    thresholds=("SHORT_OF_MEMORY_PERCENT",),
    severity="high",
    facts=("batch_size",),
)

OUT_OF_MEMORY_PERCENT = 95.0
"""Of what the process can have, taken by tensors at their peak. Ours: the allocator's rounding and what lies between
blocks take up to 5 % more in recorded trainings that fill their memory (lab/memory_plan)."""

PEAKS_DIFFER_PERCENT = 2.0
"""Of the peak: recorded steps with inputs of one size differ by less."""

_PLAN = "tb-dlprof plan RUN --checkpoint auto  # the cheapest set of checkpoints with which it fits\n"
_SMALLER = 0.9
"""Of the batch, whose memory the advice states."""


def check(context: RuleContext) -> Finding | Silent:
    """Retries first: they are the proof; then peaks that differ; then the peak itself."""
    facts, capacity = context.facts, capacity_bytes(context)
    peak = facts.peak_memory_allocated_bytes
    assert peak is not None
    assert capacity is not None
    used = percent(peak, capacity) or 0.0
    least = _least_peak(context)
    spread = max(peak - least, 0) if least is not None else 0
    larger = percent(peak + spread, capacity) or 0.0
    differ = (percent(spread, peak) or 0.0) >= PEAKS_DIFFER_PERCENT
    retries = facts.allocator_retries or 0
    held = f"Tensors take {gigabytes(peak)} of {gigabytes(capacity)} at the peak ({used:.0f} %)"
    if retries and used >= thresholds.SHORT_OF_MEMORY_PERCENT:
        title = f"{retries:,} allocations failed at first: the training fits only barely"
        seen = f"{held}, and {retries:,} allocations of the process failed until all cached memory was freed."
    elif differ and larger > 100.0:
        title = "A somewhat larger input than the recorded ones will not fit into memory"
        seen = (
            f"{held}; the peaks of the recorded steps differ by {gigabytes(spread)}. An input as much larger than the "
            "largest as this is than the smallest would need more than there is."
        )
    elif used >= OUT_OF_MEMORY_PERCENT:
        title = f"Only {gigabytes(capacity - peak)} of memory are left"
        seen = f"{held}."
    else:
        return Silent(f"{held}.")
    batch = facts.batch_size
    smaller = int(_SMALLER * batch) if batch else 0
    price = memory_after(context, PlanRequest(batch_size=smaller)) if smaller else ""
    return RULE.finding(
        title=title,
        seen=seen,
        readings=[
            Reading("Memory taken at the peak", used, "percent", OUT_OF_MEMORY_PERCENT),
            Reading("Memory left", max(capacity - peak, 0), "bytes"),
            Reading("Allocations that failed at first", facts.allocator_retries, "count"),
            Reading("Peaks of steps differ by", spread if least is not None else None, "bytes"),
        ],
        evidence=[EvidenceRow("Peak memory", None, used, "memory", "")],
        change=(f"Take batches of {smaller:,} instead of {batch:,}.{price}" if smaller else "Take a smaller batch.")
        + " Or keep the batch and checkpoint some modules.",
        code=_PLAN,
        saving="A step gets hardly shorter by it; the training does not end before its time.",
    ).but(confidence="high" if retries else "medium")


def _least_peak(context: RuleContext) -> int | None:
    """The lowest peak of tensors in a selected step; None where memory was not recorded."""
    view, selection = context.view, context.selection
    device = next((one for one in recorded_devices(view.profile) if one != CPU), None)
    memory = DeviceMemory(view, device) if device is not None else None
    if memory is None or not memory.has_totals:
        return None
    return min(memory.peak(memory.window(step, step)).allocated for step in range(selection.first, selection.last + 1))
