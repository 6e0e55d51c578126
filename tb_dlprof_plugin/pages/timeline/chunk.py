"""The events of one stretch of an iteration's time that are too short for the first response."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.pages.timeline.columns import TimelineLane, TimelineName, lanes_of, names_of
from tb_dlprof_plugin.pages.timeline.events import timeline_events
from tb_dlprof_plugin.pages.timeline.iteration import IterationOption, one_iteration
from tb_dlprof_plugin.pages.timeline.paging import paging
from tb_dlprof_plugin.profile_view import ProfileView, Selection


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
