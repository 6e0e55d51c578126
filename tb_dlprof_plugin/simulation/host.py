"""The CPU's side of a step without the profiler and without its waits for the GPU.

The profiler makes every op and every CUDA call longer; by how much is measured on pairs of profiled and unprofiled runs
(`calibration`). Time in the DataLoader is the workers', and stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.frame import Frame
from tb_dlprof_plugin.storage.intervals import Union, covered, union
from tb_dlprof_plugin.storage.model import CallKind, Ints, Role

_TYPICAL_QUANTILE = 0.25
_LONGEST = 1.5
"""A CUDA call longer than this many times its name's lower quartile waits from then on."""
_SYNCHRONISING = "Synchronize"
_LONGEST_SYNCHRONISATION_NS = 20_000


@dataclass(frozen=True)
class HostClock:
    """Maps recorded CPU times (ns) to those of a CPU that neither waits nor is profiled.

    ``edges`` and ``clean`` are the corners of the piecewise linear map.
    """

    edges: np.ndarray  # type: ignore[type-arg]
    clean: np.ndarray  # type: ignore[type-arg]

    def at(self, times: Ints) -> np.ndarray:  # type: ignore[type-arg]
        """Clean times (ns, floats)."""
        clean: np.ndarray = np.interp(times, self.edges, self.clean)  # type: ignore[type-arg]
        return clean


def host_clock(frame: Frame, unprofiled: float) -> HostClock:
    """The clock of a run's CPU; ``unprofiled`` is how long its work takes without the profiler, 1 for as recorded."""
    calls, ops, iterations = frame.profile.calls, frame.profile.ops, frame.profile.iterations
    first, last = int(iterations.host_start_ns.min()), int(iterations.host_stop_ns.max())
    waits = _waits(frame)
    loads = ops.role[calls.op] == Role.DATALOADER
    loading = union(calls.start_ns[loads], calls.start_ns[loads] + calls.duration_ns[loads])
    edges = np.unique(np.concatenate([[first, last], *waits, *loading]).astype(np.int64))
    edges = edges[(edges >= first) & (edges <= last)]
    starts, stops = edges[:-1], edges[1:]
    is_waiting = covered(waits, starts, stops) > 0
    is_loading = covered(loading, starts, stops) > 0
    speed = np.where(is_waiting, 0.0, np.where(is_loading, 1.0, unprofiled))
    clean = np.concatenate([[0.0], np.cumsum((stops - starts) * speed)])
    return HostClock(edges.astype(np.float64), clean)


def synchronisations(frame: Frame) -> Ints:
    """Rows of the calls at which the CPU waits until the GPU has done everything."""
    calls, ops, strings = frame.profile.calls, frame.profile.ops, frame.profile.strings
    waits = np.array(
        [
            kind == CallKind.RUNTIME and _SYNCHRONISING in strings[name]
            for name, kind in zip(ops.name.tolist(), ops.kind.tolist(), strict=True)
        ],
        dtype=np.bool_,
    )
    return np.flatnonzero(waits[calls.op] & (frame.call_iteration >= 0)) if len(calls.op) else np.zeros(0, np.int64)


def _waits(frame: Frame) -> Union:
    """Disjoint intervals in which a CUDA call takes longer than calls of its name do."""
    calls, ops, strings = frame.profile.calls, frame.profile.ops, frame.profile.strings
    runtime = np.flatnonzero((ops.kind[calls.op] == CallKind.RUNTIME) & (frame.call_iteration >= 0))
    name = ops.name[calls.op[runtime]]
    starts, stops = [], []
    for which in np.unique(name).tolist():
        rows = runtime[name == which]
        duration = calls.duration_ns[rows]
        longest = np.quantile(duration, _TYPICAL_QUANTILE) * _LONGEST
        if _SYNCHRONISING in strings[which] or "Memcpy" in strings[which]:
            longest = min(longest, _LONGEST_SYNCHRONISATION_NS)
        long = rows[duration > longest]
        starts.append(calls.start_ns[long] + int(longest))
        stops.append(calls.start_ns[long] + calls.duration_ns[long])
    nothing = np.zeros(0, dtype=np.int64)
    return union(np.concatenate([nothing, *starts]), np.concatenate([nothing, *stops]))
