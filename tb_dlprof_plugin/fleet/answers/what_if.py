"""The job's step after one change: a rank repaired, stages balanced, the network free, communication hidden.

Each is the recorded job replayed with other times, as a share of the job replayed as it is, times the step without
the profiler. How far the replay as recorded is from the recording is part of each interval.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property

from tb_dlprof_plugin.fleet.answers.calls import Calls
from tb_dlprof_plugin.fleet.answers.peers import peers
from tb_dlprof_plugin.fleet.answers.replay import Wave
from tb_dlprof_plugin.fleet.job import JobStep, WhatIf
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Floats, Ints

UNRELIABLE_PERCENT = 5.0
"""Error of the replay as recorded from which its answers are no basis for decisions: Lin et al. (OSDI'25) leave
out such jobs."""


LEAST_ERROR = 0.15
"""Half the interval of what a change wins, as a share of it: repaired ranks of recorded jobs won 0 to 13 % more than
their even twins show (`benchmarks/ranks`)."""


PACE_WEIGHTS = (0.125, 0.75, 0.125)
"""Of the fast, the expected and the slow pace: three points, the outer ones at two standard deviations, that have the
mean and the variance of a normal distribution."""


class Scenarios(ABC):
    """A job's replays.

    Attributes:
        classes: of each rank the number of its class (`peers`).
        recorded_ns, simulated_ns: mean step as recorded, with the profiler, and replayed so.
        base_ns: replayed without the profiler.
        paces: itself; with hosts as fast and as slow as they may be, where no step was timed without the profiler.
    """

    recorded_ns: float
    simulated_ns: float
    base_ns: float
    paces: Sequence[Scenarios]

    def __init__(self, facts: Sequence[RankFacts], calls: Calls, order: list[Wave], step: JobStep | None) -> None:
        self.facts, self.calls, self.order, self.step = facts, calls, order, step
        self.classes: Ints = peers(facts, calls)
        self.paces = (self,)

    @property
    def error_percent(self) -> float | None:
        """Of the replay as recorded."""
        return _known(100 * (self.simulated_ns / self.recorded_ns - 1)) if self.recorded_ns else None

    @property
    def recorder_ms(self) -> float:
        """What the profiler added to a recorded step; 0 where the step without it is not known."""
        return 0.0 if self.step is None else max(self.recorded_ns / 1e6 - self.step.ms, 0.0)

    def won_ms(self, asked: Callable[[Scenarios], float | None]) -> float | None:
        """By how much a change makes the job's step shorter: the mean over what the paces of hosts may be.

        Args:
            asked: the step after the change.
        """
        won = [one.step.ms - after for one in self.paces if one.step is not None and (after := asked(one)) is not None]
        if len(won) != len(self.paces):
            return None
        weights = (1.0,) if len(won) == 1 else PACE_WEIGHTS
        return sum(weight * each for weight, each in zip(weights, won, strict=True))

    def row(self, change: str, asked: Callable[[Scenarios], float | None]) -> WhatIf | None:
        """A change with its interval: that of the step, moved by the replay's error; None where it is not known."""
        won = self.won_ms(asked)
        if won is None or self.step is None:
            return None
        stated = self.stated(change, won)
        if len(self.paces) == 1:
            return stated
        steps = [stated.step_ms, *(after for one in self.paces if (after := asked(one)) is not None)]
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
        return _known(self.step.ms * replayed_ns / self.base_ns)

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

    def host_delay_ns(self, index: int) -> Floats | None:
        """By step, what a rank's host needs beyond those of ranks with the same work, and recording does not explain.

        None where launches are not recorded, or no other rank has the same work.
        """
        return None

    @property
    @abstractmethod
    def own_ns(self) -> Floats:
        """Of each rank, the mean step that it would have by itself."""

    @property
    @abstractmethod
    def even_ms(self) -> float | None:
        """The job's step with every rank's times as the mean of ranks and steps.

        Transfers are the median of the steps: a link that was slow in one of them is no property of the job. After Lin
        et al. (OSDI'25), section 3.
        """

    @property
    @abstractmethod
    def even_stages_ms(self) -> float | None:
        """The job's step with the mean work of all stages on each; ranks of a stage stay as they are to each other."""

    @abstractmethod
    def repaired_ms(self, index: int, of_gpu: bool) -> float | None:
        """The job's step with this rank's own times as the median of the ranks that do the same work.

        Args:
            index: the rank's.
            of_gpu: what is wrong with it is its GPU or what that has to do.
        """

    @abstractmethod
    def transfers_ms(self, factor: float | Floats) -> float | None:
        """The job's step if all transfers, or each call's, take this many times as long."""


def _known(value: float) -> float | None:
    """None of what follows from times that contradict each other: infinity less infinity."""
    return value if math.isfinite(value) else None
