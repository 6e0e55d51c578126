"""Each GPU that the process used: what it is, and how its time went. DLProf's "GPUs" page."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.frame import Frame, Selection
from tb_dlprof_plugin.measures.gpu_busy import gpu_busy_ns
from tb_dlprof_plugin.measures.iterations import percent, step_totals
from tb_dlprof_plugin.measures.kernels import time_split


class GpuUse(msgspec.Struct, frozen=True):
    """One GPU over the selected iterations; what was not recorded of it is None.

    ``busy_ns`` is the time in which a kernel, copy or set ran on it, ``tensor_core_ns`` that in which a Tensor Core
    kernel did; the percentages are of the wall clock time without the profiler.
    """

    id: int
    name: str | None
    compute_capability: str | None
    sm_count: int | None
    memory_bytes: int | None
    busy_ns: int
    utilization_percent: float | None
    tensor_core_ns: int
    tensor_core_percent: float | None


def gpus(frame: Frame, selection: Selection) -> list[GpuUse]:
    """The GPUs by number; none where nothing ran on one."""
    iterations = frame.profile.iterations
    wall = step_totals(frame, selection).wall_ns
    known = {gpu.id: gpu for gpu in frame.profile.system.gpus}
    told = time_split(frame, selection).tensor_cores_known
    found = []
    for number, times in zip(iterations.gpu_ids, gpu_busy_ns(frame, selection).tolist(), strict=True):
        busy, tensor_cores = sum(times), times[0]
        gpu = known.get(number)
        capability = gpu.compute_capability if gpu else None
        found.append(
            GpuUse(
                id=number,
                name=gpu.name if gpu else None,
                compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
                sm_count=gpu.sm_count if gpu else None,
                memory_bytes=gpu.memory_bytes if gpu else None,
                busy_ns=busy,
                utilization_percent=percent(busy, wall),
                tensor_core_ns=tensor_cores,
                tensor_core_percent=percent(tensor_cores, wall) if told else None,
            )
        )
    return found
