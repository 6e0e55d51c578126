"""Distributes events over responses: the longest in the first one, the others by time in chunks of less than 1 MB.

Zoomed out, only the longest events are wide enough to be seen one by one. So the first response has them, and for the
others what a pixel would show: segments of one kind. A chunk holds the others of a stretch of time.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.pages.timeline.events import TimelineEvents, timeline_events
from tb_dlprof_plugin.pages.timeline.kinds import KINDS
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

FIRST_EVENTS = 6_000
CHUNK_EVENTS = 20_000
"""At most 40 bytes each: differences of ids and starts, duration and name are at most 36 digits and 4 commas."""
_NAMES_BYTES = 180_000
_NAME_COST = 60
MOST_BINS = 1024
_MOST_SEGMENTS = 12_000
COVER_STEPS = (1 / 16, 1 / 4, 5 / 8)
"""Lower limits of the four levels of coverage of a segment: a little must not look like half."""


@dataclass(frozen=True, slots=True)
class Paging:
    """Rows of `TimelineEvents`, rising: those of the first answer, and those of each chunk with its stretch of time."""

    first: Ints
    chunks: list[Ints]
    bounds: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Segments:
    """What is drawn for the events of chunks that were not loaded: columns in order of track, level and start.

    ``start`` and ``length`` count bins of ``length_ns / bins``; ``kind`` is the kind with the most time, ``cover`` how
    much of the segment is covered, from 1 to 4 by `COVER_STEPS`.
    """

    bins: int
    track: Ints
    level: Ints
    start: Ints
    length: Ints
    kind: Ints
    cover: Ints


@per_selection
def paging(view: ProfileView, selection: Selection) -> Paging:
    """The distribution of the iteration's events."""
    events = timeline_events(view, selection)
    cost = np.array([len(msgspec.json.encode(label)) + _NAME_COST for label in events.labels], dtype=np.int64)
    by_length = np.argsort(-events.duration_ns, kind="stable")
    first = _fitting(by_length[:FIRST_EVENTS], events.name, cost)
    rest = np.ones(len(events), dtype=np.bool_)
    rest[first] = False
    by_time = np.flatnonzero(rest)
    by_time = by_time[np.argsort(events.start_ns[by_time], kind="stable")]
    chunks, bounds = [], []
    while len(by_time):
        chunk = _fitting(by_time[:CHUNK_EVENTS], events.name, cost)
        by_time = by_time[len(chunk) :]
        start = events.start_ns[chunk]
        bounds.append((int(start[0]), int((start + events.duration_ns[chunk]).max())))
        chunks.append(np.sort(chunk))
    return Paging(np.sort(first), chunks, bounds)


def _fitting(rows: Ints, name: Ints, cost: Ints) -> Ints:
    """As many of the rows as have names that fit into an answer; at least one."""
    if not len(rows):
        return rows
    _, at = np.unique(name[rows], return_index=True)
    spent = np.zeros(len(rows), dtype=np.int64)
    spent[at] = cost[name[rows[at]]]
    fits = int(np.searchsorted(np.cumsum(spent), _NAMES_BYTES, side="right"))
    return rows[: max(1, fits)]


def segments(events: TimelineEvents, rows: Ints) -> Segments:
    """The events ``rows`` as a screen of `MOST_BINS` pixels would show them, or of fewer where those were too many."""
    bins = MOST_BINS
    found = _segments(events, rows, bins)
    while len(found.start) > _MOST_SEGMENTS and bins > 64:
        bins //= 2
        found = _segments(events, rows, bins)
    return found


def _segments(events: TimelineEvents, rows: Ints, bins: int) -> Segments:
    if not len(rows):
        empty = np.zeros(0, dtype=np.int64)
        return Segments(bins, empty, empty, empty, empty, empty, empty)
    width = events.length_ns / bins
    start = np.clip(events.start_ns[rows], 0, events.length_ns)
    stop = np.clip(events.start_ns[rows] + events.duration_ns[rows], 0, events.length_ns)
    low = np.minimum(start / width, bins - 1).astype(np.int64)
    high = np.maximum(low, np.minimum(np.ceil(stop / width) - 1, bins - 1).astype(np.int64))
    # One row per event and bin that it touches.
    pieces = high - low + 1
    of = np.repeat(np.arange(len(rows)), pieces)
    place = low[of] + np.arange(len(of)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    inside = np.minimum(stop[of], (place + 1) * width) - np.maximum(start[of], place * width)
    kind = np.array([KINDS.index(kind) for kind in events.kinds], dtype=np.int64)[events.name[rows]][of]
    lane = (events.track * (int(events.level.max()) + 1) + events.level)[rows][of]

    cell, at = np.unique((lane * bins + place) * len(KINDS) + kind, return_inverse=True)
    time = np.bincount(at.reshape(-1), weights=np.maximum(inside, 0), minlength=len(cell))
    pixel, kind = np.divmod(cell, len(KINDS))
    order = np.lexsort((-time, pixel))
    first = np.flatnonzero(np.append(True, pixel[order][1:] != pixel[order][:-1]))
    whole = np.add.reduceat(time[order], first)
    pixel, kind = pixel[order][first], kind[order][first]
    cover = 1 + np.searchsorted(COVER_STEPS, whole / width, side="left").astype(np.int64)

    follows = (pixel[1:] == pixel[:-1] + 1) & (kind[1:] == kind[:-1]) & (cover[1:] == cover[:-1])
    begins = np.flatnonzero(np.append(True, ~follows | (pixel[1:] % bins == 0)))
    lane, place = np.divmod(pixel[begins], bins)
    levels = int(events.level.max()) + 1
    return Segments(
        bins=bins,
        track=lane // levels,
        level=lane % levels,
        start=place,
        length=np.diff(np.append(begins, len(pixel))),
        kind=kind[begins],
        cover=cover[begins],
    )
