"""How long GPU and host need from one communication call to the next, from a profile: `rank_facts.PATHS`.

The GPU is one server: what runs on its streams side by side counts once. Kernels begin when they are launched and the
GPU has done what began before them; the host waits where it waited. Between two calls that is a small graph, of which
the longest paths say everything that a replay of the job needs (a matrix of the max-plus algebra).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.calls_of_profile import CommunicationCalls
from tb_dlprof_plugin.fleet.rank_facts import NO_PATH, PATHS, UNKNOWN, UNPROFILED
from tb_dlprof_plugin.metrics.communication import is_collective
from tb_dlprof_plugin.model.grouping import group_rows
from tb_dlprof_plugin.model.intervals import Intervals, covered, merge
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.host_clock import HostClock, clock_of, recorded_clock
from tb_dlprof_plugin.simulation.recorder_cost import unprofiled_share
from tb_dlprof_plugin.simulation.replay import LAUNCH_LATENCY_NS
from tb_dlprof_plugin.simulation.waits import waits

MOST_PATHS = 3_000
"""Calls whose paths are kept, unless one step has more: they take four bytes each."""
_CLOCK_ERROR_NS = 500
_SLOW_START_NS = 10_000
"""From a launch on an idle GPU to the start, beyond the least latency: 99 % of the kernels of recorded host-bound steps
begin sooner."""
_BESIDE = 0.5
"""Share of a kernel during which communication runs, from which it is compared with the same kernel alone."""
_MOST_LOST = 0.5
"""Of the GPU's time between two calls that communication may have cost. Ours: more is no contention."""


@dataclass(frozen=True, slots=True)
class RankGpuWork:
    """What the GPU ran that is no communication, in order of start. ``own_ns`` is time that no earlier row covers, with
    what the GPU idled before the row though it was launched."""

    start: Ints
    stop: Ints
    launched: Ints
    own_ns: Ints
    lost_ns: Floats


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Stretches of the host and the GPU between two calls or waits, in order.

    Attributes:
        call: index of the call at whose launch the stretch's last one ends.
        first, last: rows of `RankGpuWork`.
        begin, end: on the host, recorded.
        waits: whether the host then waits for the GPU.
    """

    call: Ints
    first: Ints
    last: Ints
    begin: Ints
    end: Ints
    waits: Bools


@dataclass(frozen=True, slots=True)
class Moments:
    """Launches on the host, in order, and by when what they launch has begun on the GPU."""

    start: Ints
    launched: Ints


def paths_of(
    view: ProfileView, work: RankGpuWork, calls: CommunicationCalls, other: Intervals, communication: Intervals
) -> dict[str, Ints]:
    """The paths to each call from the one before it on this rank.

    Args:
        view: of the profile.
        work: of `work_of`.
        calls: in order of start.
        other: when the GPU ran anything but communication.
        communication: when communication ran.

    Returns:
        Columns by name; none where the launch of a call is not recorded.
    """
    if not len(calls.start_ns) or (calls.launched_ns == UNKNOWN).any():
        return {}
    moments = Moments(calls.start_ns, calls.launched_ns)
    ready = _ready(moments, work)
    paths = _paths_between(view, work, moments, ready)
    lost = np.r_[0.0, np.cumsum(work.lost_ns)]
    until = np.maximum.accumulate(np.searchsorted(work.start, ready, side="left"))
    before = np.r_[until[:1], until[:-1]]
    exposed = covered(merge(other, communication), ready, calls.start_ns) - covered(other, ready, calls.start_ns)
    contended = np.clip(lost[until] - lost[before], 0, _MOST_LOST * np.maximum(paths[PATHS[0]], 0))
    kept = _kept(calls.iteration)
    columns = {
        "behind_ns": np.maximum(calls.start_ns - ready - exposed, 0).astype(np.float64),
        "contended_ns": contended,
        **paths,
    }
    return {name: np.where(kept, _in_microseconds(column), NO_PATH) for name, column in columns.items()}


def paths_between(view: ProfileView, work: RankGpuWork, moments: Moments) -> dict[str, Ints]:
    """`PATHS`, recorded and unprofiled, from each moment to the next one."""
    paths = _paths_between(view, work, moments, _ready(moments, work))
    return {name: _in_microseconds(column) for name, column in paths.items()}


def _paths_between(view: ProfileView, work: RankGpuWork, moments: Moments, ready: Ints) -> dict[str, Floats]:
    pieces = _pieces(view, moments, work, ready)
    own = np.r_[0, np.cumsum(work.own_ns)]
    gpu = (own[pieces.last] - own[pieces.first]).astype(np.float64)
    columns: dict[str, Floats] = {}
    unprofiled = clock_of(view, unprofiled_share(view, view.selection()).expected)
    for prefix, clock in (("", recorded_clock(view, view.selection())), (UNPROFILED, unprofiled)):
        paths = _paths(pieces, work, gpu, clock, len(moments.start))
        columns |= {prefix + name: column for name, column in zip(PATHS, paths, strict=True)}
    return columns


def _kept(iteration: Ints) -> Bools:
    """Rows whose paths are kept: all, or those of the last steps."""
    count = np.bincount(iteration)
    inside = np.cumsum(count[::-1])[::-1] <= MOST_PATHS
    inside[-1] = True
    return inside[iteration]


def _in_microseconds(values: Floats) -> Ints:
    """Whole microseconds (ns); `NO_PATH` for minus infinity."""
    known = np.isfinite(values)
    return np.where(known, np.rint(np.where(known, values, 0) / 1000) * 1000, NO_PATH).astype(np.int64)


def work_of(view: ProfileView, device: int, communication: Intervals) -> RankGpuWork:
    """What a GPU ran besides communication.

    Args:
        view: of the profile.
        device: the GPU.
        communication: when communication ran.
    """
    launches = view.profile.launches
    rows = np.flatnonzero(~is_collective(view) & (launches.device == device))
    rows = rows[np.argsort(launches.start_ns[rows], kind="stable")]
    start, stop = launches.start_ns[rows], launches.start_ns[rows] + launches.duration_ns[rows]
    # What was launched before the recording waited for no launch.
    launched = take_or(view.profile.calls.start_ns, launches.call[rows], np.iinfo(np.int64).min // 4)
    reach = np.maximum.accumulate(np.r_[start[:1], stop])[:-1]
    covers = np.maximum(stop - np.maximum(start, reach), 0)
    # Idle before a row that neither its launch nor communication explains: waits for other streams, gaps.
    free = np.maximum(np.maximum(reach, launched + int(LAUNCH_LATENCY_NS)), _last_end(communication, start))
    held = np.where(start > reach, np.maximum(start - free, 0), 0)
    # On an idle GPU a kernel takes its time to begin.
    held = np.where(launched + int(LAUNCH_LATENCY_NS) > reach, np.maximum(held - _SLOW_START_NS, 0), held)
    beside = covered(communication, start, stop)
    return RankGpuWork(start, stop, launched, covers + held, _lost(view, rows, covers, beside))


def _last_end(intervals: Intervals, at: Ints) -> Ints:
    """The end of the last interval that ended by each time; one that still runs ends then."""
    if not len(intervals[0]):
        return np.full(len(at), np.iinfo(np.int64).min // 4)
    before = np.searchsorted(intervals[0], at, side="left") - 1
    ends = np.minimum(intervals[1][np.maximum(before, 0)], at)
    return np.where(before >= 0, ends, np.iinfo(np.int64).min // 4)


def _lost(view: ProfileView, rows: Ints, covers: Ints, beside: Ints) -> Floats:
    """Per row how much longer it took because communication ran on the same GPU (ns, below 0 where shorter).

    NCCL's kernels hold multiprocessors and memory bandwidth, also while they wait for other ranks. A kernel is compared
    with its like at equal launches and shapes while no communication ran; without such, all of them together count.
    """
    launches = view.profile.launches
    duration = launches.duration_ns[rows]
    op = view.launch_op[rows]
    shapes = take_or(view.profile.ops.shapes, op, 0)
    _, like = group_rows(launches.kernel[rows], launches.config[rows], shapes)
    if not len(rows):
        return np.zeros(0)
    alone, under = beside == 0, beside >= _BESIDE * np.maximum(duration, 1)
    count = np.bincount(like, weights=alone)
    mean = np.bincount(like, weights=np.where(alone, duration, 0)) / np.maximum(count, 1)
    known = under & (count[like] > 0)
    usual = float(duration[known].sum())
    share = 1 - float(mean[like[known]].sum()) / usual if usual else 0.0
    # Of the row's time on the GPU only what no other row covers.
    part = covers / np.maximum(duration, 1)
    lost = np.where(known, duration - mean[like], share * duration) * part
    return np.where(under, lost, 0.0)


def _ready(calls: Moments, work: RankGpuWork) -> Ints:
    """When all was done that was launched before each call and ended before it began; rising.

    A call that was queued behind another one was ready earlier than it began.
    """
    order = np.argsort(work.launched, kind="stable")
    reach = np.maximum.accumulate(np.r_[np.iinfo(np.int64).min, work.stop[order]])
    done = reach[np.searchsorted(work.launched[order], calls.launched, side="left")]
    # What was launched before it and ran on next to it is not what it waited for.
    reached = np.maximum.accumulate(np.r_[np.iinfo(np.int64).min, work.stop])
    ended = np.minimum(reached[np.searchsorted(work.start, calls.start, side="left")], calls.start)
    ready = np.where(done <= calls.start + _CLOCK_ERROR_NS, done, ended)
    first = np.minimum(calls.start[:1], calls.launched[:1])
    return np.minimum(np.maximum.accumulate(np.maximum(ready, first)), calls.start)


def _pieces(view: ProfileView, calls: Moments, work: RankGpuWork, ready: Ints) -> _Pieces:
    known = waits(view, view.selection())
    useful = np.flatnonzero(~known.nothing)
    called, until = view.profile.calls.start_ns[known.call[useful]], known.until_ns[useful]
    order = np.argsort(called, kind="stable")
    called, until = called[order], until[order]
    # A wait belongs to the call that the host launches next.
    of_wait = np.searchsorted(np.maximum.accumulate(calls.launched), called, side="right")
    inside = of_wait < len(calls.start)
    called, until, of_wait = called[inside], until[inside], of_wait[inside]
    last = np.maximum.accumulate(np.searchsorted(work.start, ready, side="left"))
    first = np.r_[last[:1], last[:-1]]
    at = np.clip(np.searchsorted(work.start, until, side="left"), first[of_wait], last[of_wait])
    count = len(calls.start)
    call = np.concatenate([of_wait, np.arange(count)])
    ends = np.concatenate([at, last])
    stop = np.concatenate([called, calls.launched])
    resumed = np.concatenate([np.maximum(until, called), calls.launched])
    is_wait = np.concatenate([np.ones(len(at), dtype=np.bool_), np.zeros(count, dtype=np.bool_)])
    order = np.lexsort((stop, ~is_wait, call))
    call, ends, stop, resumed, is_wait = call[order], ends[order], stop[order], resumed[order], is_wait[order]
    own = np.diff(call, prepend=-1) == 0
    before = np.r_[0, ends[:-1]]
    ends = np.where(own, np.maximum(ends, before), ends)
    return _Pieces(
        call=call,
        first=np.minimum(np.where(own, np.r_[0, ends[:-1]], first[call]), ends),
        last=ends,
        begin=np.r_[stop[:1], resumed[:-1]],
        end=stop,
        waits=is_wait,
    )


def _paths(
    pieces: _Pieces, work: RankGpuWork, gpu: Floats, clock: HostClock, count: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """Per call: from the GPU and from the host to the GPU, from the host and from the GPU to the host."""
    begin, end = clock.at(pieces.begin), clock.at(pieces.end)
    host = end - begin
    launched = clock.at(work.launched)
    own = np.cumsum(work.own_ns)
    # From the host's begin to a launch, and then all that the GPU has to do from there on.
    after = np.full(len(gpu), -np.inf)
    some = np.flatnonzero(pieces.last > pieces.first)
    if len(some):
        edges = np.stack((pieces.first[some], pieces.last[some]), axis=1).reshape(-1)
        level = np.r_[launched - (own - work.own_ns), -np.inf]
        latest = np.maximum.reduceat(level, edges)[::2]
        after[some] = latest - begin[some] + LAUNCH_LATENCY_NS + own[pieces.last[some] - 1]
        known = work.launched[pieces.last[some] - 1] > np.iinfo(np.int64).min // 8
        after[some] = np.where(known, after[some], -np.inf)
    result = (np.zeros(count), np.full(count, -np.inf), np.zeros(count), np.full(count, -np.inf))
    many = np.bincount(pieces.call, minlength=count)[pieces.call] > 1
    single = ~many
    for column, values in zip(result, (gpu, after, host), strict=False):
        column[pieces.call[single]] = values[single]
    state: tuple[float, float, float, float] | None = None
    at = -1
    for row in np.flatnonzero(many).tolist():
        call = int(pieces.call[row])
        if call != at:
            state, at = (0.0, -np.inf, 0.0, -np.inf), call
        assert state is not None
        state = _after(state, float(gpu[row]), float(after[row]), float(host[row]), bool(pieces.waits[row]))
        for column, value in zip(result, state, strict=True):
            column[call] = value
    return result


def _after(
    state: tuple[float, float, float, float], gpu: float, after: float, host: float, waits: bool
) -> tuple[float, float, float, float]:
    """The paths when one more piece has been passed."""
    gpu_gpu, host_gpu, host_host, gpu_host = state
    gpu_gpu, host_gpu, gpu_host, host_host = (
        max(gpu_gpu + gpu, gpu_host + after),
        max(host_gpu + gpu, host_host + after),
        gpu_host + host,
        host_host + host,
    )
    if waits:
        gpu_host, host_host = max(gpu_host, gpu_gpu), max(host_host, host_gpu)
    return gpu_gpu, host_gpu, host_host, gpu_host
