"""Finds events of an iteration: those whose name contains a text, all of an op, of an op type, of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
import numpy as np

from tb_dlprof_plugin.model.lookup import rows_of_each
from tb_dlprof_plugin.model.profile import Bools, Ints
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.pages.timeline.event_lookup import TimelineSpot, places, spot
from tb_dlprof_plugin.pages.timeline.events import TimelineEvents, timeline_events
from tb_dlprof_plugin.pages.timeline.iteration import IterationOption, one_iteration
from tb_dlprof_plugin.profile_view import ProfileView, Selection, kernel_id


class MatchLane(msgspec.Struct, frozen=True):
    """Matches in one track, in order of start, in all its levels; columns as those of `TimelineLane`."""

    track: int
    level: list[int]
    id: list[int]
    start: list[int]
    duration: list[int]


class TimelineMatches(msgspec.Struct, frozen=True):
    """``count`` events match, of which the first ``shown`` in time are in ``lanes``; ``on_gpu`` of them are GPU work,
    which takes ``gpu_ns``. ``first`` is the one to show first: the longest work of an op or op type on the GPU,
    without any its longest call; the longest launch of a kernel; the first in time of a text."""

    count: int
    shown: int
    on_gpu: int
    gpu_ns: int
    first: TimelineSpot | None
    lanes: list[MatchLane]


MOST_MATCHES = 20_000


def timeline_matches(
    view: ProfileView,
    selection: Selection,
    iteration: IterationOption = None,
    *,
    text: Annotated[str | None, Option("A part of a name.")] = None,
    op: Annotated[str | None, Option("Id of an op.")] = None,
    op_type: Annotated[str | None, Option("Name of an op type.")] = None,
    kernel: Annotated[str | None, Option("Id of a kernel.")] = None,
) -> TimelineMatches:
    """The events that match one of a text in their name (any case), an op's id, an op type's name, a kernel's id; of
    this iteration only, but for a text.

    Raises:
        ValueError: there is no such iteration.
    """
    one = one_iteration(view, selection, iteration)
    events = timeline_events(view, one)
    if op is not None:
        found, first = _of_groups(view, events, np.array([one == op for one in view.groups.ids], dtype=np.bool_))
    elif op_type is not None:
        found, first = _of_groups(view, events, view.profile.named(view.groups.op_type, op_type.__eq__))
    elif kernel is not None:
        found = _of_kernel(view, events, kernel)
        first = _longest(events, found)
    else:
        found = _with_text(view, events, text or "")
        first = found[np.argmin(events.start_ns[found])] if len(found) else -1
    gpu = np.intersect1d(found, places(events, "g"))
    shown = found
    if len(found) > MOST_MATCHES:
        shown = np.sort(found[np.argsort(events.start_ns[found], kind="stable")[:MOST_MATCHES]])
    return TimelineMatches(
        count=len(found),
        shown=len(shown),
        on_gpu=len(gpu),
        gpu_ns=int(events.duration_ns[gpu].sum()),
        first=spot(events, int(first)) if first >= 0 else None,
        lanes=_lanes(events, shown),
    )


def _of_groups(view: ProfileView, events: TimelineEvents, wanted: Bools) -> tuple[Ints, int]:
    """Outermost calls and GPU work of the wanted ops, and the longest work, without any the longest call."""
    calls, launched = places(events, "c"), places(events, "g")
    groups = np.flatnonzero(wanted)
    row = events.row[calls]
    outermost = calls[np.isin(view.call_group[row], groups) & (view.call_top[row] == row) & events.own[calls]]
    work = launched[np.isin(view.launch_group[events.row[launched]], groups) & events.own[launched]]
    return np.sort(np.concatenate((outermost, work))), _longest(events, work if len(work) else outermost)


def _of_kernel(view: ProfileView, events: TimelineEvents, kernel: str) -> Ints:
    rows = places(events, "g")
    rows = rows[events.own[rows]]
    of = view.profile.launches.kernel[events.row[rows]]
    same = [value for value in np.unique(of).tolist() if kernel_id(view, value) == kernel]
    return rows[np.isin(of, same)]


def _with_text(view: ProfileView, events: TimelineEvents, text: str) -> Ints:
    wanted = text.casefold().strip()
    if not wanted:
        return np.zeros(0, dtype=np.int64)
    profile, strings = view.profile, view.profile.strings
    hit = np.array([wanted in label.casefold() for label in events.labels], dtype=np.bool_)
    result = hit[events.name] if len(hit) else np.zeros(0, dtype=np.bool_)

    def whole(source: Ints, column: Ints, name: Callable[[int], str]) -> None:
        """Searches full names too, because labels are short."""
        named: Bools = np.zeros(int(column.max(initial=0)) + 1, dtype=np.bool_)
        for value in np.unique(column).tolist():
            named[value] = wanted in name(value).casefold()
        result[source] |= named[column]

    calls, work = places(events, "c"), places(events, "g")
    whole(calls, profile.calls.op[events.row[calls]], lambda op: strings[profile.ops.name[op]])
    kernels = profile.launches.kernel[events.row[work]]
    whole(work, kernels, lambda kernel: strings[profile.kernels.name[kernel]])
    return np.flatnonzero(result)


def _longest(events: TimelineEvents, rows: Ints) -> int:
    return int(rows[np.argmax(events.duration_ns[rows])]) if len(rows) else -1


def _lanes(events: TimelineEvents, rows: Ints) -> list[MatchLane]:
    lanes = []
    for track, mine in rows_of_each(events.track[rows]):
        mine = rows[mine]
        mine = mine[np.argsort(events.start_ns[mine], kind="stable")]
        lanes.append(
            MatchLane(
                track=track,
                level=events.level[mine].tolist(),
                id=np.diff(events.row[mine], prepend=0).tolist(),
                start=np.diff(events.start_ns[mine], prepend=0).tolist(),
                duration=events.duration_ns[mine].tolist(),
            )
        )
    return lanes
