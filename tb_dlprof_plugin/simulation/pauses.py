"""Separates the times in which the CPU launches from longer pauses between launches.

Between two launch calls lie the ops, the Python code around them and the bookkeeping of autograd: tens of microseconds.
A much longer time between two launches is a pause: the CPU computes, loads or waits. Fewer launches would save the
former, other code the latter, and the profiler slows down the former only.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.grouping import sorted_values
from tb_dlprof_plugin.model.intervals import Intervals, covered, merge, union, union_of
from tb_dlprof_plugin.model.profile import CallKind, Role
from tb_dlprof_plugin.names.ops import PROCESS_GROUP_OPS
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.waits import waiting_times

PAUSE_NS = 1_000_000
"""CPU time between two launches from which the CPU does something else than launch; `advice.thresholds` says why.

Between 0.1 and 0.5 ms one of eight even jobs of two H200s would have a rank that is named (`lab/ranks`), and the
worst error of a repaired step would be 23 to 28 % in place of 11: pauses of the profiler are of that length, too."""

_COMMUNICATES = (*PROCESS_GROUP_OPS, "gloo:", "record_param_comms")


@per_selection
def pauses(view: ProfileView, _: Selection) -> Intervals:
    """Times without a launch for long, of which most is not bookkeeping of PyTorch."""
    calls, iterations = view.profile.calls, view.profile.iterations
    launched = view.profile.launches.call
    call = sorted_values(launched[(launched >= 0) & (view.launch_iteration >= 0)])
    call = call[np.argsort(calls.start_ns[call], kind="stable")]
    stops = np.maximum.accumulate(calls.start_ns[call] + calls.duration_ns[call])
    begin = np.concatenate([iterations.host_start_ns[:1], stops])
    end = np.concatenate([calls.start_ns[call], iterations.host_stop_ns[-1:]])
    waiting = waiting_times(view, view.selection())
    long = np.flatnonzero(end - begin - covered(waiting, begin, np.maximum(begin, end)) > PAUSE_NS)
    begin, end = begin[long], end[long]
    own = 2 * covered(_bookkeeping(view), begin, end) < end - begin
    return union(begin[own], end[own])


@per_selection
def loading_times(view: ProfileView, _: Selection) -> Intervals:
    """Times of the DataLoader's ``__next__`` calls."""
    return times_of_role(view, Role.DATALOADER)


def times_outside(view: ProfileView) -> Intervals:
    """Times of `PAUSE_NS` or more in which no op and no call of CUDA runs on any thread, and of the DataLoader.

    After an op that communicates the process may wait for others: such a time is none.
    """
    profile = view.profile
    op = profile.calls.op
    loading = loading_times(view, view.selection())
    kind, start = profile.ops.kind[op], profile.calls.start_ns
    stop = start + profile.calls.duration_ns
    rows = ((kind == CallKind.OP) | (kind == CallKind.RUNTIME)) & (covered(loading, start, stop) < stop - start)
    rows = np.flatnonzero(rows)
    asks = profile.ops_named(lambda name: name.startswith(_COMMUNICATES))[op[rows]]
    begin, end = union(start[rows], stop[rows])
    waits = np.isin(end, stop[rows][asks])
    long = (begin[1:] - end[:-1] >= PAUSE_NS) & ~waits[:-1]
    return merge((end[:-1][long], begin[1:][long]), loading)


def times_of_role(view: ProfileView, role: Role) -> Intervals:
    """Annotations of the optimizer or the DataLoader."""
    calls, ops = view.profile.calls, view.profile.ops
    return union_of(calls, (ops.role[calls.op] == role) & (ops.kind[calls.op] == CallKind.ANNOTATION))


def _bookkeeping(view: ProfileView) -> Intervals:
    """What PyTorch does between launches: an optimizer sorts its parameters, autograd hands gradients on; and what the
    profiler does."""
    calls, ops = view.profile.calls, view.profile.ops
    kind = ops.kind[calls.op]
    short = (ops.role[calls.op] == Role.BACKWARD) & (kind == CallKind.OP) & (calls.duration_ns < PAUSE_NS)
    rows = short | (kind == CallKind.OVERHEAD)
    spans = union_of(calls, rows)
    return merge(spans, times_of_role(view, Role.OPTIMIZER))
