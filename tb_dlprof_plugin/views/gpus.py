"""Each GPU that the process used: what it is, and how its time went. DLProf's "GPUs" page."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.frame import Frame, Selection
from tb_dlprof_plugin.measures.iterations import GPU_CATEGORIES, percent
from tb_dlprof_plugin.measures.kernels import time_split
from tb_dlprof_plugin.storage.model import TIME_CATEGORIES


class GpuUse(msgspec.Struct, frozen=True):
    """One GPU over the selected iterations; what was not recorded of it is None.

    ``busy_ns`` is the time in which a kernel, copy or set ran on it, ``tensor_core_ns`` that in which a Tensor Core
    kernel did; the percentages are of the wall clock time.
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
    rows = slice(selection.first, selection.last + 1)
    wall = int(iterations.duration_ns[rows].sum())
    known = {gpu.id: gpu for gpu in frame.profile.system.gpus}
    told = time_split(frame, selection).tensor_cores_known
    found = []
    for column, number in enumerate(iterations.gpu_ids):
        sums = dict(zip(TIME_CATEGORIES, iterations.category_ns[rows, column].sum(axis=0).tolist(), strict=True))
        busy = sum(sums[name] for name in GPU_CATEGORIES)
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
                tensor_core_ns=sums["tensor_core"],
                tensor_core_percent=percent(sums["tensor_core"], wall) if told else None,
            )
        )
    return found
