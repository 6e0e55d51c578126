"""The paths of host and GPU to the calls of all ranks, and how fast hosts launch without the profiler.

The profiler delays each host by its own amount: ranks with the same work launched at paces that differed by up to 60 %
while it recorded, and hosts that launch late hide each other's delay. Without it they launch at the same pace. What a
rank's host does between launches (Python, its data loader) is no cost of recording, and stays its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.fleet.rank_facts import (
    NO_PATH,
    PATH_COLUMNS,
    PATHS,
    UNPROFILED,
    Collectives,
    Gradients,
    RankFacts,
)
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints

MOST_CALLS = 1_000_000
"""Calls of all ranks that are replayed with their hosts: more take minutes."""
SLOWER_PACE = 2.0
"""Launching time over the median of ranks with the same work, up to which the profiler explains it. Ours: in 38
recordings of even hosts it was at most 1.6."""
_ALWAYS = ("gpu_ns", "host_ns", UNPROFILED + "gpu_ns", UNPROFILED + "host_ns")
_LEAST_COST = 0.05
"""Of recording, as a share of launching, from which it tells launching from pauses."""


@dataclass(frozen=True, slots=True)
class PathTimes:
    """Columns as in `rank_facts.PATHS`."""

    gpu: Floats
    gpu_after_host: Floats
    host: Floats
    host_after_gpu: Floats

    @property
    def columns(self) -> tuple[Floats, Floats, Floats, Floats]:
        """All of them, in order."""
        return self.gpu, self.gpu_after_host, self.host, self.host_after_gpu

    def with_less_work(self, less: Floats) -> PathTimes:
        """With so much less for the GPU to do; its path from the host is no shorter than the host's own."""
        if not less.any():
            return self
        after, host = self.gpu_after_host, self.host
        shorter = np.where(np.isfinite(after), np.maximum(after - less, np.minimum(after, host)), after)
        return PathTimes(self.gpu - less, shorter, host, self.host_after_gpu)

    def with_shorter_pauses(self, less: Floats) -> PathTimes:
        """With so much shorter pauses of the host before each call.

        Where the host waited for the GPU before, the GPU's own path leads over the host, too.
        """
        gpu = np.where(np.isfinite(self.host_after_gpu), np.maximum(self.gpu - less, 0.0), self.gpu)
        return PathTimes(gpu, self.gpu_after_host - less, self.host - less, self.host_after_gpu - less)

    def scaled(self, gpu: Floats, host: Floats) -> PathTimes:
        """With so many times the work of the GPU and of the host."""
        known = np.isfinite(self.gpu_after_host)
        after = np.where(known, self.gpu_after_host, 0.0)
        of_host = np.clip(after, 0.0, np.maximum(self.host, 0.0))
        scaled = np.where(known, of_host * host + (after - of_host) * gpu, -np.inf)
        return PathTimes(self.gpu * gpu, scaled, self.host * host, self.host_after_gpu * host)


@dataclass(frozen=True, slots=True)
class CallPaths:
    """`rank_facts.PATHS` of the calls of all ranks, in their order (ns); minus infinity where there is no path.

    Attributes:
        rank: index of each call's rank.
        recorded, expected: with the profiler, and as expected without it.
        share: the `launch_share` of each rank.
        launches: whether launches are recorded; else the path of the GPU is all that there is.
    """

    rank: Ints
    behind: Floats
    contended: Floats
    recorded: PathTimes
    expected: PathTimes
    share: Floats
    launches: bool = True

    def between(self, faster: Floats) -> PathTimes:
        """With launches between the recorded ones (``faster`` of their rank is 0) and the expected ones (1)."""
        share = faster[self.rank]
        if not self.launches:
            return replace(self.recorded, gpu=_between(self.recorded.gpu, self.expected.gpu, share))
        pairs = zip(self.recorded.columns, self.expected.columns, strict=True)
        return PathTimes(*(_between(recorded, expected, share) for recorded, expected in pairs))


def _between(recorded: Floats, expected: Floats, faster: Floats) -> Floats:
    known = np.isfinite(recorded) & np.isfinite(expected)
    difference = np.where(known, expected, 0.0) - np.where(known, recorded, 0.0)
    return np.where(known, np.where(known, recorded, 0.0) + faster * difference, -np.inf)


def own_time_paths(rank: Ints, gap: Ints, idle: Ints) -> CallPaths:
    """Where launches are not recorded: the rank's own time, and expected is as much without idling for the host.

    Args:
        rank: of each call.
        gap: own time since the call before was ready.
        idle: the part of it in which the GPU idled.
    """
    nowhere, nothing = np.broadcast_to(-np.inf, len(rank)), np.broadcast_to(0.0, len(rank))
    recorded, expected = (
        PathTimes(column.astype(np.float64), nowhere, nowhere, nowhere) for column in (gap, gap - idle)
    )
    return CallPaths(rank, nothing, nothing, recorded, expected, np.zeros(0), launches=False)


def steps_with_paths(facts: Sequence[RankFacts], numbers: Ints) -> Ints:
    """Of the numbers of steps those that all ranks have paths for, and one before; none where there are no paths."""
    has = np.ones(len(numbers), dtype=np.bool_)
    for rank in facts:
        if not len(rank.collectives):
            return numbers[:0]
        unknown = lacks_paths(rank.collectives)
        if unknown.any():
            has &= ~np.isin(numbers, rank.steps.number[np.unique(rank.collectives.iteration[unknown])])
    has[:1] = False
    if not has.any():
        return numbers[:0]
    chosen = np.flatnonzero(has)
    return numbers[np.unique(np.r_[chosen[0] - 1, chosen])]


def call_paths(facts: Sequence[RankFacts], rows: Sequence[Ints]) -> CallPaths | None:
    """Of the given rows of each rank's collectives, 0 where they are not known.

    None where a rank has no paths, or there are more than `MOST_CALLS` rows.
    """
    many = sum(len(each) for each in rows) > MOST_CALLS
    unknown_of = [lacks_paths(rank.collectives) for rank in facts]
    if many or any(unknown.all() for unknown in unknown_of):
        return None
    columns = {
        name: np.concatenate([getattr(rank.collectives, name)[own] for rank, own in zip(facts, rows, strict=True)])
        for name in PATH_COLUMNS
    }
    unknown = np.concatenate([unknown[chosen] for unknown, chosen in zip(unknown_of, rows, strict=True)])
    times = {
        name: np.where(unknown, 0.0, np.where(values == NO_PATH, -np.inf, values.astype(np.float64)))
        for name, values in columns.items()
    }
    return CallPaths(
        rank=np.repeat(np.arange(len(facts)), [len(each) for each in rows]),
        # These are quantities, no paths: one that is not known is none.
        behind=np.where(np.isfinite(times["behind_ns"]), times["behind_ns"], 0.0),
        contended=np.where(np.isfinite(times["contended_ns"]), times["contended_ns"], 0.0),
        recorded=PathTimes(*(times[name] for name in PATHS)),
        expected=PathTimes(*(times[UNPROFILED + name] for name in PATHS)),
        share=np.array([rank.launch_share for rank in facts]),
    )


def lacks_paths(rows: Collectives | Gradients) -> Bools:
    """Which rows have no paths: the GPU and the host each have one from their own time wherever anything is known."""
    return np.any([getattr(rows, name) == NO_PATH for name in _ALWAYS], axis=0)


def pauses(paths: CallPaths, classes: Ints, first: Ints, counted: Floats) -> Floats:
    """Of each call the part of the host's time before it in which it does something else than launch (ns).

    What recording costs is a share of the time in which the host launches, so the rest of its time is pauses. A pause
    counts as far as the host takes longer than those of ranks with the same work, at the pace at which it launches.

    Args:
        paths: of all ranks.
        classes: of each rank the number of its class.
        first: where the calls of each rank begin; one entry more than ranks.
        counted: 1 for calls that count, else 0.
    """
    cost = paths.recorded.host - paths.expected.host
    launching = np.minimum(cost / np.maximum(1 - paths.share, _LEAST_COST)[paths.rank], paths.recorded.host) * counted
    result = np.maximum(paths.recorded.host * counted - launching, 0.0)
    whole = np.bincount(paths.rank, weights=launching, minlength=len(classes))
    for number in np.unique(classes).tolist():
        members = np.flatnonzero(classes == number)
        if len(members) < 2:
            continue
        rows = [slice(int(first[rank]), int(first[rank + 1])) for rank in members]
        usual, paused = (np.median([each[own] for own in rows], axis=0) for each in (launching, result))
        if len(members) == 2:
            usual, paused = (np.min([each[own] for own in rows], axis=0) for each in (launching, result))
        at_all = float(usual.sum())
        for rank, own in zip(members.tolist(), rows, strict=True):
            pace = whole[rank] / at_all if at_all > 0 else 1.0
            longer = np.maximum(paths.recorded.host[own] - pace * usual, paused)
            result[own] = np.minimum(result[own], longer)
    return result


def even_pace(paths: CallPaths, paused: Floats, classes: Ints, counted: Floats, pace: float) -> Floats:
    """Of each rank the argument of `CallPaths.between` with which the ranks of a class launch equally fast.

    Args:
        paths: of all ranks.
        paused: of `pauses`.
        classes: of each rank the number of its class.
        counted: 1 for calls that count, else 0.
        pace: launching time over what is expected without the profiler.
    """
    ranks = len(classes)
    time = np.bincount(paths.rank, weights=(paths.recorded.host - paused) * counted, minlength=ranks)
    cost = np.bincount(paths.rank, weights=(paths.recorded.host - paths.expected.host) * counted, minlength=ranks)
    result = np.ones(ranks)
    for number in np.unique(classes).tolist():
        members = np.flatnonzero(classes == number)
        usual = float(np.median(time[members]))
        if usual <= 0:
            continue
        wanted = pace * paths.share[members] * usual * np.maximum(time[members] / usual / SLOWER_PACE, 1.0)
        known = cost[members] > 0
        result[members] = np.where(known, (time[members] - wanted) / np.where(known, cost[members], 1.0), 1.0)
    return result
