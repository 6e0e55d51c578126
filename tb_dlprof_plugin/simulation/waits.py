"""Finds when the CPU waits for the GPU, and for which work.

A trace names neither stream nor event of a call that waits. The time of its return shows what it waited for: it does
not return before that is done. A wait for a stream is one for the stream that its thread launched on last (PyTorch
waits for the current stream); any other is one for all streams, without those that still had work when it returned.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.intervals import Intervals, merge, union, union_of
from tb_dlprof_plugin.model.lookup import rows_of_each, take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, KernelKind
from tb_dlprof_plugin.names.cuda_calls import CudaCall
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.call_names import calls_named
from tb_dlprof_plugin.simulation.synchronisation import SyncKind, sync_kinds

EVERYTHING = -1
"""`Waits.stream` of a wait for all streams."""
CLOCK_ERROR_NS = 10_000
"""By which the clocks of CPU and GPU may disagree: launches of recorded traces seem to begin up to 5 us too early."""
_ON_THE_HOST = ("Pinned", "Managed", "Pageable")
_FREES = (CudaCall.FREE, CudaCall.HOST_FREE)
"""They wait for the device before they free (CUDA Runtime API, "Implicit Synchronization")."""
_QUEUE_FULL = "Command Buffer Full"
_QUEUED = 300
"""Launches that wait for the GPU, from which a call that takes longer than usual counts as delayed by them. CUPTI says
"Command Buffer Full" from 480 to 1,260 on; calls take longer before."""
_LONGER = 1.5
"""A call that takes this many times as long as the lower quartile of its name takes longer than usual."""
_BLOCKED_NS = 20_000
_DEVICE_STREAMS = 100_000


@dataclass(frozen=True, slots=True)
class Waits:
    """Calls that wait for the GPU, in order of `Profile.calls`.

    Attributes:
        call: row of `Profile.calls`.
        stream: by `stream_numbers`; `EVERYTHING` for all streams.
        launch: the activity that was waited for, where later ones of the same stream were not; else -1.
        until_ns: when what was waited for was done, no sooner than the call began.
        nothing: whether the awaited work was already done, with other work remaining.
    """

    call: Ints
    stream: Ints
    launch: Ints
    until_ns: Ints
    nothing: Bools

    def __len__(self) -> int:
        return len(self.call)


def stream_numbers(view: ProfileView) -> Ints:
    """Per row of `Profile.launches` its device and stream as one number."""
    launches = view.profile.launches
    return launches.device * _DEVICE_STREAMS + launches.stream


@per_selection
def waiting_sets(view: ProfileView, _: Selection) -> Bools:
    """Per row of `Profile.calls` whether it sets memory that the CPU owns, and returns when that is done.

    Sets of the GPU's own memory return immediately, under any name ("API synchronization behavior" in the CUDA Runtime
    API's reference).
    """
    profile = view.profile
    result = np.zeros(len(profile.calls), dtype=np.bool_)
    on_host = profile.kernels_where(name=lambda name: any(memory in name for memory in _ON_THE_HOST))
    sets = (on_host & (profile.kernels.kind == KernelKind.MEMSET))[profile.launches.kernel]
    rows = sets & (profile.launches.call >= 0)
    result[profile.launches.call[rows]] = True
    return result & view.is_cuda_call(CudaCall.MEMSET)


@per_selection
def waits(view: ProfileView, _: Selection) -> Waits:
    """The waits of all iterations, without those of the profiler."""
    calls = view.profile.calls
    kind = sync_kinds(view, view.selection())
    waiting = (kind != SyncKind.NONE) & (kind != SyncKind.PROFILER)
    waiting |= waiting_sets(view, view.selection()) | view.is_cuda_call(*_FREES)
    rows = np.flatnonzero(waiting & (view.call_iteration >= 0))
    start, stop = calls.start_ns[rows], calls.start_ns[rows] + calls.duration_ns[rows]
    alone = view.is_cuda_call(CudaCall.STREAM_SYNCHRONIZE)
    alone |= (kind == SyncKind.COPY) | (kind == SyncKind.PAGEABLE_COPY)
    stream = np.where(alone[rows], _last_stream(view, rows), EVERYTHING)
    until, launch = start.copy(), np.full(len(rows), -1)
    pending = np.zeros(len(rows), dtype=np.bool_)
    # A copy is launched by the call that waits for it; a scalar read by a call inside it.
    since, latest = np.where(kind[rows] == SyncKind.SCALAR, stop, start), stop + CLOCK_ERROR_NS
    waits_of = dict(rows_of_each(stream))
    for_all = waits_of.pop(EVERYTHING, np.zeros(0, dtype=np.int64))
    for which, called, ended, activity in _streams(view):
        mine = np.concatenate((for_all, waits_of[which])) if which in waits_of else for_all
        if not len(mine):
            continue
        before = np.searchsorted(called, since[mine], side="right") - 1
        reach = np.maximum.accumulate(ended)
        more = (before >= 0) & (reach[np.maximum(before, 0)] > latest[mine])
        pending[mine] |= more
        last = np.where(more, np.searchsorted(reach, latest[mine], side="right") - 1, before)
        done = reach[np.maximum(last, 0)]
        later = (last >= 0) & (done > until[mine])
        launch[mine[later]] = activity[last[later]]
        until[mine[later]] = done[later]
    # With work left it waited for one activity: the last that was done. If that was before the call, for none.
    nothing = pending & (launch < 0)
    return Waits(rows, stream, np.where(pending, launch, -1), np.minimum(until, stop), nothing)


@per_selection
def waiting_times(view: ProfileView, _: Selection) -> Intervals:
    """When the CPU waits: in `waits`, and in calls that block because the queue of launches is full."""
    calls, known = view.profile.calls, waits(view, view.selection())
    start, stop = calls.start_ns[known.call], known.until_ns
    blocked, typical = _blocked(view)
    starts = np.concatenate([start, calls.start_ns[blocked] + typical])
    stops = np.concatenate([stop, calls.start_ns[blocked] + calls.duration_ns[blocked]])
    return merge(union(starts, stops), _full_queue(view))


def waits_for_less(view: ProfileView) -> Bools:
    """Per row of `Profile.calls` whether it waits, and returns while the GPU still has work that was launched before.

    Such a wait is for an event or another stream: it does not delay the GPU.
    """
    calls, launches = view.profile.calls, view.profile.launches
    result = np.zeros(len(calls), dtype=np.bool_)
    rows = np.flatnonzero(launches.call >= 0)
    waiting = np.flatnonzero(sync_kinds(view, view.selection()) == SyncKind.WAIT)
    if not len(rows) or not len(waiting):
        return result
    called = calls.start_ns[launches.call[rows]]
    order = np.argsort(called, kind="stable")
    done = np.maximum.accumulate((launches.start_ns + launches.duration_ns)[rows][order])
    before = np.searchsorted(called[order], calls.start_ns[waiting], side="left") - 1
    stop = calls.start_ns[waiting] + calls.duration_ns[waiting]
    result[waiting] = (before >= 0) & (done[np.maximum(before, 0)] > stop + CLOCK_ERROR_NS)
    return result


def _streams(view: ProfileView) -> list[tuple[int, Ints, Ints, Ints]]:
    """Per stream its number, and by time of call: those times, the ends and the rows of its activities.

    What was launched before the recording was called before everything else.
    """
    calls, launches, number = view.profile.calls, view.profile.launches, stream_numbers(view)
    called = np.full(len(launches), np.iinfo(np.int64).min)
    known = launches.call >= 0
    called[known] = calls.start_ns[launches.call[known]]
    ended = launches.start_ns + launches.duration_ns
    result = []
    for which, rows in rows_of_each(number):
        rows = rows[np.argsort(called[rows], kind="stable")]
        result.append((which, called[rows], ended[rows], rows))
    return result


def _last_stream(view: ProfileView, rows: Ints) -> Ints:
    """The stream that each call's thread launched on last, itself included; `EVERYTHING` where it launched nothing."""
    calls, launches = view.profile.calls, view.profile.launches
    result = np.full(len(rows), EVERYTHING)
    launched = np.flatnonzero(launches.call >= 0)
    number = stream_numbers(view)[launched]
    call = launches.call[launched]
    of_thread = dict(rows_of_each(calls.thread[call]))
    for thread, mine in rows_of_each(calls.thread[rows]):
        if thread not in of_thread:
            continue
        own = of_thread[thread]
        own = own[np.argsort(calls.start_ns[call[own]], kind="stable")]
        before = np.searchsorted(calls.start_ns[call[own]], calls.start_ns[rows[mine]], side="right") - 1
        result[mine] = take_or(number[own], before, EVERYTHING)
    return result


def _blocked(view: ProfileView) -> tuple[Ints, Ints]:
    """Calls that block on a full queue, and how long calls of their name usually take (ns)."""
    calls, ops, launches = view.profile.calls, view.profile.ops, view.profile.launches
    runtime = np.flatnonzero((ops.kind[calls.op] == CallKind.RUNTIME) & (view.call_iteration >= 0))
    rows = launches.call >= 0
    if not len(runtime) or not rows.any():
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    name = ops.name[calls.op[runtime]]
    usual = np.zeros(int(name.max()) + 1)
    for which in np.unique(name).tolist():
        usual[which] = min(np.quantile(calls.duration_ns[runtime[name == which]], 0.25), _BLOCKED_NS)
    typical = usual[name]
    called = np.sort(calls.start_ns[launches.call[rows]])
    ended = np.sort((launches.start_ns + launches.duration_ns)[rows])
    start = calls.start_ns[runtime]
    queued = np.searchsorted(called, start, side="left") - np.searchsorted(ended, start, side="right")
    blocked = (queued >= _QUEUED) & (calls.duration_ns[runtime] > _LONGER * typical)
    return runtime[blocked], typical[blocked].astype(np.int64)


def _full_queue(view: ProfileView) -> Intervals:
    """When CUPTI saw the queue full."""
    return union_of(view.profile.calls, calls_named(view, CallKind.OVERHEAD, _QUEUE_FULL.__eq__))
