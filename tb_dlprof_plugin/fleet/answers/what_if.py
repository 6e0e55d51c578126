"""The job's step after one change: a rank repaired, stages balanced, the network free, communication hidden.

Each is the recorded job replayed with other times, as a share of the job replayed as recorded, times the step without
the profiler. How far the replay as recorded is from the recording is part of each interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_dlprof_plugin.fleet.answers.calls import POINT_TO_POINT, Calls, stage_of
from tb_dlprof_plugin.fleet.answers.peers import of_others, peers
from tb_dlprof_plugin.fleet.answers.replay import (
    Wave,
    recorded_step,
    recorded_tails,
    replay,
)
from tb_dlprof_plugin.fleet.job import JobStep, WhatIf
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints

UNRELIABLE_PERCENT = 5.0
"""Error of the replay as recorded from which its answers are no basis for decisions: Lin et al. (OSDI'25) leave
out such jobs."""
_HALVINGS = 12


@dataclass(frozen=True, slots=True)
class Times:
    """Own times and transfers to replay: see `replay`."""

    gap: Floats
    tail: Floats
    transfer: Floats


class Scenarios:
    """A job's replays. ``recorded_ns`` and ``simulated_ns`` are steps as recorded, with the profiler."""

    def __init__(self, facts: Sequence[RankFacts], calls: Calls, order: list[Wave], step: JobStep | None) -> None:
        self.facts, self.calls, self.order, self.step = facts, calls, order, step
        self.classes: Ints = peers(facts, calls)
        self.recorded_ns = recorded_step(calls)
        self.simulated_ns = replay(calls, order).step
        self._recorded = Times(calls.gap.astype(np.float64), recorded_tails(calls), calls.transfer.astype(np.float64))
        self._idle = self._idle_kept()
        self.base = self._without_recorder(self._recorded)
        self.base_ns = self.simulated_ns if self._idle == 1.0 else self._run(self.base)

    @property
    def error_percent(self) -> float | None:
        """Of the replay as recorded."""
        return 100 * (self.simulated_ns / self.recorded_ns - 1) if self.recorded_ns else None

    @property
    def recorder_ms(self) -> float:
        """What the profiler added to a recorded step; 0 where the step without it is not known."""
        return 0.0 if self.step is None else max(self.recorded_ns / 1e6 - self.step.ms, 0.0)

    def ms(self, times: Times) -> float | None:
        """The job's step without the profiler with these times."""
        if self.step is None or not self.base_ns:
            return None
        return self.step.ms * self._run(times) / self.base_ns

    def row(self, change: str, step_ms: float) -> WhatIf:
        """A change with its interval: that of the step, moved by the error of the replay."""
        assert self.step is not None
        share, error = step_ms / self.step.ms, abs(self.error_percent or 0.0) / 100
        # Only the part of the step that changes can be wrong by the replay's error.
        spread = error * abs(self.step.ms - step_ms)
        return WhatIf(change, step_ms, max(self.step.low_ms * share - spread, 0.0), self.step.high_ms * share + spread)

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

    @cached_property
    def even_ms(self) -> float | None:
        """The job's step with `even_work`."""
        return self.ms(self.even_work())

    @cached_property
    def free_network_ms(self) -> float | None:
        """The job's step if transfers took no time."""
        return self.ms(self.transfers_times(0.0))

    @cached_property
    def even_stages_ms(self) -> float | None:
        """The job's step with `stage_balanced`."""
        return self.ms(self.stage_balanced())

    def even_work(self) -> Times:
        """Every rank's own times as the mean of its class and steps, the stages' work as the mean of all ranks.

        Transfers are the median of the steps: a link that was slow in one of them is no property of the job. After Lin
        et al. (OSDI'25), section 3.
        """
        calls, times = self.calls, self._scaled_to_mean(self.classes)
        gap, tail, transfer = times.gap.copy(), times.tail.copy(), times.transfer.copy()
        for number in np.unique(self.classes):
            members = np.flatnonzero(self.classes == number).tolist()
            rows = [calls.of_rank(rank) for rank in members]
            mean = np.mean([times.gap[each] for each in rows], axis=0)
            steps = self._steps_alike(members[0])
            if steps:
                mean = np.tile(mean.reshape(steps, -1).mean(axis=0), steps)
            for each in rows:
                gap[each] = mean
                if steps:
                    transfer[each] = np.tile(np.median(times.transfer[each].reshape(steps, -1), axis=0), steps)
            tail[members] = times.tail[members].mean()
        return Times(gap, tail, transfer)

    def _steps_alike(self, rank: int) -> int:
        """The number of steps, if the rank made the same calls in each; 0 where it did not."""
        calls, rows = self.calls, self.calls.of_rank(rank)
        count = np.bincount(calls.step[rows], minlength=calls.steps)
        if not len(count) or count.min() != count.max() or not count[0]:
            return 0
        kinds = calls.operation[rows].reshape(calls.steps, -1)
        return calls.steps if bool((kinds == kinds[0]).all()) else 0

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
        pipelined = _next_to_point_to_point(calls)
        if pipelined.any():
            scaled = np.where(pipelined, scaled, 0.0)
        tail = np.zeros(calls.ranks) if pipelined.any() else times.tail
        own = np.bincount(calls.rank, weights=scaled, minlength=calls.ranks) + tail
        means = {group: float(own[groups == group].mean()) for group in np.unique(groups).tolist()}
        mean = float(own.mean())
        scale = np.array([mean / means[group] if means[group] else 1.0 for group in groups.tolist()])
        return Times(times.gap + scaled * (scale[calls.rank] - 1), times.tail + tail * (scale - 1), times.transfer)

    def transfers_times(self, factor: float | Floats) -> Times:
        """All transfers, or each call's, take this many times as long."""
        return Times(self.base.gap, self.base.tail, self.base.transfer * factor)

    def hidden_ms(self) -> float | None:
        """The job's step if no communication were exposed: the longest own time."""
        if self.step is None or not self.base_ns or not self.calls.steps:
            return None
        calls = self.calls
        own = np.bincount(calls.rank, weights=self.base.gap, minlength=calls.ranks) + self.base.tail
        return min(self.step.ms, self.step.ms * float(own.max()) / calls.steps / self.base_ns)

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


def _next_to_point_to_point(calls: Calls) -> Bools:
    """Per call whether it or the one before it on its rank is a send or receive: between is a stage's work."""
    own = np.isin(calls.operation, POINT_TO_POINT)
    before = np.r_[False, own[:-1]]
    before[calls.first[:-1][np.diff(calls.first) > 0]] = False
    result: Bools = own | before
    return result


_LARGE = 2_000_000
"""Calls above which the step without the profiler only scales the answers: each replay takes a second."""
