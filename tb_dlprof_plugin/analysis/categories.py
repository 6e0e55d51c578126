"""DLProf's seven exclusive time categories of each iteration, per GPU.

A moment belongs to the first that applies: a Tensor Core kernel runs, another kernel runs, a copy or set runs, the
training thread waits in the DataLoader, file I/O, an op or CUDA call runs on the CPU, none of these. By the clock, so
they sum to the iteration's wall time to the nanosecond. Traces hold no file I/O: its time is in the later ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from tb_dlprof_plugin.model.intervals import Intervals, Spans, exclusive, union_of
from tb_dlprof_plugin.model.profile import TIME_CATEGORIES, CallKind, Ints, KernelKind, Role, Verdict

if TYPE_CHECKING:
    from tb_dlprof_plugin.model.timeline import Timeline

_FILES = "io"
_LOADERS_SHOW = ("kineto", "tensorflow")
"""Format and framework whose recordings name the loader of batches wherever there is one."""


def unrecorded_categories(timeline: Timeline, role: Ints) -> tuple[str, ...]:
    """The time categories that a recording cannot show: unknown, not 0.

    Args:
        timeline: the recording.
        role: per host event its `Role`.
    """
    shows = timeline.format in _LOADERS_SHOW or timeline.framework in _LOADERS_SHOW or (role == Role.DATALOADER).any()
    return (_FILES,) if shows else ("dataloader", _FILES)


class GpuSpans(Spans, Protocol):
    """A table of things that run on a GPU: `DeviceEvents`, `Launches`."""

    @property
    def device(self) -> Ints: ...


def time_categories(
    calls: tuple[Spans, Ints, Ints],
    activities: tuple[GpuSpans, Ints, Ints],
    windows: tuple[Ints, Ints],
    gpu_ids: tuple[int, ...],
) -> Ints:
    """Time by category (ns), shape (iterations, GPUs or 1, 7).

    Args:
        calls: on the CPU, with the `CallKind` and the `Role` of each.
        activities: on the GPUs, with the `KernelKind` and the `Verdict` of each; an unknown kernel counts among the
            other kernels.
        windows: starts and stops of the iterations.
        gpu_ids: the GPUs to account for; none for a CPU-only run.
    """
    host, kind, role = calls
    device, device_kind, tensor_core = activities
    start_ns, stop_ns = windows
    loader = union_of(host, (kind == CallKind.ANNOTATION) & (role == Role.DATALOADER))
    cpu = union_of(host, (kind == CallKind.OP) | (kind == CallKind.RUNTIME))
    nothing: Intervals = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    result = np.zeros((len(start_ns), max(1, len(gpu_ids)), len(TIME_CATEGORIES)), dtype=np.int64)
    for column, gpu in enumerate(gpu_ids or (-1,)):
        here = device.device == gpu
        kernel = here & (device_kind == KernelKind.KERNEL)
        layers = {
            "tensor_core": union_of(device, kernel & (tensor_core == Verdict.YES)),
            "other_kernels": union_of(device, kernel & (tensor_core != Verdict.YES)),
            "memory": union_of(device, here & (device_kind != KernelKind.KERNEL)),
            "dataloader": loader,
            "io": nothing,
            "cpu": cpu,
        }
        times = exclusive([layers[name] for name in TIME_CATEGORIES[:-1]], start_ns, stop_ns)
        result[:, column, :-1] = times
        result[:, column, -1] = stop_ns - start_ns - times.sum(axis=1)
    return result
