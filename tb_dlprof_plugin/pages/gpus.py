"""Each GPU that the process used: its properties and how its time was spent. DLProf's "GPUs" page."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tb_dlprof_plugin.metrics.gpu_busy import gpu_busy_ns
from tb_dlprof_plugin.metrics.iterations import percent, step_totals
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.pages.quantities import GPU_MEMORY
from tb_dlprof_plugin.profile_view import ProfileView, Selection


class GpuUse(msgspec.Struct, frozen=True):
    """One GPU over the selected iterations; what was not recorded of it is None.

    ``busy_ns`` is the time in which a kernel, copy or set ran on it, ``utilization_percent`` its share of the
    steps without the profiler.
    """

    id: Annotated[int, Column("GPU", "Number of the GPU, as CUDA counts them in this process.")]
    name: Annotated[str | None, Column("Name", "gpuName", width=220)]
    utilization_percent: Annotated[
        float | None,
        Column("Busy"),
        Definition(
            "gpuUse",
            "Share of the steps without the profiler in which at least one kernel, copy or set ran on this GPU.",
        ),
    ]
    busy_ns: Annotated[int, Column("Busy time", "gpuBusy", terminal=False)]
    compute_capability: Annotated[
        str | None,
        Column("Compute capability", terminal=False),
        Definition(
            "gpuCapability", "What the GPU can do: Tensor Cores came with 7.0, TF32 and BF16 with 8.0, FP8 with 8.9."
        ),
    ]
    sm_count: Annotated[
        int | None, Column("SMs", "Streaming multiprocessors: the units that kernels' blocks run on.", terminal=False)
    ]
    memory_bytes: Annotated[int | None, Column(terminal=False), GPU_MEMORY]


def gpus(view: ProfileView, selection: Selection) -> list[GpuUse]:
    """The GPUs by number; none where nothing ran on one."""
    iterations = view.profile.iterations
    wall = step_totals(view, selection).wall_ns
    by_number = {gpu.id: gpu for gpu in view.profile.system.gpus}
    rows = []
    for number, times in zip(iterations.gpu_ids, gpu_busy_ns(view, selection).tolist(), strict=True):
        busy = sum(times)
        gpu = by_number.get(number)
        capability = gpu.compute_capability if gpu else None
        rows.append(
            GpuUse(
                id=number,
                name=gpu.name if gpu else None,
                compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
                sm_count=gpu.sm_count if gpu else None,
                memory_bytes=gpu.memory_bytes if gpu else None,
                busy_ns=busy,
                utilization_percent=percent(busy, wall),
            )
        )
    return rows
