"""What-if by paths of host and GPU: what a repair wins where hosts set the pace, or waiting slows other ranks down.

NCCL's kernels hold multiprocessors also while they wait, so that kernels next to them are slower: with the late rank
repaired the others have less to do. How much that is comes from the recording (`rank_facts.Collectives.contended_ns`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tb_dlprof_plugin.fleet.answers.call_paths import SLOWER_PACE, CallPaths, PathTimes, even_pace, pauses
from tb_dlprof_plugin.fleet.answers.calls import Calls, next_to_point_to_point, stage_of
from tb_dlprof_plugin.fleet.answers.paced_replay import (
    Course,
    Paced,
    PacedStep,
    paced_replay,
    recorded_pace,
    recorded_replay,
)
from tb_dlprof_plugin.fleet.answers.peers import of_others, steps_alike
from tb_dlprof_plugin.fleet.answers.replay import Wave, waves
from tb_dlprof_plugin.fleet.answers.what_if import Scenarios
from tb_dlprof_plugin.fleet.job import JobStep
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Floats, Ints
from tb_dlprof_plugin.simulation.estimate import SHORTEST_STEP_NS
from tb_dlprof_plugin.simulation.recorder_cost import JOB_SPREAD
from tb_dlprof_plugin.simulation.timed_steps import LEAST_ERROR

_PACES = (0.5, 0.75, 1.0, 1.25, 1.6, 2.0)
"""Launching over what is expected without the profiler (`simulation.recorder_cost`), that a measured step may show."""
_HOSTS_DECIDE = 1.05
"""A step at least this many times as long as with the fastest hosts determines their pace."""
_MOST_TRIED = 100_000
"""Calls of all ranks that are replayed with hosts of several paces."""
_TURNS = 3
"""Replays of one job: how long ranks wait depends on how much their waiting slows their own work down."""


@dataclass(frozen=True, slots=True)
class _Job:
    """Times to replay, and how much of the GPU's work is due to waiting in calls at the same time."""

    paths: PathTimes
    due_to_waiting: Floats
    transfer: Floats


class PacedScenarios(Scenarios):
    """Replays of `paced_replay`."""

    def __init__(
        self,
        facts: Sequence[RankFacts],
        calls: Calls,
        order: list[Wave],
        step: JobStep | None,
        paced: Calls,
        pace: float | None = None,
    ) -> None:
        """Replays the job as it is, with the profiler and without.

        Args:
            facts: of all ranks.
            calls: of all ranks.
            order: of the calls.
            step: of the job; one that no rank timed is replaced by that of the replay.
            paced: the calls of the steps whose paths are known, and of one before them.
            pace: of launching, over what is expected without the profiler; as the step shows by default.
        """
        assert paced.paths is not None
        super().__init__(facts, calls, order, step)
        self._calls, self._paths = paced, paced.paths
        self._course = Course(paced, order if paced is calls else waves(paced))
        self._counted = (paced.step > 0).astype(np.float64)
        self._waited, share = self._recorded_waiting()
        self._paused = pauses(self._paths, self.classes, paced.first, self._counted)
        transfer = paced.transfer.astype(np.float64)
        recorded = _Job(self._paths.recorded, self._paths.contended * share[paced.rank], transfer)
        self.recorded_ns = recorded_pace(paced)
        self.simulated_ns = recorded_replay(self._course, Paced(self._paths.recorded, transfer))
        self.faster = self._faster(self._pace(recorded) if pace is None else pace)
        self._job = replace(recorded, paths=self._paths.between(self.faster))
        self.base_ns = self._replayed(self._job).step
        if step is not None and step.source == "simulated" and self.base_ns >= SHORTEST_STEP_NS:
            self.step = JobStep(self.base_ns / 1e6, self.base_ns / 1e6, self.base_ns / 1e6, step.source)
            if pace is None and len(paced.rank) <= _MOST_TRIED:
                fast, slow = (
                    PacedScenarios(facts, calls, order, step, paced, math.exp(each))
                    for each in (-JOB_SPREAD, JOB_SPREAD)
                )
                self.paces = (fast, self, slow)
                self.step = self._with_ends(self.step, fast.base_ns, slow.base_ns)

    def _with_ends(self, step: JobStep, fast_ns: float, slow_ns: float) -> JobStep:
        """The step with its interval. The profiler makes no step shorter."""
        error = max(LEAST_ERROR, abs(self.error_percent or 0.0) / 100) * step.ms
        low, high = min(step.ms, fast_ns / 1e6) - error, max(step.ms, min(slow_ns, self.recorded_ns) / 1e6) + error
        return replace(step, low_ms=max(low, 0.0), high_ms=high)

    @cached_property
    def own_ns(self) -> Floats:
        alone = replace(self._job, transfer=np.zeros(len(self._job.transfer)))
        return self._replayed(alone, joined=False).of_rank

    def host_delay_ns(self, index: int) -> Floats | None:
        others = np.flatnonzero(self.classes == self.classes[index])
        others = others[others != index]
        if not len(others):
            return None
        paused, launching = self._host_ns
        longer = paused[:, index] - np.median(paused[:, others], axis=1)
        # As far as launching is slower than recording may make it.
        usual = np.median(launching[:, others], axis=1)
        slower = np.maximum(launching[:, index] - SLOWER_PACE * usual, 0) * self._paths.share[index]
        result: Floats = longer + slower
        return result

    @cached_property
    def _host_ns(self) -> tuple[Floats, Floats]:
        """Of each step after the first and each rank, the host's pauses and its launching."""
        calls, tables = self._calls, []
        for column in (self._paused, self._paths.recorded.host - self._paused):
            table = np.zeros((calls.steps, calls.ranks))
            np.add.at(table, (calls.step, calls.rank), column)
            tables.append(table[1:])
        return tables[0], tables[1]

    @cached_property
    def even_ms(self) -> float | None:
        job = self._scaled_to_mean(self.classes)
        columns = [column.copy() for column in (*job.paths.columns, job.due_to_waiting)]
        transfer = job.transfer.copy()
        for number in np.unique(self.classes):
            members = np.flatnonzero(self.classes == number).tolist()
            rows = [self._calls.of_rank(rank) for rank in members]
            steps = steps_alike(self._calls, members[0])
            for column in columns:
                mean = np.mean([column[each] for each in rows], axis=0)
                if steps > 1:
                    # Nothing is known of what comes before the first call of the first step.
                    table = mean.reshape(steps, -1)
                    table[1:] = table[1:].mean(axis=0)
                for each in rows:
                    column[each] = mean
            if steps:
                for each in rows:
                    transfer[each] = np.tile(np.median(transfer[each].reshape(steps, -1), axis=0), steps)
        return self._ms(_Job(PathTimes(*columns[:-1]), columns[-1], transfer))

    @cached_property
    def even_stages_ms(self) -> float | None:
        return self._ms(self._scaled_to_mean(np.array([stage_of(one) for one in self.facts])))

    def repaired_ms(self, index: int, of_gpu: bool) -> float | None:
        calls, job = self._calls, self._job
        rows, nothing = calls.of_rank(index), np.zeros(calls.ranks)
        columns, due = [column.copy() for column in job.paths.columns], job.due_to_waiting.copy()
        # Of the others' work what their waiting for this rank costs is no part.
        usual = job.paths.with_less_work(due).columns
        found = [of_others(calls, self.classes, index, column, nothing) for column in usual]
        own = self.own_ns
        if found[0] is None:
            others = np.delete(own, index)
            scale = min(float(np.median(others)) / own[index], 1.0) if len(others) and own[index] else 1.0
            for column in (*columns, due):
                # A path that there is not, minus infinity, is none either where the others do nothing: a scale of 0.
                np.multiply(column[rows], scale, out=column[rows], where=np.isfinite(column[rows]))
        else:
            for column, values in zip(columns, found, strict=True):
                assert values is not None
                column[rows] = values[0]
            due[rows] = 0.0
        return self._ms(_Job(PathTimes(*columns), due, job.transfer))

    def transfers_ms(self, factor: float | Floats) -> float | None:
        if not isinstance(factor, float):
            # Rows of the same steps, in the same order.
            factor = factor[np.isin(self.calls.numbers[self.calls.step], self._calls.numbers)]
        return self._ms(replace(self._job, transfer=self._job.transfer * factor))

    def _ms(self, job: _Job) -> float | None:
        return self.scaled_ms(self._replayed(job).step)

    def _scaled_to_mean(self, groups: Ints) -> _Job:
        """The work of each group of ranks scaled to the mean: of a pipeline what lies next to sends and receives.

        A stage with more layers has more launches, too. The rest of its step, its optimizer for example, depends on
        other things than the layers that it has.
        """
        calls, job = self._calls, self._job
        scaled = next_to_point_to_point(calls)
        if not scaled.any():
            scaled = np.ones(len(calls.rank), dtype=np.bool_)
        factors = []
        for column in (job.paths.gpu, job.paths.host):
            counts = scaled & (self._counted > 0) & np.isfinite(column)
            own = np.bincount(calls.rank, weights=np.where(counts, column, 0.0), minlength=calls.ranks)
            means = {group: float(own[groups == group].mean()) for group in np.unique(groups).tolist()}
            factor = [float(own.mean()) / means[group] if means[group] else 1.0 for group in groups.tolist()]
            factors.append(np.where(scaled, np.array(factor)[calls.rank], 1.0))
        return replace(job, paths=job.paths.scaled(*factors), due_to_waiting=job.due_to_waiting * factors[0])

    @property
    def paced(self) -> Calls:
        """The calls of the steps whose paths are known, and of one before them."""
        return self._calls

    @property
    def paths(self) -> CallPaths:
        """Of these calls. Without the profiler they are ``paths.between(self.faster)``."""
        return self._paths

    def _faster(self, pace: float) -> Floats:
        return even_pace(self._paths, self._paused, self.classes, self._counted, pace)

    def _pace(self, recorded: _Job) -> float:
        """Of launching, over what is expected: as the measured step shows, if hosts determine it."""
        if self.step is None or self.step.source in ("recorded", "simulated"):
            return 1.0
        steps = [
            self._replayed(replace(recorded, paths=self._paths.between(self._faster(pace))), 1).step for pace in _PACES
        ]
        steps = np.maximum.accumulate(steps).tolist()
        wanted = self.step.ms * 1e6
        if wanted <= steps[0]:
            return 1.0
        found = float(np.interp(wanted, steps, _PACES))
        own = float(np.interp(found, _PACES, steps))
        return found if own > _HOSTS_DECIDE * steps[0] else min(found, 1.0)

    def _recorded_waiting(self) -> tuple[Floats, Floats]:
        """Of each rank how long it waited in calls while its GPU worked, and the share of that in all such calls."""
        calls = self._calls
        beside = np.maximum(calls.duration - calls.exposed, 0)
        waited = np.minimum(beside, np.maximum(calls.duration - calls.transfer, 0)) * self._counted
        beside = beside * self._counted
        waiting = np.bincount(calls.rank, weights=waited, minlength=calls.ranks).astype(np.float64)
        whole = np.bincount(calls.rank, weights=beside, minlength=calls.ranks).astype(np.float64)
        return waiting, np.divide(waiting, whole, out=np.zeros(calls.ranks), where=whole > 0)

    def _replayed(self, job: _Job, turns: int = _TURNS, joined: bool = True) -> PacedStep:
        calls, left = self._calls, np.zeros(self._calls.ranks)
        turns = 1 if not joined or not job.due_to_waiting.any() else turns
        for turn in range(turns):
            less = job.due_to_waiting * (1 - left[calls.rank])
            found = paced_replay(self._course, Paced(job.paths.with_less_work(less), job.transfer, joined))
            if turn + 1 < turns:
                waited = np.bincount(calls.rank, weights=found.hidden * self._counted, minlength=calls.ranks)
                left = np.clip(np.divide(waited, self._waited, out=left * 0, where=self._waited > 0), 0, 1)
        return found
