"""Recorded times in which a GPU had nothing to run: each gap with the CPU's activity meanwhile and the work that ended
it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tb_dlprof_plugin.metrics.cpu_activity import split_by_activity
from tb_dlprof_plugin.model.intervals import covered, union
from tb_dlprof_plugin.model.profile import Attribution, CallKind, Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

KERNEL_WAIT_BELOW_NS = 30_000
"""A shorter gap before work that was already launched is the GPU's own: `consecutive_kernel_delay` in Holistic Trace
Analysis (HTA), `get_idle_time_breakdown`."""


class GapKind(IntEnum):
    """Why the GPU was idle, in HTA's terms; HTA looks at each stream, this at the whole GPU."""

    HOST_WAIT = 0
    """The call that launched the next work began after the gap did, or nothing more was launched."""
    KERNEL_WAIT = 1
    """The next work was launched before, and began in less than 30 us."""
    OTHER = 2
    """The next work was launched before, and took longer to begin: it waited for another stream, device or process."""
    UNKNOWN = 3
    """When the next work was launched was not recorded."""


@dataclass(frozen=True, slots=True)
class IdleGaps:
    """One row per gap, by GPU and time, cut at the boundaries of the iterations.

    Attributes:
        iteration: index of the iteration.
        gpu: index into `Iterations.gpu_ids`.
        start_ns: when the GPU had nothing more to run.
        duration_ns: until it had, or the iteration ended.
        activity_ns: shape (gaps, 7), what the CPU did meanwhile by `ACTIVITIES`; rows sum to ``duration_ns``.
        kind: the `GapKind` of the whole gap.
        next: row of `Profile.launches` of the work that ended the gap, -1 where none followed in the iteration.
        window_ns: shape (iterations, GPUs), the iterations' durations; busy and idle time sum to it.
        busy_ns: shape (iterations, GPUs), time in which the GPU ran something.
    """

    iteration: Ints
    gpu: Ints
    start_ns: Ints
    duration_ns: Ints
    activity_ns: Ints
    kind: Ints
    next: Ints
    window_ns: Ints
    busy_ns: Ints

    def __len__(self) -> int:
        return len(self.iteration)


@per_selection
def idle_gaps(view: ProfileView, selection: Selection) -> IdleGaps:
    """The idle gaps of each GPU that the process used, in the selected iterations."""
    profile = view.profile
    iterations, launches = profile.iterations, profile.launches
    chosen = slice(selection.first, selection.last + 1)
    begin, end = iterations.start_ns[chosen], iterations.stop_ns[chosen]
    gpus = len(iterations.gpu_ids)
    busy = np.zeros((selection.count, gpus), dtype=np.int64)
    empty = np.zeros(0, dtype=np.int64)
    parts: list[tuple[Ints, ...]] = [(empty,) * 6]
    for gpu, device in enumerate(iterations.gpu_ids):
        rows = np.flatnonzero((launches.device == device) & (launches.duration_ns > 0))
        start = launches.start_ns[rows]
        running = union(start, start + launches.duration_ns[rows])
        busy[:, gpu] = covered(running, begin, end)
        parts.append(_gaps_of(view, gpu, rows, running, (begin, end)))
    iteration, gpu_index, start, stop, kind, following = (
        np.concatenate(columns) for columns in zip(*parts, strict=True)
    )
    return IdleGaps(
        iteration=iteration + selection.first,
        gpu=gpu_index,
        start_ns=start,
        duration_ns=stop - start,
        activity_ns=split_by_activity(view, start, stop),
        kind=kind,
        next=following,
        window_ns=np.repeat((end - begin)[:, None], gpus, axis=1),
        busy_ns=busy,
    )


def _gaps_of(
    view: ProfileView, gpu: int, rows: Ints, running: tuple[Ints, Ints], windows: tuple[Ints, Ints]
) -> tuple[Ints, ...]:
    """Iteration (counted from the first window), GPU, start, stop, kind and next work of each gap of one GPU."""
    launches = view.profile.launches
    begin, end = windows
    starts, stops = running
    far = np.iinfo(np.int64).max
    gap_start = np.concatenate(([-far], stops))
    gap_stop = np.concatenate((starts, [far]))
    # `Launches` are in order of start: the first that starts where the busy time does.
    following = np.append(rows[np.searchsorted(launches.start_ns[rows], starts, side="left")], -1)
    kind = _kinds(view, gap_start, gap_stop, following)

    first = np.searchsorted(end, gap_start, side="right")
    behind = np.searchsorted(begin, gap_stop, side="left")
    pieces = np.maximum(behind - first, 0)
    gap = np.repeat(np.arange(len(gap_start)), pieces)
    offset = np.arange(len(gap)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    iteration = first[gap] + offset
    start = np.maximum(gap_start[gap], begin[iteration])
    stop = np.minimum(gap_stop[gap], end[iteration])
    kept = stop > start
    gap, iteration, start, stop = gap[kept], iteration[kept], start[kept], stop[kept]
    ended = gap_stop[gap] == stop
    return iteration, np.full(len(gap), gpu), start, stop, kind[gap], np.where(ended, following[gap], -1)


def _kinds(view: ProfileView, gap_start: Ints, gap_stop: Ints, following: Ints) -> Ints:
    profile = view.profile
    calls, launches = profile.calls, profile.launches
    known = np.maximum(following, 0)
    call = launches.call[known]
    has_call = (following >= 0) & (call >= 0)
    launched = np.full(len(following), -1, dtype=np.int64)
    by_op = np.zeros(len(following), dtype=np.bool_)
    launched[has_call] = calls.start_ns[call[has_call]]
    by_op[has_call] = profile.ops.kind[calls.op[call[has_call]]] != CallKind.RUNTIME
    late = has_call & (launched > gap_start)
    # Work of unrecorded launch calls is unknown, but that of an op which began in the gap was launched in it.
    orphan = launches.attribution[known] == Attribution.ORPHAN
    unknown = (following >= 0) & ((~has_call & ~orphan) | (by_op & ~late))
    # What ran before the recording's first work is not in it.
    unknown[0] |= bool(orphan[0]) and following[0] >= 0
    # Compared without a difference: the first and the last gap are open.
    short = gap_stop < gap_start + KERNEL_WAIT_BELOW_NS
    return np.select(
        [unknown, late | (following < 0), short],
        [int(GapKind.UNKNOWN), int(GapKind.HOST_WAIT), int(GapKind.KERNEL_WAIT)],
        int(GapKind.OTHER),
    ).astype(np.int64)
