"""The one stretch of a step in which the GPU is badly used, where the rest of the step uses it well."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.rules.idle_gpu.host_phases import intersection, launching
from tb_dlprof_plugin.advice.rules.idle_gpu.long_gaps import long_gaps
from tb_dlprof_plugin.advice.savings import Saving, shorter_step, that_goes
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.advice.thresholds import LAUNCHING_LEFT
from tb_dlprof_plugin.metrics.iteration_pace import iteration_pace
from tb_dlprof_plugin.model.intervals import Intervals, covered, union
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.change import Change

LOW_STRETCH_CHUNKS = 30
LOW_STRETCH_PERCENT = 50.0
"""Nsight Systems ("GPU time utilization") divides the time into 30 equal chunks and reports those below 50 %; here it
is each step that is divided, and chunks are averaged over the steps."""

LOW_STRETCH_REST_PERCENT = 80.0
LOW_STRETCH_LONGEST_PERCENT = 50.0
LOW_STRETCH_IDLE_PERCENT = 5.0
"""A stretch stands out if the rest of the step is used at least this well, if it is no longer than this share of the
step, and if the GPU is idle in it for at least this share. Ours; the last is torch-tb-profiler's for the DataLoader."""

LOW_STRETCH_LAUNCHES = 30
"""Per step: a stretch with fewer has no launches to spare. Ours."""

LOW_STRETCH_SAVING_PERCENT = 5.0
"""Of the step without the profiler. The profiler makes stretches that the CPU paces longer than they are."""


@dataclass(frozen=True, slots=True)
class LowStretch:
    """``first`` to ``last`` are chunks of the step, both inclusive, of `LOW_STRETCH_CHUNKS`.

    Attributes:
        utilization: of the stretch, in percent.
        rest_utilization: of the rest of the step, in percent.
        length_ns: of the stretch per step.
        idle_ns: GPU idle time in it per step.
        windows: the stretch in each selected iteration.
        launching: when the CPU launches in it.
        launches: rows of `Profile.launches` launched in it.
        saving: what less launching in it would save.
    """

    first: int
    last: int
    utilization: float
    rest_utilization: float
    length_ns: float
    idle_ns: float
    windows: Intervals
    launching: Intervals
    launches: Ints
    saving: Saving


def low_stretch(context: RuleContext) -> LowStretch | None:
    """The longest stretch with low utilization; None where none stands out, or less launching in it saves little.

    What lies in single long gaps, or in pauses of the CPU, is not this stretch's.
    """
    return _found(context.view, context.selection).stretch


@dataclass(frozen=True, slots=True)
class _Found:
    """Kept with the view, also where there is none."""

    stretch: LowStretch | None


@per_selection
def _found(view: ProfileView, selection: Selection) -> _Found:
    return _Found(_look(view, selection))


def utilization_by_chunk(view: ProfileView, selection: Selection) -> Ints:
    """Busy time (ns) of the GPU that each iteration waits for, shape (iterations, chunks)."""
    iterations, launches = view.profile.iterations, view.profile.launches
    edges = _edges(view, selection)
    busy = np.zeros((selection.count, LOW_STRETCH_CHUNKS), dtype=np.int64)
    busiest = iteration_pace(view, selection).busiest
    for gpu, device in enumerate(iterations.gpu_ids):
        mine = launches.device == device
        running = union(launches.start_ns[mine], launches.start_ns[mine] + launches.duration_ns[mine])
        at = covered(running, edges[:, :-1].ravel(), edges[:, 1:].ravel()).reshape(busy.shape)
        busy = np.where((busiest == gpu)[:, None], at, busy)
    return busy


def _edges(view: ProfileView, selection: Selection) -> Ints:
    """Boundaries of the chunks, shape (iterations, chunks + 1)."""
    iterations = view.profile.iterations
    rows = slice(selection.first, selection.last + 1)
    number = np.arange(LOW_STRETCH_CHUNKS + 1)
    edges: Ints = iterations.start_ns[rows, None] + iterations.duration_ns[rows, None] * number // LOW_STRETCH_CHUNKS
    return edges


def _look(view: ProfileView, selection: Selection) -> LowStretch | None:
    if not view.profile.iterations.gpu_ids:
        return None
    edges = _edges(view, selection)
    busy, length = utilization_by_chunk(view, selection).sum(axis=0), np.diff(edges, axis=1).sum(axis=0)
    low = 100 * busy < LOW_STRETCH_PERCENT * length
    run = _longest(low)
    if run is None:
        return None
    first, last = run
    inside = slice(first, last + 1)
    whole = float(length.sum())
    stretch, stretch_busy = float(length[inside].sum()), float(busy[inside].sum())
    rest, rest_busy = whole - stretch, float(busy.sum()) - stretch_busy
    if 100 * stretch > LOW_STRETCH_LONGEST_PERCENT * whole or 100 * rest_busy < LOW_STRETCH_REST_PERCENT * rest:
        return None
    windows = union(edges[:, first], edges[:, last + 1])
    launches = intersection(windows, launching(view, selection).launching)
    not_launching = stretch - float((launches[1] - launches[0]).sum())
    gaps = intersection(windows, long_gaps(view, selection).whole)
    others = max(not_launching, float((gaps[1] - gaps[0]).sum()))
    idle = stretch - stretch_busy
    if 100 * (idle - others) < LOW_STRETCH_IDLE_PERCENT * whole:
        return None
    inside_stretch = launched_in(view, windows)
    if len(inside_stretch) < LOW_STRETCH_LAUNCHES * selection.count:
        return None
    saving = _saving(RuleContext(view, selection), launches)
    if saving.percent < LOW_STRETCH_SAVING_PERCENT:
        return None
    return LowStretch(
        first=first,
        last=last,
        utilization=100 * stretch_busy / stretch,
        rest_utilization=100 * rest_busy / rest,
        length_ns=stretch / selection.count,
        idle_ns=idle / selection.count,
        windows=windows,
        launching=launches,
        launches=inside_stretch,
        saving=saving,
    )


def launched_in(view: ProfileView, windows: Intervals) -> Ints:
    """Rows of `Profile.launches` whose call began in the disjoint windows."""
    calls, launches = view.profile.calls, view.profile.launches
    at = take_or(calls.start_ns, launches.call, -1)
    return np.flatnonzero((launches.call >= 0) & (covered(windows, at, at + 1) > 0))


def _saving(context: RuleContext, launches: Intervals) -> Saving:
    """At best the kernels of the stretch, which are small, become few as well."""
    stays = np.ones(len(context.profile.launches))
    stays[launched_in(context.view, launches)] = 0.0
    left = LAUNCHING_LEFT
    spent = float((launches[1] - launches[0]).sum()) / context.selection.count
    return shorter_step(
        context,
        Change(launches, left.high),
        Change(launches, left.expected),
        Change(launches, left.low, stays),
        f"The CPU launches for {ms(spent)} of a recorded step in this stretch. Of it {that_goes(left)} go if "
        "its work is launched by fewer and larger ops; at best its kernels become negligible as well.",
    )


def _longest(low: np.ndarray) -> tuple[int, int] | None:  # type: ignore[type-arg]
    """First and last of the longest run; the first of several."""
    bounds = np.flatnonzero(np.diff(np.concatenate([[0], low.astype(np.int64), [0]])))
    if not len(bounds):
        return None
    starts, ends = bounds[::2], bounds[1::2]
    at = int((ends - starts).argmax())
    return int(starts[at]), int(ends[at]) - 1
