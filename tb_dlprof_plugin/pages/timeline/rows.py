"""Every event of one iteration's window as a plain table, for scripts."""

from __future__ import annotations

from collections.abc import Iterator

from tb_dlprof_plugin.pages.timeline.events import timeline_events
from tb_dlprof_plugin.pages.timeline.iteration import one_iteration
from tb_dlprof_plugin.profile_view import ProfileView, Selection

HEADINGS = ("id", "row", "level", "name", "kind", "start_ns", "duration_ns", "of_iteration")


def event_rows(view: ProfileView, selection: Selection, iteration: int | None) -> Iterator[tuple[str | int, ...]]:
    """One row per event under `HEADINGS`, by track, level and start. ``start_ns`` counts from the window's start;
    ``of_iteration`` is 1 for the iteration's own events, 0 for those of the ones around.

    Raises:
        ValueError: there is no such iteration.
    """
    events = timeline_events(view, one_iteration(view, selection, iteration))
    columns = (events.track, events.level, events.row, events.name, events.start_ns, events.duration_ns, events.own)
    for track, level, row, name, start, duration, own in zip(*(column.tolist() for column in columns), strict=True):
        on = events.tracks[track]
        label, kind = events.labels[name], events.kinds[name]
        yield (f"{on.source}{row}", on.label, level, label, kind, start, duration, int(own))
