"""The events of one iteration, flat: every call, GPU activity and idle gap that touches its window, by track and level.

The window reaches from where the CPU or the GPU began the iteration to where both are done with it. The CPU often runs
ahead, so the window also holds work of the iterations around: it is drawn in paler colours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal

import numpy as np

from tb_dlprof_plugin.metrics.idle_gaps import IdleGaps, idle_gaps
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.formatting import share
from tb_dlprof_plugin.model.lookup import rows_of_each
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, Role
from tb_dlprof_plugin.pages.common import ROLES
from tb_dlprof_plugin.pages.idle_causes import CAUSES, cause_labels, largest_causes
from tb_dlprof_plugin.pages.step_account import role_labels
from tb_dlprof_plugin.pages.timeline.iteration import one_iteration
from tb_dlprof_plugin.pages.timeline.kinds import (
    IDLE_KINDS,
    EventKind,
    Named,
    call_kinds,
    named_calls,
    named_launches,
)
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

TrackKind = Literal["parts", "idle", "stream", "thread"]
Source = Literal["c", "g", "i", "p"]
"""Whose rows the ids of a track count: calls, GPU activities, idle gaps of the iteration, stretches of parts."""

MOST_LEVELS = 48
"""Calls nested deeper are left out of the drawing, and counted: recursion can go half a million deep."""
_MOST_STREAM_LEVELS = 8
HEADINGS = ("id", "row", "level", "name", "kind", "start_ns", "duration_ns", "of_iteration")
"""Of `event_rows`."""


@dataclass(frozen=True, slots=True)
class Track:
    """A row of the drawing; ``levels`` are its lines, ``detail`` says in words what is in it."""

    key: str
    kind: TrackKind
    source: Source
    label: str
    detail: str
    gpu: int | None
    levels: int


@dataclass(frozen=True, slots=True)
class TimelineEvents:
    """Columns in order of track, level and start; times in ns since ``origin_ns``.

    ``row`` counts the track's source; ``name`` is a row of ``labels`` and ``kinds``, `own` is True if the event belongs
    to this iteration; ``deeper`` counts calls that are nested too deep to be drawn.
    """

    origin_ns: int
    length_ns: int
    tracks: list[Track]
    track: Ints
    level: Ints
    row: Ints
    start_ns: Ints
    duration_ns: Ints
    name: Ints
    own: Bools
    labels: list[str]
    kinds: list[EventKind]
    deeper: int

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True)
class _TrackEvents:
    """The events of one track."""

    track: Track
    level: Ints
    row: Ints
    start_ns: Ints
    duration_ns: Ints
    named: Named
    own: Bools


@per_selection
def timeline_events(view: ProfileView, selection: Selection) -> TimelineEvents:
    """The events of the one iteration ``selection``."""
    index = selection.first
    iterations = view.profile.iterations
    origin = int(min(iterations.start_ns[index], iterations.host_start_ns[index]))
    end = int(max(iterations.stop_ns[index], iterations.host_stop_ns[index]))
    calls, launches = view.profile.calls, view.profile.launches
    called = _touching(calls.start_ns, calls.duration_ns, origin, end)
    ran = _touching(launches.start_ns, launches.duration_ns, origin, end)
    deep = calls.depth[called] >= MOST_LEVELS
    parts = [
        *_step_parts(view, called[view.call_iteration[called] == index], ran[view.launch_iteration[ran] == index]),
        *_gpu_tracks(view, selection, ran),
        *_thread_tracks(view, index, called[~deep]),
    ]
    return _together(parts, origin, end, int(deep.sum()))


def _touching(start_ns: Ints, duration_ns: Ints, begin: int, end: int) -> Ints:
    """Rows that overlap the window, or are instants in it."""
    stop = start_ns + duration_ns
    return np.flatnonzero((start_ns < end) & ((stop > begin) | ((duration_ns == 0) & (start_ns >= begin))))


def _step_parts(view: ProfileView, called: Ints, ran: Ints) -> list[_TrackEvents]:
    device = view.profile.launches.device
    tracks: list[tuple[str, str, int | None, Stretches]] = [
        ("p:cpu", "CPU works on", None, cpu_stretches(view, called)),
        *(
            (f"p:{gpu}", f"GPU {gpu} works on", gpu, gpu_stretches(view, ran[device[ran] == gpu]))
            for gpu in view.profile.iterations.gpu_ids
        ),
    ]
    parts: list[_TrackEvents] = []
    labels = role_labels(view)
    count = 0
    for key, label, gpu, (start, stop, role) in tracks:
        if not len(start):
            continue
        detail = "the part of the step that launched it" if gpu is not None else "the part of the step that it runs"
        # Their ids count on from track to track.
        rows = count + np.arange(len(start))
        count += len(start)
        own = np.ones(len(start), dtype=np.bool_)
        named = Named(role, [labels[part] for part in Role], [ROLES[part] for part in Role])
        track = Track(key, "parts", "p", label, detail, gpu, 1)
        parts.append(_TrackEvents(track, _zeros(len(start)), rows, start, stop - start, named, own))
    return parts


def _gpu_tracks(view: ProfileView, selection: Selection, ran: Ints) -> list[_TrackEvents]:
    launches = view.profile.launches
    gaps = idle_gaps(view, selection)
    gpus = view.profile.iterations.gpu_ids
    parts = []
    for place, gpu in enumerate(gpus):
        parts.append(_idle_track(view, gaps, place, gpu))
        here = ran[launches.device[ran] == gpu]
        streams = [(stream, here[rows]) for stream, rows in rows_of_each(launches.stream[here])]
        for stream, rows in sorted(streams, key=lambda one: -int(launches.duration_ns[one[1]].sum())):
            kernel = int(view.launch_is_kernel[rows].sum())
            level = _levels(launches.start_ns[rows], launches.duration_ns[rows])
            track = Track(
                key=f"g:{gpu}:{stream}",
                kind="stream",
                source="g",
                label=f"GPU {gpu}, stream {stream}",
                detail=_counts((kernel, "kernel", "kernels"), (len(rows) - kernel, "copy or set", "copies and sets")),
                gpu=gpu,
                levels=int(level.max(initial=0)) + 1,
            )
            named = named_launches(view, rows)
            own = view.launch_iteration[rows] == selection.first
            parts.append(
                _TrackEvents(track, level, rows, launches.start_ns[rows], launches.duration_ns[rows], named, own)
            )
    return parts


def _idle_track(view: ProfileView, gaps: IdleGaps, place: int, gpu: int) -> _TrackEvents:
    rows = np.flatnonzero(gaps.gpu == place)
    labels, kinds = list(cause_labels(view).values()), [IDLE_KINDS[cause] for cause in CAUSES]
    detail = _counts((len(rows), "gap", "gaps"))
    if detail:
        idle = percent(int(gaps.duration_ns[rows].sum()), int(gaps.window_ns[:, place].sum()))
        detail += f", {share(idle)} of the step"
    track = Track(f"i:{gpu}", "idle", "i", f"GPU {gpu} idle", detail, gpu, 1)
    named = Named(largest_causes(gaps.activity_ns[rows]), labels, kinds)
    own = np.ones(len(rows), dtype=np.bool_)
    return _TrackEvents(track, _zeros(len(rows)), rows, gaps.start_ns[rows], gaps.duration_ns[rows], named, own)


def _thread_tracks(view: ProfileView, index: int, called: Ints) -> list[_TrackEvents]:
    calls = view.profile.calls
    kind = call_kinds(view)
    # Calls are in order of their threads.
    edges = np.flatnonzero(np.diff(calls.thread[called])) + 1
    parts = []
    for rows in np.split(called, edges) if len(called) else []:
        thread = int(calls.thread[rows[0]])
        label, weight = _thread_label(view, thread, rows)
        named = named_calls(view, rows, kind[rows])
        track = Track(
            key=f"c:{thread}",
            kind="thread",
            source="c",
            label=label,
            detail=_counts((len(rows), "call", "calls")),
            gpu=None,
            levels=int(calls.depth[rows].max(initial=0)) + 1,
        )
        own = view.call_iteration[rows] == index
        part = _TrackEvents(track, calls.depth[rows], rows, calls.start_ns[rows], calls.duration_ns[rows], named, own)
        parts.append((weight, part))
    return [part for _, part in sorted(parts, key=lambda item: item[0])]


def _thread_label(view: ProfileView, thread: int, rows: Ints) -> tuple[str, tuple[int, int]]:
    """The purpose of a thread, and its sort key. A trace has numbers of threads, no names."""
    ops = view.profile.ops
    op = view.profile.calls.op[rows]
    kind, role = ops.kind[op], ops.role[op]
    training = ((kind == CallKind.MODULE) | ((kind == CallKind.OP) & (role == Role.FORWARD))).any()
    backward = ((kind == CallKind.OP) & (role == Role.BACKWARD)).any()
    if training:
        return f"CPU thread {thread}: training", (0, -len(rows))
    if backward:
        return f"CPU thread {thread}: backward", (1, -len(rows))
    if (kind == CallKind.OP).any():
        return f"CPU thread {thread}: other ops", (2, -len(rows))
    if (kind == CallKind.OVERHEAD).all():
        return f"CPU thread {thread}: profiler", (4, -len(rows))
    return f"CPU thread {thread}: CUDA calls", (3, -len(rows))


def _levels(start_ns: Ints, duration_ns: Ints) -> Ints:
    """The first line on which each event, in order of start, overlaps none before it; events of a stream rarely do."""
    stop = start_ns + duration_ns
    level = _zeros(len(start_ns))
    if len(start_ns) < 2 or (start_ns[1:] >= np.maximum.accumulate(stop)[:-1]).all():
        return level
    free: list[int] = []
    running: list[tuple[int, int]] = []
    used = 0
    for at, (begin, end) in enumerate(zip(start_ns.tolist(), stop.tolist(), strict=True)):
        while running and running[0][0] <= begin:
            heappush(free, heappop(running)[1])
        if free:
            line = heappop(free)
        else:
            line, used = used, used + 1
        heappush(running, (end, line))
        level[at] = min(line, _MOST_STREAM_LEVELS - 1)
    return level


def _together(parts: list[_TrackEvents], origin: int, end: int, deeper: int) -> TimelineEvents:
    labels: list[str] = []
    kinds: list[EventKind] = []
    places: dict[tuple[str, EventKind], int] = {}
    columns: list[tuple[Ints, ...]] = []
    for number, part in enumerate(parts):
        again = []
        for key in zip(part.named.labels, part.named.kinds, strict=True):
            again.append(places.setdefault(key, len(places)))
        order = np.lexsort((part.start_ns, part.level))
        name = np.array(again, dtype=np.int64)[part.named.of] if again else part.named.of
        own = part.own.astype(np.int64)
        wide = (np.full(len(part.row), number), part.level, part.row, part.start_ns, part.duration_ns, name, own)
        columns.append(tuple(column[order] for column in wide))
    for label, kind in places:
        labels.append(label)
        kinds.append(kind)
    empty = _zeros(0)
    track, level, row, start, duration, name, own = (
        np.concatenate(column).astype(np.int64) for column in zip((empty,) * 7, *columns, strict=True)
    )
    return TimelineEvents(
        origin_ns=origin,
        length_ns=max(1, end - origin),
        tracks=[part.track for part in parts],
        track=track,
        level=level,
        row=row,
        start_ns=start - origin,
        duration_ns=duration,
        name=name,
        own=own.astype(np.bool_),
        labels=labels,
        kinds=kinds,
        deeper=deeper,
    )


def _counts(*counted: tuple[int, str, str]) -> str:
    return ", ".join(f"{count:,} {one if count == 1 else many}" for count, one, many in counted if count)


def _zeros(count: int) -> Ints:
    return np.zeros(count, dtype=np.int64)


def event_rows(view: ProfileView, selection: Selection, iteration: int | None) -> Iterator[tuple[str | int, ...]]:
    """A plain table for scripts: one row per event under `HEADINGS`, by track, level and start.

    ``start_ns`` counts from the window's start. ``of_iteration`` is 1 for the iteration's own events, 0 for others.

    Raises:
        ValueError: there is no such iteration.
    """
    events = timeline_events(view, one_iteration(view, selection, iteration))
    columns = (events.track, events.level, events.row, events.name, events.start_ns, events.duration_ns, events.own)
    for track, level, row, name, start, duration, own in zip(*(column.tolist() for column in columns), strict=True):
        on = events.tracks[track]
        label, kind = events.labels[name], events.kinds[name]
        yield (f"{on.source}{row}", on.label, level, label, kind, start, duration, int(own))


Stretches = tuple[Ints, Ints, Ints]
"""Start and stop (ns) and `Role` of each stretch, in order of time. A stretch reaches from the first to the last of the
events of one part between which no event of another part begins."""


def cpu_stretches(view: ProfileView, rows: Ints) -> Stretches:
    """The parts on the CPU, from the outermost of the calls ``rows`` with a part."""
    calls, ops = view.profile.calls, view.profile.ops
    role = ops.role[calls.op]
    parent = view.call_parent[rows]
    inside = (parent >= 0) & (role[np.maximum(parent, 0)] != Role.OTHER)
    chosen = rows[(role[rows] != Role.OTHER) & ~inside]
    return _stretches(calls.start_ns[chosen], calls.duration_ns[chosen], role[chosen])


def gpu_stretches(view: ProfileView, rows: Ints) -> Stretches:
    """The parts on a GPU: the part that launched its work, if known."""
    profile = view.profile
    launches = profile.launches
    rows = rows[launches.call[rows] >= 0]
    role = profile.ops.role[profile.calls.op[launches.call[rows]]]
    known = role != Role.OTHER
    rows = rows[known]
    return _stretches(launches.start_ns[rows], launches.duration_ns[rows], role[known])


def _stretches(start_ns: Ints, duration_ns: Ints, role: Ints) -> Stretches:
    order = np.argsort(start_ns, kind="stable")
    start_ns, role = start_ns[order], role[order]
    stop_ns = start_ns + duration_ns[order]
    if not len(start_ns):
        return start_ns, stop_ns, role
    first = np.flatnonzero(np.append(True, role[1:] != role[:-1]))
    stop = np.maximum.reduceat(stop_ns, first)
    # A part ends where the next one begins.
    stop[:-1] = np.minimum(stop[:-1], start_ns[first[1:]])
    return start_ns[first], stop, role[first]
