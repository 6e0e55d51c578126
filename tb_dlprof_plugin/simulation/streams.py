"""Dependencies between activities of different streams, and the delays between streams.

A trace lists ``cudaStreamWaitEvent`` without its arguments. But an activity after such a call depends on one of another
stream only if it began after that had ended. In a recording without such calls, only the order in which streams
alternated is known.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.grouping import numbered
from tb_dlprof_plugin.model.intervals import covered_by_others
from tb_dlprof_plugin.model.lookup import rows_of_each, take_or
from tb_dlprof_plugin.model.profile import Floats, Ints
from tb_dlprof_plugin.names.cuda_calls import CudaCall
from tb_dlprof_plugin.profile_view import ProfileView

_CLOCK_ERROR_NS = 500
_REMEMBERED = 64
"""Groups of event waits that a stream may still resolve, and streams whose last row a wait may be for: those whose rows
end last. So a row costs no more with thousands of streams."""
_CAUSE_SHARE = 0.5
"""Share of a late start in which other streams run, from which they count as its cause."""


@dataclass(frozen=True, eq=False)
class Joined:
    """``waits_for`` has the rows of other streams that a row waits for; ``lag_ns`` by how much each row began later
    than it could, while other streams used the GPU."""

    waits_for: dict[int, tuple[int, ...]]
    lag_ns: Floats


@dataclass(slots=True)
class _EventWaits:
    """Waits for events between two launches: how many have found no dependency, and the streams' last rows before, as
    their end, the stream and the row, by end."""

    left: int
    last_rows: list[tuple[int, int, int]]


def joined(view: ProfileView, launch: Ints, stream: Ints, device: Ints) -> Joined:
    """The dependencies between streams. What a CUDA graph launches keeps its distances.

    Args:
        view: the run.
        launch: rows of `Profile.launches` in the CPU's order, -1 for other rows.
        stream: the stream of each, as small numbers.
        device: the GPU of each stream.
    """
    lag = np.zeros(len(launch))
    if not (launch >= 0).any():
        return Joined({}, lag)
    launches, calls = view.profile.launches, view.profile.calls
    row = np.maximum(launch, 0)
    starts, stops = launches.start_ns[row], launches.start_ns[row] + launches.duration_ns[row]
    call = launches.call[row]
    in_graph = (launch >= 0) & (np.bincount(call[launch >= 0], minlength=len(calls))[call] > 1)
    if len(np.unique(stream[launch >= 0])) < 2:
        late = starts - _ready(view, launch, stops, {}, calls.start_ns[call])
        return Joined({}, np.where(in_graph, np.maximum(late, 0), 0).astype(np.float64))
    known = view.is_cuda_call(CudaCall.STREAM_WAIT_EVENT)
    if known.any():
        events = _events_before(view, np.flatnonzero(known), launch, calls.start_ns[call], calls.thread[call])
    else:
        events = _changes(launch, stream)
    waits_for = _dependencies(launch, stream, starts, stops, events)
    ready = _ready(view, launch, stops, waits_for, calls.start_ns[call])
    launched = np.flatnonzero(launch >= 0)
    for _, rows in rows_of_each(device[stream[launched]]):
        rows = launched[rows]
        late = np.flatnonzero(starts[rows] > ready[rows])
        mine = rows[late]
        shared = covered_by_others(stream[rows], starts[rows], stops[rows], late, ready[mine], starts[mine])
        by = starts[mine] - ready[mine]
        lag[mine] = np.where((shared >= _CAUSE_SHARE * by) | in_graph[mine], by, 0)
    return Joined(waits_for, lag)


def _dependencies(launch: Ints, stream: Ints, starts: Ints, stops: Ints, events: Ints) -> dict[int, tuple[int, ...]]:
    # Those that may still find a dependency, by their numbers.
    groups: dict[int, _EventWaits] = {}
    made = 0
    seen: dict[int, int] = defaultdict(int)
    last_row: dict[int, tuple[int, int, int]] = {}
    last_rows: list[tuple[int, int, int]] = []
    latest: dict[tuple[int, int], int] = {}
    result: dict[int, tuple[int, ...]] = {}
    columns = (launch.tolist(), stream.tolist(), starts.tolist(), events.tolist())
    ended: list[int] = stops.tolist()
    for at, (activity, mine, start, waited) in enumerate(zip(*columns, strict=True)):
        if activity < 0:
            continue
        if waited:
            groups[made] = _EventWaits(waited, last_rows)
            groups.pop(made - _REMEMBERED, None)
            made += 1
        found: list[int] = []
        resolved: list[int] = []
        for number in reversed(groups):
            if number < seen[mine]:
                break
            group = groups[number]
            # The one that ended last is the one that was waited for.
            place = bisect_left(group.last_rows, (start + _CLOCK_ERROR_NS + 1,))
            while group.left and place:
                place -= 1
                _, other, before = group.last_rows[place]
                if other != mine and latest.get((mine, other), -1) < before:
                    latest[mine, other] = before
                    group.left -= 1
                    found.append(before)
            if not group.left:
                resolved.append(number)
        for number in resolved:
            del groups[number]
        if found:
            result[at] = tuple(found)
        if waited and made - 1 in groups:
            groups[made - 1].last_rows = last_rows.copy()
        seen[mine] = made
        own = last_row.get(mine)
        if own is not None:
            place = bisect_left(last_rows, own)
            if last_rows[place : place + 1] == [own]:
                del last_rows[place]
        last_row[mine] = (ended[at], mine, at)
        insort(last_rows, last_row[mine])
        del last_rows[:-_REMEMBERED]
    return result


def _ready(view: ProfileView, launch: Ints, stops: Ints, waits_for: dict[int, tuple[int, ...]], called: Ints) -> Ints:
    """When each row could have begun: launched, its stream free (also of what was launched before the recording), and
    what it waits for done."""
    launches = view.profile.launches
    free = np.full(len(launches), np.iinfo(np.int64).min)
    for _, mine in rows_of_each(numbered(launches.device, launches.stream)):
        mine = mine[np.argsort(launches.start_ns[mine], kind="stable")]
        free[mine[1:]] = np.maximum.accumulate(launches.start_ns[mine] + launches.duration_ns[mine])[:-1]
    ready: Ints = np.maximum(called, take_or(free, launch, called))
    for at, rows in waits_for.items():
        ready[at] = max(ready[at], *(stops[list(rows)]))
    return ready


def _changes(launch: Ints, stream: Ints) -> Ints:
    """1 for a launch on another stream than the one before."""
    result = np.zeros(len(launch), dtype=np.int64)
    rows = np.flatnonzero(launch >= 0)
    result[rows[1:]] = stream[rows[1:]] != stream[rows[:-1]]
    return result


def _events_before(view: ProfileView, known: Ints, launch: Ints, at: Ints, thread: Ints) -> Ints:
    """How many waits for events each row's thread has called since its launch before."""
    calls = view.profile.calls
    result = np.zeros(len(launch), dtype=np.int64)
    launched = np.flatnonzero(launch >= 0)
    waits_of = {which: np.sort(calls.start_ns[known[rows]]) for which, rows in rows_of_each(calls.thread[known])}
    for which, rows in rows_of_each(thread[launched]):
        mine = launched[rows]
        until = np.searchsorted(waits_of[which], at[mine]) if which in waits_of else np.zeros(len(mine), dtype=np.int64)
        result[mine] = np.diff(until, prepend=0)
    return result
