"""Numbers of a recording that cannot be what their column holds are as if they had not been recorded.

Every format's reader takes what a file says; files are damaged, and written by others. What a profile may hold is
declared with its columns (`tb_dlprof_plugin.model.profile`), and a stored profile that does not is refused.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.model.column import BYTES_OR_NONE, NUMBER, Between
from tb_dlprof_plugin.model.grouping import distinct
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.timeline import DeviceKind, DeviceProperties, LaunchConfig, Timeline
from tb_dlprof_plugin.names.kernel_rules import DRIVER_COPY

_NOT_RECORDED = -1
_MOST_BYTES = Between(_NOT_RECORDED, min(BYTES_OR_NONE.high, 2**52))
"""Of a copy or set: what an x86-64 processor can address at most, 4 PiB."""


def with_sound_values(timeline: Timeline) -> Timeline:
    """With devices, streams, bytes, launch configurations and figures of GPUs that can be; -1 or None in place of
    others."""
    device = timeline.device
    device = replace(
        device,
        device=_within(device.device, NUMBER),
        stream=_within(device.stream, NUMBER),
        bytes=_within(device.bytes, _MOST_BYTES),
    )
    return replace(
        timeline,
        device=device,
        launch_configs=[_sound(config) for config in timeline.launch_configs],
        device_properties=[_sound_gpu(gpu) for gpu in timeline.device_properties if _can_be(gpu.id)],
    )


def _within(values: Ints, allowed: Between) -> Ints:
    return np.where((values >= allowed.low) & (values <= allowed.high), values, _NOT_RECORDED)


def _sound(config: LaunchConfig) -> LaunchConfig:
    return LaunchConfig(
        grid=config.grid if config.grid is not None and all(map(_can_be, config.grid)) else None,
        block=config.block if config.block is not None and all(map(_can_be, config.block)) else None,
        registers_per_thread=_number(config.registers_per_thread),
        shared_memory_bytes=_number(config.shared_memory_bytes),
        occupancy_percent=_share(config.occupancy_percent),
    )


def _sound_gpu(gpu: DeviceProperties) -> DeviceProperties:
    memory = gpu.memory_bytes
    return replace(
        gpu,
        compute_major=_number(gpu.compute_major),
        compute_minor=_number(gpu.compute_minor),
        sm_count=_number(gpu.sm_count),
        memory_bytes=memory if memory is not None and 0 <= memory <= _MOST_BYTES.high else None,
    )


def _can_be(value: int) -> bool:
    return 0 <= value <= NUMBER.high


def _share(percent: int | None) -> int | None:
    return percent if percent is not None and 0 <= percent <= 100 else None


def _number(value: int | None) -> int | None:
    return value if value is not None and _can_be(value) else None


def with_driver_copies(timeline: Timeline) -> Timeline:
    """The timeline in which these kernels are copies, of unknown size and under the kernel's name."""
    device, strings = timeline.device, timeline.strings
    kernels = device.kind == DeviceKind.KERNEL
    names = [name for name in distinct(device.name[kernels]).tolist() if DRIVER_COPY.match(strings[name])]
    if not names:
        return timeline
    copies = kernels & np.isin(device.name, names)
    return replace(timeline, device=replace(device, kind=np.where(copies, int(DeviceKind.MEMCPY), device.kind)))
