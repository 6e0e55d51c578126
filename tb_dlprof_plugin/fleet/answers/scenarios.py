"""The job's step after one change: a rank repaired, stages balanced, the network free, communication hidden.

Each is the recorded job replayed with other times, as a share of the job replayed as it is, times the step without
the profiler. How far the replay as recorded is from the recording is part of each interval.

NCCL's kernels hold multiprocessors also while they wait, so that kernels next to them are slower: with the late rank
repaired the others have less to do. How much that is comes from the recording (`rank_facts.Collectives.contended_ns`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tb_dlprof_plugin.fleet.answers.alike import others_of, peers, steps_alike
from tb_dlprof_plugin.fleet.answers.call_paths import SLOWER_PACE, PathTimes, even_pace, pauses, steps_with_paths
from tb_dlprof_plugin.fleet.answers.calls import JobCalls, calls_of, next_to_point_to_point, stage_of
from tb_dlprof_plugin.fleet.answers.replay import (
    Course,
    ReplayedStep,
    Times,
    recorded_step,
    replay,
    replay_as_recorded,
    waves,
)
from tb_dlprof_plugin.fleet.job import JobStep, WhatIf
from tb_dlprof_plugin.fleet.matching import Matched
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints
from tb_dlprof_plugin.simulation.recorder_cost import JOB_SPREAD

UNRELIABLE_PERCENT = 5.0
"""Error of the replay as recorded from which its answers are no basis for decisions: Lin et al. (OSDI'25) leave
out such jobs."""
LEAST_ERROR = 0.15
"""Half the interval of what a change wins, as a share of it: repaired ranks of recorded jobs won 0 to 13 % more than
their even twins show (`lab/ranks`)."""
SAVING_ERROR = 0.25
"""The same of what the repair of one rank saves: 85 % of drawn delays (`lab.ranks.synthetic_jobs`), of which few steps
show a host that varies, were within it."""
PACE_WEIGHTS = (0.125, 0.75, 0.125)
"""Of the fast, the expected and the slow pace: three points, the outer ones at two standard deviations, that have the
mean and the variance of a normal distribution."""
_PACES = (0.5, 0.75, 1.0, 1.25, 1.6, 2.0)
"""Launching over what is expected without the profiler (`simulation.recorder_cost`), that a measured step may show."""
_HOSTS_DECIDE = 1.05
"""A step at least this many times as long as with the fastest hosts determines their pace."""
_MOST_TRIED = 100_000
"""Calls of all ranks that are replayed with hosts of several paces."""
_MOST_TIMED = 2_000_000
"""Calls of all ranks that are replayed to find how much of the step is recording: each replay takes a second."""
_TURNS = 3
"""Replays of one job: how long ranks wait depends on how much their waiting slows their own work down."""
_IDLE_KEPT = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Where launches are not recorded: the share of idle time that is left without the profiler, which delays the host."""


@dataclass(frozen=True, slots=True)
class _Job:
    """Times to replay.

    Attributes:
        paths: of host and GPU.
        due_to_waiting: how much of the GPU's work is due to waiting in calls at the same time.
        idle: how much of the GPU's path is idling for a host whose launches are not recorded.
        transfer: of the call's collective.
    """

    paths: PathTimes
    due_to_waiting: Floats
    idle: Floats
    transfer: Floats


class Scenarios:
    """A job's replays.

    Attributes:
        calls: of all ranks; ``order`` are their waves.
        replayed: those of ``calls`` that are replayed, where paths are recorded of some steps.
        step: of the job, as its ranks estimate it.
        classes: of each rank the number of its class (`peers`).
        recorded_ns, simulated_ns: mean step as recorded, with the profiler, and replayed so.
        faster: with it the paths of ``replayed`` are those without the profiler (`CallPaths.between`).
        base_ns: replayed without the profiler.
        paces: itself; with hosts as fast and as slow as they may be, where no step was timed without the profiler.
    """

    paces: Sequence[Scenarios]

    def __init__(self, facts: Sequence[RankFacts], matched: Matched, calls: JobCalls, step: JobStep | None) -> None:
        """Replays the job as it is, with the profiler and without.

        Args:
            facts: of all ranks.
            matched: their collectives.
            calls: the ones of ``matched``, in some steps.
            step: of the job.
        """
        self.facts, self.calls, self.order, self.step = facts, calls, waves(calls), step
        self.replayed = _with_paths(facts, matched, calls)
        self.classes: Ints = peers(facts, calls)
        replayed, paths = self.replayed, self.replayed.paths
        self._course = Course(replayed, self.order if replayed is calls else waves(replayed))
        self._waited, share = self._recorded_waiting()
        self._paused = pauses(paths, self.classes, replayed.first, replayed.counted) if paths.launches else np.zeros(0)
        transfer = replayed.transfer.astype(np.float64)
        self._recorded = _Job(paths.recorded, paths.contended * share[replayed.rank], np.zeros(len(transfer)), transfer)
        self.recorded_ns = recorded_step(replayed)
        self.simulated_ns = replay_as_recorded(self._course, Times(paths.recorded, transfer))
        pace, ends = self._pace()
        self._launch_at(pace)
        if self.step is not None and ends is not None and len(replayed.rank) <= _MOST_TRIED:
            fast, slow = (copy.copy(self), copy.copy(self))
            fast._launch_at(ends[0])
            slow._launch_at(ends[1])
            self.paces = (fast, self, slow)

    @property
    def error_percent(self) -> float | None:
        """Of the replay as recorded."""
        return _finite(100 * (self.simulated_ns / self.recorded_ns - 1)) if self.recorded_ns else None

    @property
    def recorder_ms(self) -> float:
        """What the profiler added to a recorded step; 0 where the step without it is not known."""
        return 0.0 if self.step is None else max(self.recorded_ns / 1e6 - self.step.ms, 0.0)

    def won_ms(self, asked: Callable[[Scenarios], float | None]) -> float | None:
        """By how much a change makes the job's step shorter: the mean over what the paces of hosts may be.

        Args:
            asked: the step after the change.
        """
        won = self._won_ms(asked)
        return None if won is None else _mean_of(won)

    def saved_ms(self, asked: Callable[[Scenarios], float | None]) -> tuple[float, float, float] | None:
        """What a repair saves, and the interval of it. At no pace a repair costs anything.

        Where the step without the profiler was timed and varies, the late rank may be all that varies: the repair
        saves as much less or more as the step is shorter or longer, but at least half, as the delay itself was seen.

        Args:
            asked: the step after the repair.
        """
        won = self._won_ms(asked)
        if won is None:
            return None
        saved = [max(each, 0.0) for each in won]
        error = max(abs(self.error_percent or 0.0) / 100, SAVING_ERROR)
        low, high = min(saved) * (1 - error), max(saved) * (1 + error)
        if len(self.paces) == 1 and self.step is not None:
            low, high = max(low + self.step.low_ms - self.step.ms, low / 2), high + self.step.high_ms - self.step.ms
        return _mean_of(saved), low, high

    def _won_ms(self, asked: Callable[[Scenarios], float | None]) -> list[float] | None:
        """At each of the paces."""
        won = [each.step.ms - after for each in self.paces if each.step and (after := asked(each)) is not None]
        return won if len(won) == len(self.paces) else None

    def row(self, change: str, asked: Callable[[Scenarios], float | None]) -> WhatIf | None:
        """A change with its interval: that of the step, moved by the replay's error; None where it is not known."""
        won = self.won_ms(asked)
        if won is None or self.step is None:
            return None
        stated = self.stated(change, won)
        if len(self.paces) == 1:
            return stated
        steps = [stated.step_ms, *(after for each in self.paces if (after := asked(each)) is not None)]
        spread = self._spread(won)
        return WhatIf(change, stated.step_ms, max(min(steps) - spread, 0.0), max(steps) + spread)

    def stated(self, change: str, won_ms: float) -> WhatIf:
        """A change that wins so much."""
        assert self.step is not None
        step_ms, spread = self.step.ms - won_ms, self._spread(won_ms)
        share = step_ms / self.step.ms
        return WhatIf(change, step_ms, max(self.step.low_ms * share - spread, 0.0), self.step.high_ms * share + spread)

    def _spread(self, won_ms: float) -> float:
        """Only the part of the step that changes can be wrong by the replay's error."""
        return max(abs(self.error_percent or 0.0) / 100, LEAST_ERROR) * abs(won_ms)

    def scaled_ms(self, replayed_ns: float) -> float | None:
        """The job's step without the profiler where its replay takes so long."""
        if self.step is None or not self.base_ns:
            return None
        return _finite(self.step.ms * replayed_ns / self.base_ns)

    @cached_property
    def own_ns(self) -> Floats:
        """Of each rank, the mean step that it would have by itself."""
        alone = replace(self._job, transfer=np.zeros(len(self._job.transfer)))
        return self._replay(alone, joined=False).of_rank

    @cached_property
    def free_network_ms(self) -> float | None:
        """The job's step if transfers took no time."""
        return self.transfers_ms(0.0)

    @property
    def hidden_ms(self) -> float | None:
        """The job's step if no communication were exposed: the longest own time."""
        if self.step is None or not self.base_ns or not self.calls.steps:
            return None
        longest = self.scaled_ms(float(self.own_ns.max(initial=0.0)))
        return None if longest is None else min(self.step.ms, longest)

    @cached_property
    def even_ms(self) -> float | None:
        """The job's step with every rank's times as the mean of ranks and steps.

        Transfers are the median of the steps: a link that was slow in one of them is no property of the job. After Lin
        et al. (OSDI'25), section 3.
        """
        job = self._scaled_to_mean(self.classes)
        columns = [column.copy() for column in (*job.paths.columns, job.due_to_waiting)]
        transfer = job.transfer.copy()
        # Of a first step that does not count nothing is known of what comes before its first call.
        first = int(self.replayed.paths.launches)
        for number in np.unique(self.classes):
            members = np.flatnonzero(self.classes == number).tolist()
            rows = [self.replayed.of_rank(rank) for rank in members]
            steps = steps_alike(self.replayed, members[0])
            for column in columns:
                mean = np.mean([column[each] for each in rows], axis=0)
                if steps > first:
                    table = mean.reshape(steps, -1)
                    table[first:] = table[first:].mean(axis=0)
                for each in rows:
                    column[each] = mean
            if steps:
                for each in rows:
                    transfer[each] = np.tile(np.median(transfer[each].reshape(steps, -1), axis=0), steps)
        return self._step_ms(
            replace(job, paths=PathTimes(*columns[:-1]), due_to_waiting=columns[-1], transfer=transfer)
        )

    @cached_property
    def even_stages_ms(self) -> float | None:
        """The job's step with the mean work of all stages on each; ranks of a stage stay as they are to each other."""
        return self._step_ms(self._scaled_to_mean(np.array([stage_of(rank) for rank in self.facts])))

    def repaired_ms(self, index: int, of_gpu: bool, excess_ns: float = 0.0) -> float | None:
        """The job's step with this rank's own times as the median of the ranks that do the same work.

        Args:
            index: the rank's.
            of_gpu: what is wrong with it is its GPU or what that has to do. Its host stays: the others' host is hidden
                where they wait.
            excess_ns: by how much it takes longer in a step, which is taken from a rank that has no like.
        """
        calls, job = self.replayed, self._job
        rows = calls.of_rank(index)
        # Damaged recordings of ranks of one class may have paths in different steps.
        count = np.diff(calls.first)
        others = [other for other in others_of(self.classes, index).tolist() if count[other] == count[index]]
        if not others:
            pauses_known = not of_gpu and calls.paths.launches
            over = self._paused if pauses_known else job.paths.gpu if of_gpu else job.idle
            less = np.zeros(len(over))
            less[rows] = _spread(excess_ns * calls.steps, over[rows])
            paths = job.paths.with_shorter_pauses(less) if pauses_known else job.paths.with_less_work(less)
            return self._step_ms(replace(job, paths=paths))
        columns, due = [column.copy() for column in job.paths.columns], job.due_to_waiting.copy()
        idle = job.idle if of_gpu else np.zeros(len(due))
        # Of the others' work what their waiting for this rank costs is no part.
        usual = job.paths.with_less_work(due + idle).columns
        for column, of_all in zip(columns, usual, strict=True):
            column[rows] = np.median(np.stack([of_all[calls.of_rank(other)] for other in others]), axis=0)
        columns[0][rows] += idle[rows]
        due[rows] = 0.0
        return self._step_ms(replace(job, paths=PathTimes(*columns), due_to_waiting=due))

    def transfers_ms(self, factor: float | Floats) -> float | None:
        """The job's step if all transfers, or each call's, take this many times as long."""
        if not isinstance(factor, float):
            # Rows of the same steps, in the same order.
            factor = factor[np.isin(self.calls.numbers[self.calls.step], self.replayed.numbers)]
        return self._step_ms(replace(self._job, transfer=self._job.transfer * factor))

    @cached_property
    def host_ns(self) -> tuple[Floats, Floats]:
        """Where launches are recorded: of each step but the first, and each rank, the host's pauses and launching."""
        calls, tables = self.replayed, []
        for column in (self._paused, calls.paths.recorded.host - self._paused):
            table = np.zeros((calls.steps, calls.ranks))
            np.add.at(table, (calls.step, calls.rank), column)
            tables.append(table[1:])
        return tables[0], tables[1]

    def slower_launching_ns(self, index: int, others: Ints) -> Floats:
        """By step, how much longer a rank's host launches than recording may make it."""
        launching = self.host_ns[1]
        usual = np.median(launching[:, others], axis=1)
        longer: Floats = np.maximum(launching[:, index] - SLOWER_PACE * usual, 0) * self.replayed.paths.share[index]
        return longer

    def _step_ms(self, job: _Job) -> float | None:
        return self.scaled_ms(self._replay(job).step)

    def _scaled_to_mean(self, groups: Ints) -> _Job:
        """The work of each group of ranks scaled to the mean: of a pipeline what lies next to sends and receives.

        A stage with more layers has more launches, too, and its host is scaled by no more than these: other layers do
        not repair a host that the profiler delays more. The rest of a stage's step, its optimizer for example, depends
        on other things than the layers that it has.
        """
        calls, job = self.replayed, self._job
        scaled = next_to_point_to_point(calls)
        if not scaled.any():
            scaled = np.ones(len(calls.rank), dtype=np.bool_)
        working = job.paths.with_less_work(job.idle)
        launches = np.array([rank.kernels.count.sum() / max(len(rank.steps), 1) for rank in self.facts])
        of_gpu, of_host = (_to_mean(self._sums(column, scaled), groups) for column in (working.gpu, working.host))
        most = _to_mean(launches, groups)
        of_host = np.clip(of_host, np.minimum(most, 1.0), np.maximum(most, 1.0))
        factors = [np.where(scaled, factor[calls.rank], 1.0) for factor in (of_gpu, of_host)]
        paths = working.scaled(*factors).with_less_work(-job.idle)
        return replace(job, paths=paths, due_to_waiting=job.due_to_waiting * factors[0])

    def _sums(self, column: Floats, chosen: Bools) -> Floats:
        """Of each rank over the chosen calls that count."""
        counts = chosen & (self.replayed.counted > 0) & np.isfinite(column)
        return self.replayed.per_rank(np.where(counts, column, 0.0))

    def _recorded_waiting(self) -> tuple[Floats, Floats]:
        """Of each rank how long it waited in calls while its GPU worked, and the share of that in all such calls."""
        calls = self.replayed
        beside = np.maximum(calls.duration - calls.exposed, 0)
        waited = np.minimum(beside, np.maximum(calls.duration - calls.transfer, 0))
        waiting, whole = (calls.per_rank(column * calls.counted) for column in (waited, beside))
        return waiting, np.divide(waiting, whole, out=np.zeros(calls.ranks), where=whole > 0)

    def _launch_at(self, pace: float) -> None:
        """Everything without the profiler, with hosts of this pace: see `_pace`."""
        paths = self.replayed.paths
        self.paces = (self,)
        self.faster = self._faster(pace)
        own = paths.between(self.faster)
        idle = self._recorded.idle if paths.launches else own.gpu - paths.expected.gpu
        self._job = replace(self._recorded, paths=own, idle=idle)
        self.base_ns = self._replay(self._job).step

    def _faster(self, pace: float) -> Floats:
        calls = self.replayed
        if not calls.paths.launches:
            return np.full(calls.ranks, 1 - pace)
        return even_pace(calls.paths, self._paused, self.classes, calls.counted, pace)

    def _pace(self) -> tuple[float, tuple[float, float] | None]:
        """Of launching, over what is expected: as the measured step shows, if hosts determine it; and its ends, where
        nothing shows it.

        Where launches are not recorded it is the share of idle time that is left without the profiler.
        """
        paths = self.replayed.paths
        ends = (math.exp(-JOB_SPREAD), math.exp(JOB_SPREAD)) if paths.launches else None
        untimed = ("simulated",) if paths.launches else ("recorded",)
        if self.step is None or self.step.source in untimed or len(self.replayed.rank) > _MOST_TIMED:
            return 1.0, ends
        paces = _PACES if paths.launches else _IDLE_KEPT
        steps = [
            self._replay(replace(self._recorded, paths=paths.between(self._faster(pace))), 1).step for pace in paces
        ]
        steps = np.maximum.accumulate(steps).tolist()
        wanted = self.step.ms * 1e6
        pace = (1.0 if paths.launches else paces[0]) if wanted <= steps[0] else float(np.interp(wanted, steps, paces))
        own = float(np.interp(pace, paces, steps))
        if ends is None or own > _HOSTS_DECIDE * steps[0]:
            return pace, None
        # The GPU sets the pace: hosts may be anything up to where they would.
        most = max(one for one, step in zip(paces, steps, strict=True) if step <= _HOSTS_DECIDE * max(wanted, steps[0]))
        return min(pace, 1.0, most), (ends[0], min(ends[1], most))

    def _replay(self, job: _Job, turns: int = _TURNS, joined: bool = True) -> ReplayedStep:
        calls, left = self.replayed, np.zeros(self.replayed.ranks)
        turns = 1 if not joined or not job.due_to_waiting.any() else turns
        for turn in range(turns):
            less = job.due_to_waiting * (1 - left[calls.rank])
            replayed = replay(self._course, Times(job.paths.with_less_work(less), job.transfer, joined))
            if turn + 1 < turns:
                waited = calls.per_rank(replayed.hidden * calls.counted)
                left = np.clip(np.divide(waited, self._waited, out=left * 0, where=self._waited > 0), 0, 1)
        return replayed


def _with_paths(facts: Sequence[RankFacts], matched: Matched, calls: JobCalls) -> JobCalls:
    """The calls of the steps whose paths are recorded, and of one before them; all of them where there are none."""
    numbers = steps_with_paths(facts, calls.numbers)
    if len(numbers) < 2 or len(numbers) == calls.steps:
        return calls
    some = calls_of(facts, matched, numbers)
    return some if some.paths.launches else calls


def _spread(excess_ns: float, over: Floats) -> Floats:
    """An excess in proportion to a column, at most all of it."""
    column = np.maximum(over, 0.0)
    whole = float(column.sum())
    return column * min(excess_ns / whole, 1.0) if whole > 0 else column


def _to_mean(own: Floats, groups: Ints) -> Floats:
    """Of each rank the factor that takes its group's mean to that of all ranks."""
    means = np.bincount(groups, weights=own)[groups] / np.bincount(groups)[groups]
    result: Floats = np.divide(own.mean(), means, out=np.ones(len(own)), where=means > 0)
    return result


def _mean_of(paces: Sequence[float]) -> float:
    weights = (1.0,) if len(paces) == 1 else PACE_WEIGHTS
    return sum(weight * each for weight, each in zip(weights, paces, strict=True))


def _finite(value: float) -> float | None:
    """None of what follows from times that contradict each other: infinity less infinity."""
    return value if math.isfinite(value) else None
