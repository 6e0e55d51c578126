"""What-if by own times alone: where launches are not recorded, idle time of a GPU is part of a rank's own time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_dlprof_plugin.fleet.answers.calls import Calls, next_to_point_to_point, stage_of
from tb_dlprof_plugin.fleet.answers.peers import of_others, steps_alike
from tb_dlprof_plugin.fleet.answers.replay import Wave, recorded_step, recorded_tails, replay
from tb_dlprof_plugin.fleet.answers.what_if import Scenarios
from tb_dlprof_plugin.fleet.job import JobStep
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Floats, Ints

_HALVINGS = 12


@dataclass(frozen=True, slots=True)
class Times:
    """Own times and transfers to replay: see `replay`."""

    gap: Floats
    tail: Floats
    transfer: Floats


class OwnTimeScenarios(Scenarios):
    """Replays of `replay`."""

    def __init__(self, facts: Sequence[RankFacts], calls: Calls, order: list[Wave], step: JobStep | None) -> None:
        super().__init__(facts, calls, order, step)
        self.recorded_ns = recorded_step(calls)
        self.simulated_ns = replay(calls, order).step
        self._recorded = Times(calls.gap.astype(np.float64), recorded_tails(calls), calls.transfer.astype(np.float64))
        self._idle = self._idle_kept()
        self.base = self._without_recorder(self._recorded)
        self.base_ns = self.simulated_ns if self._idle == 1.0 else self._run(self.base)

    @property
    def own_ns(self) -> Floats:
        calls = self.calls
        own = np.bincount(calls.rank, weights=self.base.gap, minlength=calls.ranks) + self.base.tail
        result: Floats = own / max(calls.steps, 1)
        return result

    @cached_property
    def even_ms(self) -> float | None:
        return self.scaled_ms(self._run(self.even_work()))

    @cached_property
    def even_stages_ms(self) -> float | None:
        return self.scaled_ms(self._run(self.stage_balanced()))

    def repaired_ms(self, index: int, of_gpu: bool) -> float | None:
        return self.scaled_ms(self._run(self.rank_repaired(index, keeps_idle=of_gpu)))

    def transfers_ms(self, factor: float | Floats) -> float | None:
        return self.scaled_ms(self._run(Times(self.base.gap, self.base.tail, self.base.transfer * factor)))

    def rank_repaired(self, index: int, keeps_idle: bool = False) -> Times:
        """This rank's own times as the median of the ranks that do the same work.

        Args:
            index: the rank's.
            keeps_idle: only its GPU's work is as the others', while its host stays: the others' host is hidden where
                they wait.
        """
        calls, times = self.calls, self.base
        rows, gap, tail = calls.of_rank(index), times.gap.copy(), times.tail.copy()
        idle = np.minimum(self._idle * calls.idle, gap) if keeps_idle else np.zeros(len(gap))
        last = np.minimum(self._idle * calls.tail_idle, tail) if keeps_idle else np.zeros(len(tail))
        found = of_others(calls, self.classes, index, gap - idle, tail - last)
        if found is not None:
            gap[rows], tail[index] = found[0] + idle[rows], found[1] + last[index]
        else:
            own = np.bincount(calls.rank, weights=times.gap, minlength=calls.ranks) + times.tail
            others = np.delete(own, index)
            scale = min(float(np.median(others)) / own[index], 1.0) if len(others) and own[index] else 1.0
            gap[rows] *= scale
            tail[index] *= scale
        return Times(gap, tail, times.transfer)

    def even_work(self) -> Times:
        """Every rank's own times as the mean of its class and steps, the stages' work as the mean of all ranks."""
        calls, times = self.calls, self._scaled_to_mean(self.classes)
        gap, tail, transfer = times.gap.copy(), times.tail.copy(), times.transfer.copy()
        for number in np.unique(self.classes):
            members = np.flatnonzero(self.classes == number).tolist()
            rows = [calls.of_rank(rank) for rank in members]
            mean = np.mean([times.gap[each] for each in rows], axis=0)
            steps = steps_alike(calls, members[0])
            if steps:
                mean = np.tile(mean.reshape(steps, -1).mean(axis=0), steps)
            for each in rows:
                gap[each] = mean
                if steps:
                    transfer[each] = np.tile(np.median(times.transfer[each].reshape(steps, -1), axis=0), steps)
            tail[members] = times.tail[members].mean()
        return Times(gap, tail, transfer)

    def stage_balanced(self) -> Times:
        """Every stage with the mean work of all stages; ranks of a stage stay as they are to each other."""
        return self._scaled_to_mean(np.array([stage_of(one) for one in self.facts]))

    def _scaled_to_mean(self, groups: Ints) -> Times:
        """The work of each group of ranks scaled to the mean: of a pipeline what lies next to sends and receives.

        The rest of a stage's step, its optimizer for example, depends on other things than the layers it has.
        """
        calls, times = self.calls, self.base
        idle = np.minimum(self._idle * calls.idle, times.gap)
        scaled = times.gap - idle
        pipelined = next_to_point_to_point(calls)
        if pipelined.any():
            scaled = np.where(pipelined, scaled, 0.0)
        tail = np.zeros(calls.ranks) if pipelined.any() else times.tail
        own = np.bincount(calls.rank, weights=scaled, minlength=calls.ranks) + tail
        means = {group: float(own[groups == group].mean()) for group in np.unique(groups).tolist()}
        mean = float(own.mean())
        scale = np.array([mean / means[group] if means[group] else 1.0 for group in groups.tolist()])
        return Times(times.gap + scaled * (scale[calls.rank] - 1), times.tail + tail * (scale - 1), times.transfer)

    def _run(self, times: Times) -> float:
        return replay(self.calls, self.order, times.gap, times.transfer, times.tail).step

    def _idle_kept(self) -> float:
        """Share of the idle time that is left without the profiler, which delays the host and not the GPU."""
        if self.step is None or self.simulated_ns <= self.step.ms * 1e6:
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS if len(self.calls.rank) < _LARGE else 0):
            middle = (low + high) / 2
            if self._run(self._with_idle(self._recorded, middle)) > self.step.ms * 1e6:
                high = middle
            else:
                low = middle
        return high

    def _without_recorder(self, times: Times) -> Times:
        return times if self._idle == 1.0 else self._with_idle(times, self._idle)

    def _with_idle(self, times: Times, share: float) -> Times:
        calls = self.calls
        return Times(
            times.gap - (1 - share) * calls.idle,
            np.maximum(times.tail - (1 - share) * calls.tail_idle, 0.0),
            times.transfer,
        )


_LARGE = 2_000_000
"""Calls above which the step without the profiler only scales the answers: each replay takes a second."""
