"""DLProf's seven exclusive time categories of each iteration, per GPU.

A moment belongs to the first that applies: a Tensor Core kernel runs, another kernel runs, a copy or set runs, the
training thread waits in the DataLoader, file I/O, an op or CUDA call runs on the CPU, none of these. By the clock, so
they sum to the iteration's wall time to the nanosecond. Kineto records no file I/O: its time is in the later ones.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.storage.intervals import Union, exclusive, union
from tb_dlprof_plugin.storage.model import TIME_CATEGORIES, Bools, CallKind, Ints, Role, Verdict
from tb_dlprof_plugin.trace.timeline import DeviceKind, Timeline

UNRECORDED = ("io",)
"""Categories that Kineto cannot tell."""


def time_categories(
    timeline: Timeline, windows: tuple[Ints, Ints], gpu_ids: tuple[int, ...], tensor_core: Ints, kind: Ints, role: Ints
) -> Ints:
    """Time by category (ns), shape (iterations, GPUs or 1, 7).

    Args:
        timeline: the trace.
        windows: starts and stops of its iterations.
        gpu_ids: the GPUs to account for; none for a CPU-only run.
        tensor_core: per device event the `Verdict`; an unknown kernel counts among the other kernels.
        kind: per host event the `CallKind`.
        role: per host event the `Role`.
    """
    host, device = timeline.host, timeline.device
    start_ns, stop_ns = windows
    loader = _union_of(host, (kind == CallKind.ANNOTATION) & (role == Role.DATALOADER))
    cpu = _union_of(host, (kind == CallKind.OP) | (kind == CallKind.RUNTIME))
    nothing: Union = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    result = np.zeros((len(start_ns), max(1, len(gpu_ids)), len(TIME_CATEGORIES)), dtype=np.int64)
    for column, gpu in enumerate(gpu_ids or (-1,)):
        here = device.device == gpu
        kernel = here & (device.kind == DeviceKind.KERNEL)
        layers = {
            "tensor_core": _union_of(device, kernel & (tensor_core == Verdict.YES)),
            "other_kernels": _union_of(device, kernel & (tensor_core != Verdict.YES)),
            "memory": _union_of(device, here & (device.kind != DeviceKind.KERNEL)),
            "dataloader": loader,
            "io": nothing,
            "cpu": cpu,
        }
        times = exclusive([layers[name] for name in TIME_CATEGORIES[:-1]], start_ns, stop_ns)
        result[:, column, :-1] = times
        result[:, column, -1] = stop_ns - start_ns - times.sum(axis=1)
    return result


def _union_of(table: object, rows: Bools) -> Union:
    start: Ints = table.start_ns[rows]  # type: ignore[attr-defined]
    return union(start, start + table.duration_ns[rows])  # type: ignore[attr-defined]
