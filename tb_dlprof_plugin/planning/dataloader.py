"""Limits that the DataLoader sets to a step: waiting for worker processes is not work.

Worker processes load in parallel with the training. A step that waits for them takes as long as they need for a batch,
and no other precision changes that: what the step saves is spent waiting. Where the GPU is busy meanwhile the wait
costs nothing now, and what the workers can deliver at most does not show in the trace: where the hook measured the
batches, a simulation says it. A DataLoader without worker processes works in the training thread; that time is work and
does not change.
"""

from __future__ import annotations

from dataclasses import dataclass

from tb_dlprof_plugin.metrics.loader.forecast import loader_pace_ns
from tb_dlprof_plugin.model.intervals import Intervals, covered, union_of
from tb_dlprof_plugin.model.profile import CallKind
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.call_names import calls_named
from tb_dlprof_plugin.simulation.estimate import step_estimate

_WORKERS = "_MultiProcessingDataLoaderIter"
_WAITS = 0.05
"""A step that waits for the workers for this share of it is limited by them; taking a batch off the queue and handing
it over takes tens of microseconds."""


@dataclass(frozen=True)
class Loading:
    """Waits for worker processes.

    Attributes:
        waits: disjoint intervals (ns).
        least_step_ns: least time of the workers for a batch, where the GPU waits for them too or the hook measured
            them; else 0.
        hidden: whether steps wait for the workers while the GPU is busy, and what they can deliver is not known: then
            they may be the next limit.
    """

    waits: Intervals
    least_step_ns: float
    hidden: bool


@per_selection
def loading(view: ProfileView, selection: Selection) -> Loading:
    """Of the selected iterations."""
    calls, launches, iterations = view.profile.calls, view.profile.launches, view.profile.iterations
    rows = calls_named(view, CallKind.ANNOTATION, lambda name: _WORKERS in name)
    waits = union_of(calls, rows)
    first, last = selection.first, selection.last + 1
    recorded_ns = float((iterations.host_stop_ns - iterations.host_start_ns)[first:last].sum())
    everywhere = float(covered(waits, iterations.host_start_ns[first:last], iterations.host_stop_ns[first:last]).sum())
    busy = union_of(launches)
    inside = (waits[0] >= iterations.host_start_ns[first]) & (waits[1] <= iterations.host_stop_ns[last - 1])
    start, stop = waits[0][inside], waits[1][inside]
    idle = float((stop - start - covered(busy, start, stop)).sum())
    if idle >= _WAITS * recorded_ns:
        return Loading(waits, step_estimate(view, selection).ns, hidden=False)
    pace = loader_pace_ns(view)
    if pace is not None:
        return Loading(waits, min(pace, step_estimate(view, selection).ns), hidden=False)
    return Loading(waits, 0.0, hidden=everywhere >= _WAITS * recorded_ns)
