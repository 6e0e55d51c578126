"""Classifies the CPU's time into seven exclusive activities.

A moment belongs to the first that applies, on any thread that trains (one that launches GPU work or holds ops or
annotations of the training loop; a thread that only pins memory or watches events does not count). Each is given as the
union of its intervals with those before it, so that differences of covered time are exclusive to the nanosecond.
"""

from __future__ import annotations

import itertools

import numpy as np

from tb_dlprof_plugin.metrics.amp_calls import compiled_calls, op_or_region
from tb_dlprof_plugin.model.grouping import sorted_values
from tb_dlprof_plugin.model.intervals import Intervals, covered, merge, union
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, KernelKind, Role
from tb_dlprof_plugin.model.tree import any_in_subtree
from tb_dlprof_plugin.names.cuda_calls import COPIES, LAUNCHES_KERNELS
from tb_dlprof_plugin.names.ops import COPY
from tb_dlprof_plugin.profile_view import ProfileView, per_view
from tb_dlprof_plugin.simulation.call_names import calls_named, launching_calls
from tb_dlprof_plugin.simulation.synchronisation import SyncKind, scalar_reads, sync_kinds

ACTIVITIES = ("dataloader", "synchronising", "copying", "launching", "ops", "python", "unknown")
"""By falling precedence. "python" is time in which no call runs, "unknown" lies before the first or after the last."""


def split_by_activity(view: ProfileView, start_ns: Ints, stop_ns: Ints) -> Ints:
    """Time of each window by `ACTIVITIES` (ns), shape (windows, 7): rows sum to the windows' lengths."""
    result = np.zeros((len(start_ns), len(ACTIVITIES)), dtype=np.int64)
    before = np.zeros(len(start_ns), dtype=np.int64)
    for activity, intervals in enumerate(_up_to_each(view)):
        reached = covered(intervals, start_ns, stop_ns)
        result[:, activity] = reached - before
        before = reached
    result[:, -1] = stop_ns - start_ns - before
    return result


@per_view
def _up_to_each(view: ProfileView) -> tuple[Intervals, ...]:
    """The union of the intervals of each activity but the last with those of all before it."""
    return tuple(itertools.accumulate(_layers(view), merge))


def _layers(view: ProfileView) -> tuple[Intervals, ...]:
    """The intervals of each activity but the last, in the order of `ACTIVITIES`; they overlap."""
    profile = view.profile
    calls, ops = profile.calls, profile.ops
    kind = ops.kind[calls.op]
    training = _training_threads(view)[calls.thread] if len(calls) else np.zeros(0, dtype=np.bool_)
    # Compiled code is no Python of the user's, also where its launches are ops of their own.
    runtime, is_op = kind == CallKind.RUNTIME, (kind == CallKind.OP) | compiled_calls(view)
    sync = sync_kinds(view, view.selection())
    reads = scalar_reads(view, sync)
    stop = calls.start_ns + calls.duration_ns
    # While the profiler starts or stops, the training's own activity is not visible.
    seen = sync != SyncKind.PROFILER

    def of(rows: Bools) -> Intervals:
        return union(calls.start_ns[rows], stop[rows])

    return (
        of((kind == CallKind.ANNOTATION) & (ops.role[calls.op] == Role.DATALOADER)),
        of(training & ((sync == SyncKind.WAIT) | reads)),
        of(training & (view.is_cuda_call(*COPIES) | _copying_ops(view))),
        merge(of(training & runtime & _is_launch(view)), _leading_up(view, training)),
        of(training & seen & (runtime | is_op)),
        # What lies between the first and the last call and in none of them.
        _hull(of(seen)),
    )


def _training_threads(view: ProfileView) -> Bools:
    """Per thread number whether it takes part in the training; all where nothing was launched."""
    profile = view.profile
    calls, ops = profile.calls, profile.ops
    kind = ops.kind[calls.op]
    result = np.zeros(int(calls.thread.max(initial=0)) + 1, dtype=np.bool_)
    call = profile.launches.call
    result[calls.thread[call[call >= 0]]] = True
    result[calls.thread[(kind == CallKind.ANNOTATION) | (kind == CallKind.MODULE)]] = True
    result[calls.thread[(ops.role[calls.op] == Role.BACKWARD) & (kind == CallKind.OP)]] = True
    return result if result.any() else ~result


def _is_launch(view: ProfileView) -> Bools:
    """Calls that launched something, and those that are made for it though the trace holds no activity of theirs."""
    return view.is_cuda_call(*LAUNCHES_KERNELS) | launching_calls(view)


def _leading_up(view: ProfileView, training: Bools) -> Intervals:
    """Each outermost op, and each region of compiled code, from its start to the end of its last launch."""
    calls = view.profile.calls
    runtime = view.profile.ops.kind[calls.op] == CallKind.RUNTIME
    owner = op_or_region(view)
    launch = np.flatnonzero(_is_launch(view) & runtime & training & (owner >= 0))
    until = np.zeros(len(calls), dtype=np.int64)
    np.maximum.at(until, owner[launch], calls.start_ns[launch] + calls.duration_ns[launch])
    tops = sorted_values(owner[launch])
    return union(calls.start_ns[tops], until[tops])


def _copying_ops(view: ProfileView) -> Bools:
    """``aten::copy_`` ops that launched a copy, unlike those that launch a kernel to change a data type."""
    profile = view.profile
    calls, launches = profile.calls, profile.launches
    copy_op = calls_named(view, CallKind.OP, COPY.__eq__)
    copies = (profile.kernels.kind[launches.kernel] == KernelKind.MEMCPY) & (launches.call >= 0)
    if not copy_op.any() or not copies.any():
        return np.zeros(len(calls), dtype=np.bool_)
    flags = np.zeros(len(calls), dtype=np.bool_)
    flags[launches.call[copies]] = True
    return copy_op & any_in_subtree(flags, view.call_end)


def _hull(intervals: Intervals) -> Intervals:
    start, stop = intervals
    return start[:1], stop[-1:]
