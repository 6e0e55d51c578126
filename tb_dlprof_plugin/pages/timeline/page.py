"""The Timeline page: one recorded iteration as rows of events, the longest of them, and the chunks with the others."""

from __future__ import annotations

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.idle_gaps import idle_gaps
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.step_phases import recorded_parts
from tb_dlprof_plugin.model.formatting import duration
from tb_dlprof_plugin.model.profile import Ints, Role
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.common import ROLES, OpText, SelectedRange, Slice, selected_range
from tb_dlprof_plugin.pages.step_account import ROLE_LABELS, role_labels
from tb_dlprof_plugin.pages.timeline.columns import (
    TimelineLane,
    TimelineName,
    TimelineSegments,
    lanes_of,
    names_of,
    segments_of,
)
from tb_dlprof_plugin.pages.timeline.event_lookup import TimelineSpot, places, spot
from tb_dlprof_plugin.pages.timeline.events import TimelineEvents, TrackKind, timeline_events
from tb_dlprof_plugin.pages.timeline.insights import Insight, insights
from tb_dlprof_plugin.pages.timeline.iteration import IterationOption, one_iteration
from tb_dlprof_plugin.pages.timeline.kinds import KINDS, EventKind, cut
from tb_dlprof_plugin.pages.timeline.paging import paging, segments
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.estimate import step_estimate
from tb_dlprof_plugin.simulation.step_detection import unmarked
from tb_dlprof_plugin.store.run_ref import RunRef


class TimelineIteration(msgspec.Struct, frozen=True):
    """The iteration that is shown, and its times in ns since the window's start.

    It is measured from ``start_ns`` to ``stop_ns``; the CPU ran its calls from ``host_start_ns`` to ``host_stop_ns``.
    """

    index: int
    number: int
    duration_ns: int
    start_ns: int
    stop_ns: int
    host_start_ns: int
    host_stop_ns: int


class TimelineChoice(msgspec.Struct, frozen=True):
    """An iteration that could be shown."""

    index: int
    number: int
    duration_ns: int


class TimelineTrack(msgspec.Struct, frozen=True):
    """A row of the drawing with ``levels`` lines; ``source`` is the letter of its events' ids."""

    key: str
    kind: TrackKind
    source: str
    label: str
    detail: str
    gpu: int | None
    levels: int


class TimelineChunk(msgspec.Struct, frozen=True):
    """Events that `TimelineEventsPage` holds: those that start from ``start_ns`` on, the last of which ends at
    ``stop_ns``."""

    start_ns: int
    stop_ns: int
    events: int


class LongEvent(msgspec.Struct, frozen=True):
    """One of the longest of its kind; ``op`` is the outermost op that it is, lies in or was launched by ("" for none),
    ``percent`` its share of the iteration."""

    spot: TimelineSpot
    op: str
    module: str
    percent: float | None


class TimelinePage(msgspec.Struct, frozen=True):
    """``lanes`` hold the longest events, all where ``chunks`` is empty; ``segments`` the others zoomed out.
    ``window_ns`` is the length of the drawing, cut into ``bins``. ``events`` counts all, ``deeper`` calls nested too
    deep to be drawn. ``iterations`` are those that can be shown instead, the nearest where there are many."""

    ref: RunRef
    headline: str
    range: SelectedRange
    iteration: TimelineIteration
    iterations: list[TimelineChoice]
    window_ns: int
    has_gpu: bool
    events: int
    deeper: int
    parts: list[Slice]
    tracks: list[TimelineTrack]
    names: list[TimelineName]
    lanes: list[TimelineLane]
    kinds: list[EventKind]
    bins: int
    segments: list[TimelineSegments]
    chunks: list[TimelineChunk]
    insights: list[Insight]
    longest_gaps: list[LongEvent]
    longest_gpu: list[LongEvent]
    longest_ops: list[LongEvent]


LONGEST = 15
_CHOICES = 400


def timeline_page(
    view: ProfileView, ref: RunRef, selection: Selection, iteration: IterationOption = None, longest: int = LONGEST
) -> TimelinePage:
    """The timeline of one iteration: number ``iteration`` (an index), else the median one of the selected.

    Raises:
        ValueError: there is no such iteration.
    """
    shown = one_iteration(view, selection, iteration)
    events, dealt = timeline_events(view, shown), paging(view, shown)
    rest = np.concatenate(dealt.chunks) if dealt.chunks else np.zeros(0, dtype=np.int64)
    coarse = segments(events, np.sort(rest))
    return TimelinePage(
        ref=ref,
        headline=_headline(view, shown, iteration is None and selection.count > 1),
        range=selected_range(view, selection),
        iteration=_iteration(view, shown, events),
        iterations=_choices(view, shown.first),
        window_ns=events.length_ns,
        has_gpu=view.profile.has_gpu,
        events=len(events),
        deeper=events.deeper,
        parts=_parts(view, shown),
        tracks=[struct_from(TimelineTrack, track) for track in events.tracks],
        names=names_of(events, dealt.first),
        lanes=lanes_of(events, dealt.first),
        kinds=list(KINDS),
        bins=coarse.bins,
        segments=segments_of(coarse),
        chunks=[
            TimelineChunk(start, stop, len(rows))
            for (start, stop), rows in zip(dealt.bounds, dealt.chunks, strict=True)
        ],
        insights=insights(view, shown, events),
        longest_gaps=_longest(view, shown, events, places(events, "i"), longest),
        longest_gpu=_longest(view, shown, events, places(events, "g"), longest),
        longest_ops=_longest(view, shown, events, _outermost(view, events), longest),
    )


def _iteration(view: ProfileView, one: Selection, events: TimelineEvents) -> TimelineIteration:
    iterations, index = view.profile.iterations, one.first
    start, stop, host_start, host_stop = (
        int(column[index]) - events.origin_ns
        for column in (iterations.start_ns, iterations.stop_ns, iterations.host_start_ns, iterations.host_stop_ns)
    )
    return TimelineIteration(index, int(iterations.number[index]), stop - start, start, stop, host_start, host_stop)


def _choices(view: ProfileView, index: int) -> list[TimelineChoice]:
    iterations = view.profile.iterations
    first = max(0, min(index - _CHOICES // 2, len(iterations) - _CHOICES))
    chosen = slice(first, first + _CHOICES)
    columns = (iterations.number[chosen].tolist(), iterations.duration_ns[chosen].tolist())
    return [TimelineChoice(first + at, *values) for at, values in enumerate(zip(*columns, strict=True))]


def _parts(view: ProfileView, one: Selection) -> list[Slice]:
    times = recorded_parts(view, one)
    whole = int(view.profile.iterations.duration_ns[one.first])
    labels = role_labels(view)
    # Other profilers name few parts of a step: those that nothing in the recording belongs to are left out.
    named = set(view.profile.ops.role.tolist()) | {int(Role.OTHER)}
    shown = [role for role in times if view.profile.source.format == "kineto" or int(role) in named]
    return [Slice(ROLES[role], labels[role], times[role], percent(times[role], whole)) for role in shown]


def _outermost(view: ProfileView, events: TimelineEvents) -> Ints:
    """The outermost ops: an op's inner ops are in its time."""
    profile = view.profile
    rows = places(events, "c")
    rows = rows[events.own[rows]]
    return rows[profile.ops.top[profile.calls.op[events.row[rows]]]]


def _longest(view: ProfileView, one: Selection, events: TimelineEvents, rows: Ints, count: int) -> list[LongEvent]:
    rows = rows[events.own[rows]]
    whole = int(view.profile.iterations.duration_ns[one.first])
    events_shown = []
    for at in rows[np.argsort(-events.duration_ns[rows], kind="stable")[:count]].tolist():
        op, module = _op_of(view, one, events, at)
        events_shown.append(LongEvent(spot(events, at), op, module, percent(int(events.duration_ns[at]), whole)))
    return events_shown


def _op_of(view: ProfileView, one: Selection, events: TimelineEvents, at: int) -> tuple[str, str]:
    """Name and module of the outermost op; of a gap that of the work which ended it."""
    source, row = events.tracks[int(events.track[at])].source, int(events.row[at])
    if source == "i":
        row, source = int(idle_gaps(view, one).next[row]), "g"
    if row < 0:
        return "", ""
    group = int(view.call_group[row] if source == "c" else view.launch_group[row])
    if group < 0:
        return "", ""
    op = OpText(view, group)
    return cut(op.name), cut(op.module)


def _headline(view: ProfileView, one: Selection, is_median: bool) -> str:
    iterations = view.profile.iterations
    length = int(iterations.duration_ns[one.first])
    whole = unmarked(view)
    which = "The recording" if whole else f"Iteration {int(iterations.number[one.first])}"
    text = f"{which}{', the median one,' if is_median else ''} took {duration(length)}"
    estimate = step_estimate(view, view.selection())
    if not estimate.as_recorded:
        text += f" while recorded (a step takes {duration(estimate.ns)} without the profiler)"
    gaps = idle_gaps(view, one)
    if not gaps.window_ns.size:
        parts = [(value, ROLE_LABELS[role].lower()) for role, value in recorded_parts(view, one).items() if value]
        largest = sorted((item for item in parts if item[1] != ROLE_LABELS[Role.OTHER].lower()), reverse=True)[:2]
        if not largest:
            return f"{text} on the CPU; nothing ran on a GPU."
        shares = ", ".join(f"{percent(value, length) or 0:.0f} % {name}" for value, name in largest)
        return f"{text} on the CPU: {shares}."
    idle = 100 - (percent(int(gaps.busy_ns.sum()), int(gaps.window_ns.sum())) or 0.0)
    if not len(gaps) or idle < 0.5:
        return f"{text}; the GPU was busy all of it."
    many = len(iterations.gpu_ids) > 1
    who = "the GPUs were" if many else "the GPU was"
    at = int(np.argmax(gaps.duration_ns))
    longest = duration(int(gaps.duration_ns[at]))
    what = "the recording" if whole else "the recorded step"
    return f"{text}; {who} idle {idle:.0f} % of {what}, at most {longest} at a time."
