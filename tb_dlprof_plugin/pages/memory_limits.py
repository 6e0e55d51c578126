"""What the Memory page says beyond the recorded bytes: the limits under which the training runs, and what of the
reserved memory no tensor can use. The limits are the planner's, so that both pages have the same."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tb_dlprof_plugin.model.plan_request import PlanError
from tb_dlprof_plugin.pages.columns import Definition
from tb_dlprof_plugin.planning.memory.plan import planner
from tb_dlprof_plugin.planning.memory.recorded_step import planned_memory
from tb_dlprof_plugin.planning.memory.replay import free_at_peak
from tb_dlprof_plugin.profile_view import ProfileView


class MemoryLimits(msgspec.Struct, frozen=True):
    """Bytes, by a replay of PyTorch's allocator with the recorded step of the highest peak; None where it was not
    possible, for the reason in ``unknown``, and where not recorded."""

    smallest_limit_bytes: Annotated[
        int | None,
        Definition(
            "memorySmallestLimit",
            "The least memory with which the training runs, with retries: the allocator then gives back what it has "
            "cached and asks again, which waits for the GPU.",
        ),
    ]
    without_retries_bytes: Annotated[
        int | None,
        Definition("memoryWithoutRetries", "The memory from which on the allocator never has to retry."),
    ]
    given_back_bytes: int | None
    holes_bytes: Annotated[
        int | None,
        Definition(
            "memoryHoles",
            "Reserved and free at the peak, but in segments that tensors lie in: neither the GPU nor a larger tensor "
            "can have it.",
        ),
    ]
    largest_hole_bytes: int | None
    outside_bytes: Annotated[
        int | None,
        Definition(
            "memoryOutside",
            "Of the GPU's memory what PyTorch's allocator does not have and is not free: the CUDA context with its "
            "kernels, libraries, NCCL, and other processes.",
        ),
    ]
    unknown: str


def memory_limits(view: ProfileView, device: int) -> MemoryLimits:
    """The limits of a GPU."""
    facts = view.profile.facts
    total = next((gpu.memory_bytes for gpu in view.profile.system.gpus if gpu.id == device), None)
    outside = facts.other_gpu_memory_bytes
    if outside is None and total and facts.available_memory_bytes:
        outside = max(total - facts.available_memory_bytes, 0)
    try:
        known = planner(view)
    except PlanError as error:
        return MemoryLimits(None, None, None, None, None, outside, str(error))
    if planned_memory(view).device != device:
        return MemoryLimits(None, None, None, None, None, None, "the replay is of the GPU with the highest peak.")
    free = free_at_peak(known.program, known.recorded_settings)
    return MemoryLimits(
        known.recorded.smallest_limit,
        known.recorded.peak_reserved,
        free.given_back,
        free.holes,
        free.largest_hole,
        outside,
        "",
    )
