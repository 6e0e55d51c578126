"""Fills the system facts that the hook did not record, from the trace."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.model.grouping import distinct
from tb_dlprof_plugin.model.run_facts import Gpu, System
from tb_dlprof_plugin.model.timeline import HostKind, Timeline
from tb_dlprof_plugin.names.gpu_generations import with_capabilities


def complete_system(system: System, timeline: Timeline) -> System:
    """A copy of ``system`` with its gaps filled from the trace."""
    read = timeline.system
    gaps = [name for name in system.__struct_fields__ if not getattr(system, name)]
    system = msgspec.structs.replace(system, **{name: getattr(read, name) for name in gaps})
    rocm = is_rocm(timeline)
    gpus = system.gpus or [
        Gpu(
            d.id,
            d.name,
            # AMD's gfx90a reports 9.0, as an H100 does.
            None if rocm else d.compute_major,
            None if rocm else d.compute_minor,
            d.sm_count,
            d.memory_bytes,
        )
        for d in timeline.device_properties
    ]
    system = msgspec.structs.replace(
        system,
        gpus=gpus,
        cuda_version=system.cuda_version or _cuda_version(timeline.cuda_runtime_version),
    )
    return system if rocm else with_capabilities(system)


def is_rocm(timeline: Timeline) -> bool:
    """Whether the GPUs are AMD's, which have no Tensor Cores and name their kernels otherwise."""
    host = timeline.host
    names = distinct(host.name[host.kind == HostKind.RUNTIME]).tolist()
    return any(timeline.strings[name].startswith("hip") for name in names) or any(
        device.name.startswith("AMD") for device in timeline.device_properties
    )


def _cuda_version(number: int | None) -> str | None:
    """CUDA writes version 12.4 as 12040."""
    return None if not number else f"{number // 1000}.{number % 1000 // 10}"
