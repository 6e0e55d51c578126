"""The Launches page: whether CPU or GPU sets the pace, why the GPU is idle, and what delays its work.

Shares are of the step without the profiler; bars, rows of iterations, gaps and delays are as recorded.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.cpu_activity import ACTIVITIES
from tb_dlprof_plugin.metrics.idle_gaps import GapKind, IdleGaps, idle_gaps
from tb_dlprof_plugin.metrics.iteration_pace import IterationPace, iteration_pace
from tb_dlprof_plugin.metrics.iteration_pace import Pace as Paces
from tb_dlprof_plugin.metrics.iterations import StepTotals, percent, step_totals
from tb_dlprof_plugin.metrics.launches import LaunchTotals, launch_totals
from tb_dlprof_plugin.metrics.step_buckets import by_cause
from tb_dlprof_plugin.metrics.step_idle import ACTIVITY_GROUPS, StepIdle, step_idle
from tb_dlprof_plugin.metrics.without_recorder import shortened
from tb_dlprof_plugin.model.formatting import duration
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.pages.common import NO_GPU, SelectedRange, Slice, StepFigures, selected_range, step_figures
from tb_dlprof_plugin.pages.idle_causes import (
    CAUSES,
    DEFINITIONS,
    IdleActivity,
    IdleCause,
    activity_rows,
    cause_labels,
    cause_slices,
    while_words,
)
from tb_dlprof_plugin.pages.iteration_bins import IterationBar, bar_spans, bars_note, iteration_bar
from tb_dlprof_plugin.pages.launch_rows import (
    PACES,
    GapKindName,
    GapRow,
    LaunchedKernel,
    Pace,
    SyncRow,
    gap_rows,
    kernel_rows,
    sync_rows,
)
from tb_dlprof_plugin.pages.overview import RECORDER, Category
from tb_dlprof_plugin.pages.quantities import GPU_IDLE
from tb_dlprof_plugin.pages.sentences import TextPart, idle_words, plain, step_words, text_of
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.step_detection import unmarked
from tb_dlprof_plugin.simulation.synchronisation import SyncGroups, sync_groups
from tb_dlprof_plugin.store.run_ref import RunRef


class PaceRow(msgspec.Struct, frozen=True):
    """One recorded iteration on one GPU. ``busy_ns + idle_ns == duration_ns``; ``idle_by_cause_ns`` in the order of
    ``LaunchesPage.causes`` sums to ``idle_ns``. ``late_percent`` is idle time because work was launched late,
    ``slack_percent`` time that the CPU did not need; None where the launches or the CPU were not recorded."""

    number: Annotated[int, Column("Iteration", "Number of the iteration, as the training counts them.")]
    gpu: Annotated[int, Column("GPU", "Index of the GPU.", choice=True)]
    pace: Annotated[Pace, Column("Pace", "pace")]
    duration_ns: Annotated[int, Column("Duration", "iterations")]
    idle_percent: Annotated[
        float | None, Column("Idle, as recorded", "Share of the recorded iteration in which nothing ran on the GPU.")
    ]
    late_percent: Annotated[
        float | None,
        Column("Launched late"),
        Definition(
            "launchedLate",
            "Share of the recorded iteration in which the GPU was idle and had no work launched yet.",
        ),
    ]
    slack_percent: Annotated[float | None, Column("CPU not needed", "cpuSlack")]
    gaps: Annotated[int, Column("Gaps", "Idle gaps of the GPU in the iteration.")]
    longest_gap_ns: Annotated[int, Column("Longest gap", "The longest idle gap of the iteration.")]
    idle_by_cause_ns: Annotated[
        list[int],
        Column(
            "Cause",
            "The bucket of the account of a step that holds most of the idle time; the bar shows all.",
            choice=True,
            width=360,
        ),
    ]
    index: int
    busy_ns: int
    idle_ns: int


class LaunchFigures(msgspec.Struct, frozen=True):
    """Of the selected iterations; the first two are shares of the step without the profiler, the rest is as recorded.

    Delays in ns; ``launches`` counts kernels, copies and sets, ``timed`` those of them whose delay is known.
    ``started_early`` began before their call returned and count as a delay of 0; ``clock_disagrees`` seem to begin
    before their call did, and have no delay.
    """

    idle_percent: Annotated[float | None, GPU_IDLE]
    slack_percent: float | None
    launches: int
    timed: int
    median_delay_ns: int | None
    mean_delay_ns: int | None
    max_delay_ns: int | None
    mean_queue: float | None
    max_queue: int | None
    short_percent: float | None
    started_early: int
    clock_disagrees: int
    sync_calls_per_iteration: float
    sync_ns_per_iteration: int


class LaunchesPage(msgspec.Struct, frozen=True):
    """``bars`` are the recorded iterations by ``bar_categories``, the GPU's busy time first (means over the GPUs), the
    recorder's overhead last.

    ``bars_note`` says what a bar represents if it is not one iteration. The rest is of the selected iterations.
    ``causes`` are those of the idle time, buckets of the account of a step; ``idle_by_activity`` is the same time in
    detail. ``total_...`` count the rows before the limit. Idle slices are shares of the idle time of all GPUs in steps
    without the profiler.
    """

    ref: RunRef
    headline: str
    headline_parts: list[TextPart]
    step: StepFigures
    step_words: str
    range: SelectedRange
    has_gpu: bool
    gpus: list[int]
    figures: LaunchFigures
    bar_categories: list[Category]
    causes: list[IdleCause]
    idle_by_cause: list[Slice]
    idle_by_activity: list[IdleActivity]
    idle_by_kind: list[Slice]
    gap_kinds: list[Category]
    bars: list[IterationBar]
    bars_note: str
    iterations: list[PaceRow]
    total_iterations: int
    kernels: list[LaunchedKernel]
    total_kernels: int
    syncs: list[SyncRow]
    total_syncs: int
    gaps: list[GapRow]
    total_gaps: int


_ITERATION_ROWS = 500
_BUSY = Category("busy", "GPU busy", "A kernel, copy or set runs on the GPU.", True)
_KINDS: dict[GapKind, tuple[GapKindName, str, str]] = {
    GapKind.HOST_WAIT: (
        "host_wait",
        "Launched late",
        "The next work was launched only after the GPU had run out of work (host wait).",
    ),
    GapKind.KERNEL_WAIT: (
        "kernel_wait",
        "Between queued work",
        "The next work was already launched and began within 30 µs, as one follows another (kernel wait).",
    ),
    GapKind.OTHER: (
        "other",
        "Other",
        "The next work was already launched and began after more than 30 µs: it waited for another stream or device.",
    ),
    GapKind.UNKNOWN: ("unknown", "Unknown", "When the next work was launched was not recorded."),
}
_MOSTLY = 0.5


def gap_kind_label(kind: int) -> str:
    """When the work that ended a gap was launched, such as "Launched late"."""
    return _KINDS[GapKind(kind)][1]


def launches_page(view: ProfileView, ref: RunRef, selection: Selection) -> LaunchesPage:
    """The Launches page over the selected iterations."""
    profile = view.profile
    gaps, pace = idle_gaps(view, selection), iteration_pace(view, selection)
    syncs = sync_groups(view, selection)
    steps, idle = step_totals(view, selection), step_idle(view, selection)
    figures = _figures(view, selection, idle, syncs)
    kernels, total_kernels = kernel_rows(view, selection)
    sync, total_syncs = sync_rows(view, selection, syncs)
    largest, total_gaps = gap_rows(view, gaps)
    headline = _headline(view, selection, steps, idle, largest)
    return LaunchesPage(
        ref=ref,
        headline=text_of(headline),
        headline_parts=headline,
        step=step_figures(steps.estimate),
        step_words=step_words(steps.estimate),
        range=selected_range(view, selection),
        has_gpu=profile.has_gpu,
        gpus=list(profile.iterations.gpu_ids),
        figures=figures,
        bar_categories=_bar_categories(view) + ([RECORDER] if steps.recorder_ns else []),
        causes=list(CAUSES),
        idle_by_cause=cause_slices(view, idle.activity_ns.sum(axis=0)),
        idle_by_activity=activity_rows(view, idle.activity_ns.sum(axis=0)),
        idle_by_kind=_by_kind(idle),
        gap_kinds=[Category(name, label, definition, True) for name, label, definition in _KINDS.values()],
        bars=_bars(view, selection, steps),
        bars_note=bars_note(len(profile.iterations)) if profile.iterations.gpu_ids else "",
        iterations=_pace_rows(view, selection, gaps, pace),
        total_iterations=pace.window_ns.size,
        kernels=kernels,
        total_kernels=total_kernels,
        syncs=sync,
        total_syncs=total_syncs,
        gaps=largest,
        total_gaps=total_gaps,
    )


def _figures(view: ProfileView, selection: Selection, idle: StepIdle, syncs: SyncGroups) -> LaunchFigures:
    totals: LaunchTotals = launch_totals(view, selection)
    timed, queued = int(totals.delays.sum()), int(totals.queued.sum())
    steps = step_totals(view, selection)
    return LaunchFigures(
        idle_percent=steps.gpu_idle_percent,
        slack_percent=percent(idle.slack_ns, steps.wall_ns) if view.profile.has_gpu and _cpu_recorded(view) else None,
        launches=int(totals.calls.sum()),
        timed=timed,
        median_delay_ns=totals.median_delay_ns,
        mean_delay_ns=round(int(totals.delay_ns.sum()) / timed) if timed else None,
        max_delay_ns=int(totals.max_delay_ns.max()) if timed else None,
        mean_queue=int(totals.queue.sum()) / queued if queued else None,
        max_queue=int(totals.max_queue.max()) if queued else None,
        short_percent=percent(int(totals.short.sum()), queued),
        started_early=totals.early,
        clock_disagrees=totals.clock,
        sync_calls_per_iteration=int(syncs.calls.sum()) / selection.count,
        sync_ns_per_iteration=round(int(syncs.time_ns.sum()) / selection.count),
    )


def _bar_categories(view: ProfileView) -> list[Category]:
    # If threads were not recorded, no cause is known.
    recorded = _cpu_recorded(view)
    return [_BUSY] + [
        Category(key, label, DEFINITIONS[key], recorded or key == "idle") for key, label in cause_labels(view).items()
    ]


def _by_kind(idle: StepIdle) -> list[Slice]:
    whole = int(idle.idle_ns.sum())
    sums = {kind: int(idle.kind_ns[:, kind].sum()) for kind in GapKind}
    return [
        Slice(_KINDS[kind][0], _KINDS[kind][1], value, percent(value, whole))
        for kind, value in sums.items()
        if value or kind != GapKind.UNKNOWN
    ]


def _bars(view: ProfileView, selection: Selection, steps: StepTotals) -> list[IterationBar]:
    """The recorded iterations; times are means over the GPUs, rounding goes to the busy time."""
    iterations = view.profile.iterations
    gpus = len(iterations.gpu_ids)
    if not gpus:
        return []
    idle = _activity_by_iteration(idle_gaps(view, view.selection()), len(iterations)) // gpus
    busy = iterations.duration_ns - idle.sum(axis=1)
    added = np.minimum(round(steps.recorder_ns / selection.count), idle.sum(axis=1))
    idle = by_cause(shortened(idle, ACTIVITY_GROUPS, added))
    parts = np.concatenate((busy[:, None], idle), axis=1)
    recorded = [category.recorded for category in _bar_categories(view)]

    def bar(first: int, last: int) -> IterationBar:
        sums = parts[first : last + 1].sum(axis=0).tolist()
        known = [value if known else None for value, known in zip(sums, recorded, strict=True)]
        known += [int(added[first : last + 1].sum())] if steps.recorder_ns else []
        return iteration_bar(view, selection, (first, last), known, takes_rounding=0)

    return [bar(*span) for span in bar_spans(len(iterations))]


def _activity_by_iteration(gaps: IdleGaps, count: int) -> Ints:
    """Idle time of all GPUs by iteration and activity."""
    result = np.zeros((count, len(ACTIVITIES)), dtype=np.int64)
    np.add.at(result, gaps.iteration, gaps.activity_ns)
    return result


def _pace_rows(view: ProfileView, selection: Selection, gaps: IdleGaps, pace: IterationPace) -> list[PaceRow]:
    iterations = view.profile.iterations
    gpus = len(iterations.gpu_ids)
    place = (gaps.iteration - selection.first) * max(gpus, 1) + gaps.gpu
    size = pace.window_ns.size
    activity = np.zeros((size, len(ACTIVITIES)), dtype=np.int64)
    np.add.at(activity, place, gaps.activity_ns)
    number = np.bincount(place, minlength=size)
    longest = np.zeros(size, dtype=np.int64)
    np.maximum.at(longest, place, gaps.duration_ns)
    causes = by_cause(activity)
    cpu_recorded = _cpu_recorded(view)
    rows = []
    for at in range(min(size, _ITERATION_ROWS)):
        row, gpu = divmod(at, gpus)
        index, window = selection.first + row, int(pace.window_ns[row, gpu])
        rows.append(
            PaceRow(
                index=index,
                number=int(iterations.number[index]),
                gpu=iterations.gpu_ids[gpu],
                pace=PACES[int(pace.pace[row, gpu])],
                duration_ns=window,
                busy_ns=int(pace.busy_ns[row, gpu]),
                idle_ns=int(pace.idle_ns[row, gpu]),
                idle_percent=percent(int(pace.idle_ns[row, gpu]), window),
                late_percent=_late_percent(int(pace.starved_ns[row, gpu]), int(pace.unknown_ns[row, gpu]), window),
                slack_percent=percent(int(pace.slack_ns[row]), window) if cpu_recorded else None,
                idle_by_cause_ns=causes[at].tolist(),
                gaps=int(number[at]),
                longest_gap_ns=int(longest[at]),
            )
        )
    return rows


def _late_percent(late_ns: int, unknown_ns: int, window_ns: int) -> float | None:
    """None if no gap has a recorded launch, because the rest could be far off."""
    return None if unknown_ns and not late_ns else percent(late_ns, window_ns)


def _cpu_recorded(view: ProfileView) -> bool:
    return len(view.profile.calls) > 0


def _headline(
    view: ProfileView, selection: Selection, steps: StepTotals, idle: StepIdle, gaps: list[GapRow]
) -> list[TextPart]:
    if not view.profile.has_gpu:
        return [plain(f"{NO_GPU}, so there are no launches and no idle times.")]
    many = len(idle.idle_ns) > 1
    words = idle_words(view, selection, cpu="it" if idle.pace == Paces.CPU else "the CPU")
    step = f"the {duration(steps.average_ns)} {'recording' if unmarked(view) else 'step'}"
    if words is None:
        subject = "the GPUs are" if many else "it is" if idle.pace == Paces.GPU else "the GPU is"
        rest = f"{subject} idle less than 1 % of {step}"
    else:
        subject = "a GPU on average" if many else "it" if idle.pace == Paces.GPU else "the GPU"
        rest = f"{subject} {words} of {step}{'' if words.startswith('waits for data') else _mostly(view, idle)}"
    return [plain(f"{_who(idle.pace, many)}; {rest}."), *([] if words is None else _longest(gaps))]


def _longest(gaps: list[GapRow]) -> list[TextPart]:
    """The longest gap and the work before which it lies; nothing where its iteration ended first."""
    first = gaps[0] if gaps else None
    if first is None or not first.kernel:
        return []
    what = TextPart(first.op, "op", first.op_id) if first.op else TextPart(first.kernel, "kernel", first.kernel_id)
    return [plain(f" The longest gap, {duration(first.duration_ns)} as recorded, is ended by "), what, plain(".")]


def _who(pace: Paces, many: bool) -> str:
    """Which side sets the pace of the step."""
    if pace == Paces.UNKNOWN:
        return "The bottleneck is unknown, because the launches were not recorded"
    if pace == Paces.MIXED:
        return "CPU and GPU wait for each other"
    who = "CPU" if pace == Paces.CPU else "busiest GPU" if many else "GPU"
    return f"The {who} sets the pace"


def _mostly(view: ProfileView, idle: StepIdle) -> str:
    """Why the GPU is idle: the end of the headline."""
    whole = int(idle.idle_ns.sum())
    if int(idle.kind_ns[:, GapKind.KERNEL_WAIT].sum()) > _MOSTLY * whole:
        return ", mostly between work that was already queued"
    activity = idle.activity_ns.sum(axis=0)
    sums = by_cause(activity)
    first, second = np.argsort(-sums, kind="stable")[:2].tolist()
    phrase = [while_words(view, cause, activity) for cause in CAUSES]
    if sums[first] > _MOSTLY * whole:
        return f", mostly while {phrase[first]}"
    shares = [f"{100 * int(sums[i]) / whole:.0f} %" for i in (first, second)]
    return f": {shares[0]} of that while {phrase[first]}, {shares[1]} while {phrase[second]}"
