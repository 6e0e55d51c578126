"""Traces that ``EventList.export_chrome_trace()`` wrote: a list of events without categories.

Its ops and kernels all claim to be "CPU functions" and differ by their thread only: what Kineto saw on a GPU stream has
the stream's number for a thread. A thread with copies, sets or C++ kernel signatures on it is taken for a stream.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.model.lookup import take_rows
from tb_dlprof_plugin.model.timeline import Bools, DeviceEvents, DeviceKind, HostEvents, HostKind
from tb_dlprof_plugin.names.ops import PROFILER_STEP

PROCESSES = ("CPU functions", "CUDA functions")
"""What such a file has for ``pid``; torch up to 1.8 wrote the second for kernels."""

_ON_A_STREAM = re.compile(
    r"(?P<memcpy>Memcpy )|(?P<memset>Memset )|(?P<kernel>void |\w+<.*>\(|(?:ampere|volta|sm\d\d)_)"
)
_ANNOTATIONS = (PROFILER_STEP, "Optimizer.", "enumerate(DataLoader)#")


def by_thread(host: HostEvents, strings: list[str]) -> tuple[HostEvents, DeviceEvents]:
    """Parts the events of such a file into those of the host and those of GPU streams."""
    looks = {index: _ON_A_STREAM.match(strings[index]) for index in np.unique(host.name).tolist()}
    on_stream = np.isin(host.name, [index for index, match in looks.items() if match])
    streams = np.unique(host.thread[on_stream])
    rows = np.isin(host.thread, streams)
    kinds = {
        index: DeviceKind[match.lastgroup.upper()] if match and match.lastgroup else DeviceKind.KERNEL
        for index, match in looks.items()
    }
    annotation = np.isin(host.name, [index for index in looks if strings[index].startswith(_ANNOTATIONS)])
    kind = np.where(annotation, int(HostKind.ANNOTATION), host.kind)
    return take_rows(replace(host, kind=kind), ~rows), _device_events(host, rows, kinds)


def _device_events(host: HostEvents, rows: Bools, kinds: dict[int, DeviceKind]) -> DeviceEvents:
    order = np.flatnonzero(rows)
    order = order[np.argsort(host.start_ns[order], kind="stable")]
    unknown = np.full(len(order), -1, dtype=np.int64)
    return DeviceEvents(
        name=host.name[order],
        kind=np.array([kinds[index] for index in host.name[order].tolist()], dtype=np.int64),
        device=np.zeros(len(order), dtype=np.int64),
        stream=host.thread[order],
        start_ns=host.start_ns[order],
        duration_ns=host.duration_ns[order],
        correlation=unknown,
        external_id=unknown,
        bytes=unknown,
        config=np.zeros(len(order), dtype=np.int64),
    )
