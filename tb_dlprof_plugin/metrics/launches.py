"""Delay of GPU work between launch and start, and the length of the queue at its launch.

Both as Holistic Trace Analysis (HTA 0.5.0) defines them, so that the numbers can be compared: the delay as
`get_cuda_kernel_launch_stats`, the queue as `get_queue_length_time_series`. Unlike HTA, work that was launched before
the recording began is in the queue, streams of several GPUs are kept apart, and CUDA graphs and driver calls count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.grouping import numbered
from tb_dlprof_plugin.model.profile import Attribution, Bools, CallKind, Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@dataclass(frozen=True, slots=True)
class LaunchColumns:
    """One row per row of `Profile.launches`; -1 where unknown.

    Attributes:
        call_ns: duration of the launching runtime call. Where only the op is known, all three are unknown.
        delay_ns: from the end of that call to the start of the work; 0 for work that began while the call still ran.
            Unknown where the work seems to begin before its call does: then the clocks of CPU and GPU disagree.
        queue: work of the same stream that was launched and had not begun when the call began, this one included: 1
            where nothing else waited. Work of one graph launch counts as many.
        early: work that began before its launch call returned.
        clock: work that seems to begin before its launch call did.
    """

    call_ns: Ints
    delay_ns: Ints
    queue: Ints
    early: Bools
    clock: Bools


@dataclass(frozen=True, slots=True)
class LaunchTotals:
    """Launches of the selection. Per-kernel columns follow `Profile.kernels`, with sums over what is known.

    ``short`` counts work that took less time than the call that launched it (HTA's "short GPU kernels").
    """

    calls: Ints
    delays: Ints
    delay_ns: Ints
    max_delay_ns: Ints
    queued: Ints
    queue: Ints
    max_queue: Ints
    short: Ints
    call_ns: Ints
    median_delay_ns: int | None
    early: int
    clock: int


@per_selection
def launch_columns(view: ProfileView, _: Selection) -> LaunchColumns:
    """Delay and queue of every GPU activity of the recording."""
    profile = view.profile
    calls, launches = profile.calls, profile.launches
    launched = _launched(view)
    call = np.where(launched, launches.call, 0)
    begins = np.full(len(launches), -1, dtype=np.int64)
    call_ns = np.full(len(launches), -1, dtype=np.int64)
    begins[launched] = calls.start_ns[call[launched]]
    call_ns[launched] = calls.duration_ns[call[launched]]
    clock = launched & (launches.start_ns < begins)
    wait = launches.start_ns - begins - call_ns
    return LaunchColumns(
        call_ns=call_ns,
        delay_ns=np.where(launched & ~clock, np.maximum(wait, 0), -1),
        queue=_queue(view, launched, begins),
        early=launched & ~clock & (wait < 0),
        clock=clock,
    )


@per_selection
def launch_totals(view: ProfileView, selection: Selection) -> LaunchTotals:
    """Delays and queues of what the selected iterations launched."""
    launches = view.profile.launches
    columns = launch_columns(view, view.selection())
    rows = np.flatnonzero(view.selected_launches(selection))
    count = len(view.profile.kernels)
    kernel, delay, queue = launches.kernel[rows], columns.delay_ns[rows], columns.queue[rows]
    call_ns = columns.call_ns[rows]
    timed, queued = delay >= 0, queue >= 0
    called = call_ns >= 0

    def number(chosen: Bools) -> Ints:
        return np.bincount(kernel[chosen], minlength=count).astype(np.int64)

    def total(column: Ints, chosen: Bools) -> Ints:
        result = np.zeros(count, dtype=np.int64)
        np.add.at(result, kernel[chosen], column[chosen])
        return result

    def highest(column: Ints, chosen: Bools) -> Ints:
        result = np.zeros(count, dtype=np.int64)
        np.maximum.at(result, kernel[chosen], column[chosen])
        return result

    return LaunchTotals(
        calls=np.bincount(kernel, minlength=count).astype(np.int64),
        delays=number(timed),
        delay_ns=total(delay, timed),
        max_delay_ns=highest(delay, timed),
        queued=number(queued),
        queue=total(queue, queued),
        max_queue=highest(queue, queued),
        short=number(called & (launches.duration_ns[rows] < call_ns)),
        call_ns=total(call_ns, called),
        median_delay_ns=int(np.median(delay[timed])) if timed.any() else None,
        early=int(columns.early[rows].sum()),
        clock=int(columns.clock[rows].sum()),
    )


def _launched(view: ProfileView) -> Bools:
    """Which activities have a recorded runtime or driver call, not just the op."""
    profile = view.profile
    call = profile.launches.call
    result = call >= 0
    result[result] = profile.ops.kind[profile.calls.op[call[result]]] == CallKind.RUNTIME
    return result


def _queue(view: ProfileView, launched: Bools, begins: Ints) -> Ints:
    launches = view.profile.launches
    orphan = launches.attribution == Attribution.ORPHAN
    # Orphans were in the queue when the recording began.
    entered = np.where(orphan, np.iinfo(np.int64).min, begins)
    left = np.maximum(launches.start_ns, entered)
    result = np.full(len(launches), -1, dtype=np.int64)
    counted = np.flatnonzero(launched | orphan)
    if not len(counted):
        return result
    stream = numbered(launches.device[counted], launches.stream[counted])
    order = np.argsort(stream, kind="stable")
    for rows in np.split(counted[order], np.flatnonzero(np.diff(stream[order])) + 1):
        mine = rows[launched[rows]]
        at = begins[mine]
        in_so_far = np.searchsorted(np.sort(entered[rows]), at, side="right")
        out_so_far = np.searchsorted(np.sort(left[rows]), at, side="left")
        result[mine] = in_so_far - out_so_far
    return result
