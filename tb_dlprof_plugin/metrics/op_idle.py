"""Pieces of time within ops in which the GPU was idle: between the first and the last piece of GPU work of one call.

DLProf (User Guide 1.8, section 10.3): "GPU idle time is the time between GPU kernel operations for a node when the GPU
is not executing a kernel". Copies and sets are GPU work as kernels are, and work of other ops keeps the GPU busy too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.intervals import union
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@dataclass(frozen=True, slots=True)
class IdlePieces:
    """One row per piece: within the outermost op call ``call`` (a row of `Profile.calls`), on GPU number ``device``
    of those that have work, from ``start_ns`` to ``stop_ns``; ``iteration`` is the index of the call's first launch."""

    call: Ints
    device: Ints
    iteration: Ints
    start_ns: Ints
    stop_ns: Ints

    def __len__(self) -> int:
        return len(self.call)

    @property
    def duration_ns(self) -> Ints:
        """How long each piece is."""
        return self.stop_ns - self.start_ns


@per_selection
def idle_pieces(view: ProfileView, selection: Selection) -> IdlePieces:
    """Idle pieces within the ops that launched work in the selected iterations."""
    launches = view.profile.launches
    rows = np.flatnonzero(view.selected_launches(selection) & (view.launch_group >= 0))
    if not len(rows):
        return IdlePieces(*(np.zeros(0, dtype=np.int64) for _ in range(5)))
    devices, device = np.unique(launches.device, return_inverse=True)
    device = device.reshape(-1)[rows]
    call = view.call_top[launches.call[rows]]
    order = np.lexsort((device, call))
    rows, call, device = rows[order], call[order], device[order]
    begins = np.flatnonzero(np.append(True, (call[1:] != call[:-1]) | (device[1:] != device[:-1])))
    span_start = np.minimum.reduceat(launches.start_ns[rows], begins)
    span_stop = np.maximum.reduceat((launches.start_ns + launches.duration_ns)[rows], begins)
    iteration = np.minimum.reduceat(view.launch_iteration[rows], begins)
    found = []
    for number, name in enumerate(devices.tolist()):
        here = launches.device == name
        busy_start, busy_stop = union(launches.start_ns[here], (launches.start_ns + launches.duration_ns)[here])
        mine = np.flatnonzero(device[begins] == number)
        span, start, stop = _gaps_within(busy_stop[:-1], busy_start[1:], span_start[mine], span_stop[mine])
        owner = mine[span]
        found.append((call[begins][owner], np.full(len(span), number), iteration[owner], start, stop))
    return IdlePieces(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _gaps_within(gap_start: Ints, gap_stop: Ints, span_start: Ints, span_stop: Ints) -> tuple[Ints, Ints, Ints]:
    """What of the sorted, disjoint gaps lies in each span: the span's index, start and stop of each piece."""
    first = np.searchsorted(gap_stop, span_start, side="right")
    count = np.maximum(np.searchsorted(gap_start, span_stop, side="left") - first, 0)
    span = np.repeat(np.arange(len(span_start), dtype=np.int64), count)
    before = np.cumsum(count) - count
    gap = np.arange(len(span), dtype=np.int64) - before[span] + first[span]
    return span, np.maximum(gap_start[gap], span_start[span]), np.minimum(gap_stop[gap], span_stop[span])
