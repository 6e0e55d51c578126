"""The machine as far as the trace knows it: fills what the hook did not record."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.storage.facts import Gpu, System
from tb_dlprof_plugin.trace.timeline import Timeline


def complete_system(system: System, timeline: Timeline) -> System:
    """A copy of ``system`` with its gaps filled from the trace."""
    gpus = system.gpus or [
        Gpu(d.id, d.name, d.compute_major, d.compute_minor, d.sm_count, d.memory_bytes)
        for d in timeline.device_properties
    ]
    return msgspec.structs.replace(
        system,
        gpus=gpus,
        cuda_version=system.cuda_version or _cuda_version(timeline.cuda_runtime_version),
    )


def _cuda_version(number: int | None) -> str | None:
    """CUDA writes version 12.4 as 12040."""
    return None if not number else f"{number // 1000}.{number % 1000 // 10}"
