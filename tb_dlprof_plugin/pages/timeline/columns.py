"""Events as the page's responses encode them: columns of small numbers, one set for each line of the drawing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
import numpy as np

from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.pages.timeline.events import TimelineEvents, timeline_events
from tb_dlprof_plugin.pages.timeline.iteration import IterationOption, one_iteration
from tb_dlprof_plugin.pages.timeline.kinds import EventKind
from tb_dlprof_plugin.pages.timeline.paging import Segments, paging
from tb_dlprof_plugin.profile_view import ProfileView, Selection


class TimelineName(msgspec.Struct, frozen=True):
    """Appearance of events with one name; ``index`` is the value in the ``name`` columns of all responses of this
    iteration. ``other``: the event belongs to another iteration."""

    index: int
    label: str
    kind: EventKind
    other: bool


class TimelineLane(msgspec.Struct, frozen=True):
    """The events of one line of a track, in order of start.

    ``id`` and ``start`` are differences to the value before, the first to 0: rows of the track's source, and ns since
    the window's start. ``duration`` in ns.
    """

    track: int
    level: int
    id: list[int]
    start: list[int]
    duration: list[int]
    name: list[int]


class TimelineSegments(msgspec.Struct, frozen=True):
    """What one line shows of events that are not in this response; ``start`` as a difference to the value before.

    In bins: the window has `TimelinePage.bins`. ``kind`` is an index of `TimelinePage.kinds`, ``cover`` from 1 to
    4: up to a 16th of the segment is covered, a quarter, five eighths, or more.
    """

    track: int
    level: int
    start: list[int]
    length: list[int]
    kind: list[int]
    cover: list[int]


def lanes_of(events: TimelineEvents, rows: Ints) -> list[TimelineLane]:
    """The events ``rows``, which rise."""
    return [
        TimelineLane(
            track=int(events.track[lane[0]]),
            level=int(events.level[lane[0]]),
            id=_differences(events.row[lane]),
            start=_differences(events.start_ns[lane]),
            duration=events.duration_ns[lane].tolist(),
            name=_name_index(events, lane).tolist(),
        )
        for lane in _by_lane(events.track[rows], events.level[rows], rows)
    ]


def names_of(events: TimelineEvents, rows: Ints) -> list[TimelineName]:
    """The names that the events ``rows`` have."""
    return [
        TimelineName(index, events.labels[index // 2], events.kinds[index // 2], bool(index % 2))
        for index in np.unique(_name_index(events, rows)).tolist()
    ]


def segments_of(found: Segments) -> list[TimelineSegments]:
    """The same, line by line."""
    return [
        TimelineSegments(
            track=int(found.track[lane[0]]),
            level=int(found.level[lane[0]]),
            start=_differences(found.start[lane]),
            length=found.length[lane].tolist(),
            kind=found.kind[lane].tolist(),
            cover=found.cover[lane].tolist(),
        )
        for lane in _by_lane(found.track, found.level, np.arange(len(found.start)))
    ]


def _name_index(events: TimelineEvents, rows: Ints) -> Ints:
    """The name of an event of another iteration follows that of the iteration's own."""
    return 2 * events.name[rows] + np.where(events.own[rows], 0, 1)


def _by_lane(track: Ints, level: Ints, rows: Ints) -> Iterator[Ints]:
    if not len(rows):
        return
    cuts = np.flatnonzero((track[1:] != track[:-1]) | (level[1:] != level[:-1])) + 1
    yield from np.split(rows, cuts)


def _differences(values: Ints) -> list[int]:
    result: list[int] = np.diff(values, prepend=0).tolist()
    return result


class TimelineEventsPage(msgspec.Struct, frozen=True):
    """Chunk ``chunk`` of `TimelinePage.chunks`."""

    chunk: int
    names: list[TimelineName]
    lanes: list[TimelineLane]


def timeline_chunk(
    view: ProfileView,
    selection: Selection,
    iteration: IterationOption = None,
    chunk: Annotated[int, Option("Number of a part of the events.")] = 0,
) -> TimelineEventsPage:
    """One chunk.

    Raises:
        KeyError: the iteration has no chunk of this number.
        ValueError: there is no such iteration.
    """
    one = one_iteration(view, selection, iteration)
    dealt = paging(view, one)
    if chunk >= len(dealt.chunks):
        raise KeyError(f"part {chunk}")
    events, rows = timeline_events(view, one), dealt.chunks[chunk]
    return TimelineEventsPage(chunk, names_of(events, rows), lanes_of(events, rows))
