"""Looks up single events by their ids, with their position in the drawing."""

from __future__ import annotations

import msgspec
import numpy as np

from tb_dlprof_plugin.model.formatting import short_kernel_name
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.pages.timeline.events import Source, TimelineEvents
from tb_dlprof_plugin.pages.timeline.kinds import EventKind, call_label, cut
from tb_dlprof_plugin.profile_view import ProfileView

OUTSIDE = -1


class TimelineSpot(msgspec.Struct, frozen=True):
    """One event. ``id`` is a letter for the source (c call, g GPU activity, i idle gap, p part of the step) and a row
    of it; ``start_ns`` counts from the window's start. Outside the window ``track`` is -1 and ``kind`` "other".
    """

    id: str
    track: int
    level: int
    label: str
    kind: EventKind
    start_ns: int
    duration_ns: int


def spot(events: TimelineEvents, at: int) -> TimelineSpot:
    """Row ``at`` of the events."""
    track = int(events.track[at])
    name = int(events.name[at])
    return TimelineSpot(
        id=f"{events.tracks[track].source}{int(events.row[at])}",
        track=track,
        level=int(events.level[at]),
        label=events.labels[name],
        kind=events.kinds[name],
        start_ns=int(events.start_ns[at]),
        duration_ns=int(events.duration_ns[at]),
    )


def spots_of(view: ProfileView, events: TimelineEvents, source: Source, rows: Ints) -> list[TimelineSpot]:
    """Some rows of a source, whether they are drawn or not."""
    drawn = places(events, source)
    order = np.argsort(events.row[drawn], kind="stable")
    rows_drawn = events.row[drawn][order]
    result = []
    for row in rows.tolist():
        at = int(np.searchsorted(rows_drawn, row))
        inside = at < len(rows_drawn) and rows_drawn[at] == row
        result.append(spot(events, int(drawn[order[at]])) if inside else _outside(view, events, source, row))
    return result


def find(events: TimelineEvents, event_id: str) -> int:
    """The row of the events that has this id.

    Raises:
        KeyError: none has.
    """
    letter, number = event_id[:1], event_id[1:]
    if letter not in ("c", "g", "i", "p") or not number.isascii() or not number.isdigit() or len(number) > 18:
        raise KeyError(f"event {event_id!r}")
    rows = places(events, letter)  # type: ignore[arg-type]
    matching = rows[events.row[rows] == int(number)]
    if not len(matching):
        raise KeyError(f"event {event_id!r}")
    return int(matching[0])


def places(events: TimelineEvents, source: Source) -> Ints:
    """The rows of the events that come from a source."""
    from_source = np.array([track.source == source for track in events.tracks], dtype=np.bool_)
    return np.flatnonzero(from_source[events.track]) if len(events.tracks) else np.zeros(0, dtype=np.int64)


def _outside(view: ProfileView, events: TimelineEvents, source: Source, row: int) -> TimelineSpot:
    profile = view.profile
    table = profile.calls if source == "c" else profile.launches
    if source == "c":
        label = call_label(view, int(profile.calls.op[row]))
    else:
        label = cut(short_kernel_name(profile.strings[profile.kernels.name[profile.launches.kernel[row]]]))
    return TimelineSpot(
        id=f"{source}{row}",
        track=OUTSIDE,
        level=0,
        label=label,
        kind="other",
        start_ns=int(table.start_ns[row]) - events.origin_ns,
        duration_ns=int(table.duration_ns[row]),
    )
