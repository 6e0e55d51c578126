"""Makes copies of the driver's kernels that copy, so that a CUDA graph has as many kernels whatever recorded it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.model.grouping import distinct
from tb_dlprof_plugin.model.timeline import DeviceKind, Timeline
from tb_dlprof_plugin.names.driver_kernels import DRIVER_COPY


def with_driver_copies(timeline: Timeline) -> Timeline:
    """The timeline in which these kernels are copies, of unknown size and under the kernel's name."""
    device, strings = timeline.device, timeline.strings
    kernels = device.kind == DeviceKind.KERNEL
    names = [one for one in distinct(device.name[kernels]).tolist() if DRIVER_COPY.match(strings[one])]
    if not names:
        return timeline
    copies = kernels & np.isin(device.name, names)
    return replace(timeline, device=replace(device, kind=np.where(copies, int(DeviceKind.MEMCPY), device.kind)))
