"""How large a batch fits into the memory of the run's GPU: by the replay where the allocator's events were recorded,
else by the line through what tensors hold at the peak and between steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tb_dlprof_plugin.metrics.memory import CPU, DeviceMemory, recorded_devices
from tb_dlprof_plugin.model.plan_request import PlanRequest
from tb_dlprof_plugin.planning.memory.capacity import capacity
from tb_dlprof_plugin.planning.memory.plan import planner
from tb_dlprof_plugin.planning.memory.rewrites import PlanError
from tb_dlprof_plugin.profile_view import ProfileView, Selection


@dataclass(frozen=True, slots=True)
class BatchThatFits:
    """Bytes: at the peak, of it independent of the batch (0 where unknown), and what the process could hold;
    ``samples`` is the largest batch that fits into the share of it that was asked for, by ``source``."""

    peak: int
    steady: int
    available: int
    samples: int
    source: Literal["replay", "line"]


def batch_that_fits(view: ProfileView, selection: Selection, fill: float) -> BatchThatFits | None:
    """The largest batch on the run's GPU; None where batch size, peak or the GPU's memory were not recorded.

    Args:
        view: the run.
        selection: iterations whose peak counts.
        fill: share of the memory to use.
    """
    facts = view.profile.facts
    room, peak = capacity(view), _recorded_peak(view, selection) or facts.peak_memory_allocated_bytes
    if not facts.batch_size or not peak:
        return None
    total = next(
        (gpu.memory_bytes for gpu in view.profile.system.gpus if gpu.id in view.profile.iterations.gpu_ids), None
    )
    available = facts.available_memory_bytes or total
    if not available:
        return None
    # What stays between steps is taken for 0 where it is unknown: then too few samples seem to fit, not too many.
    steady = min(facts.steady_memory_bytes or 0, peak)
    if room is not None:
        try:
            found = planner(view).largest_batch(PlanRequest(), replace(room, least=int(fill * available)))
        except PlanError:
            found = None
        if found is not None:
            return BatchThatFits(peak, steady, available, found, "replay")
    samples = int(facts.batch_size * (fill * available - steady) / max(peak - steady, 1))
    return BatchThatFits(peak, steady, available, max(samples, 0), "line")


def _recorded_peak(view: ProfileView, selection: Selection) -> int | None:
    peaks = []
    for device in recorded_devices(view.profile):
        memory = DeviceMemory(view, device) if device != CPU else None
        if memory is not None and memory.has_totals:
            peaks.append(memory.peak(memory.window(selection.first, selection.last)).allocated)
    return max(peaks, default=None)
