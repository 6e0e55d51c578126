"""By how much a rank takes longer than those with the same work, step by step, whether others wait for it or not.

Two tables: the GPU's work, and what the host does besides launching, which hides behind the GPU as long as the host is
ahead. A rank is late beyond chance where its excess is above what the steps vary by, and no single step carries it.
A stage of a pipeline without a twin is compared with the other stages: by kernels at equal shapes, and by the time in
which its program's own code runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.answers.alike import compared_with
from tb_dlprof_plugin.fleet.answers.kernel_speed import SLOWER, kernel_speed
from tb_dlprof_plugin.fleet.answers.scenarios import Scenarios
from tb_dlprof_plugin.fleet.chosen_steps import among
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints

STANDARD_ERRORS = 4.5
"""Of a rank's mean excess, from which it is steady, by the spread of all ranks: 99 % for the first of two ranks with
three steps (one-sided Student's t, two ranks asked), and more with more steps or ranks."""
EVEN_HOSTS, EVEN_GPUS, EVEN_WORK = 0.03, 0.03, 0.03
"""Shares of the step by which hosts and GPUs with the same work differ by themselves, and of the GPU's work: recorded
even ranks by up to 2.8, 2.2 and 2.5 % (`lab/ranks`)."""
_CARRIED = 0.5
"""Mean of the other steps over that of all, below which one step carries the excess."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """Excess over the median of the ranks with the same work (ns), a row per step, a column per rank; below 0 where a
    rank is sooner.

    Attributes:
        work: of the GPU's work; on the CPU of tensor ops.
        host: of what the host does besides launching; where launches are not recorded, of the time in which the GPU
            idles. Without the one step that is furthest from the others.
        least_ns: of ``work`` and ``host``, the mean from which a rank is late beyond chance.
        even_host_ns: the mean of ``host`` by which hosts differ by themselves.
        launches: whether launches are recorded.
        comparable: of each rank whether ``host`` is known: another one has the same work, or code outside of ops shows.
    """

    work: Floats
    host: Floats
    least_ns: tuple[float, float]
    even_host_ns: float
    launches: bool
    comparable: Bools

    def of(self, index: int) -> tuple[float, float]:
        """Mean excess of a rank: of its GPU's work and of its host (ns)."""
        return float(self.work[:, index].mean()), float(self.host[:, index].mean())

    def mean_ns(self, index: int) -> float:
        """The larger of both."""
        return max(self.of(index))

    @property
    def visible_ns(self) -> float:
        """An excess of so much would have shown, of GPU or host."""
        return max(self.least_ns)

    def beyond_chance(self, of_host: bool) -> Bools:
        """Of each rank whether its host, or its GPU's work, takes longer in more than one step by more than chance."""
        table = self.host if of_host else self.work
        mean = table.mean(axis=0)
        rest = (table.sum(axis=0) - table.max(axis=0)) / max(len(table) - 1, 1)
        several = (rest >= _CARRIED * mean) & (len(table) > 1)
        return (mean >= self.least_ns[of_host]) & several


def lateness(scenarios: Scenarios) -> Lateness:
    """Of the compared steps."""
    facts, calls = scenarios.facts, scenarios.calls
    own = among(facts, calls.numbers)
    work = _columns([work_of(rank) for rank in facts], own)
    launches = scenarios.replayed.paths.launches
    idle = _columns([rank.steps.idle_ns for rank in facts], own)
    paused = scenarios.host_ns[0] if launches else idle
    late_work, late_host = np.zeros(work.shape), np.zeros(paused.shape)
    outside = _columns([rank.steps.outside_ns for rank in facts], own)
    comparable = np.bincount(scenarios.classes)[scenarios.classes] > 1
    for number in np.unique(scenarios.classes).tolist():
        members = np.flatnonzero(scenarios.classes == number)
        for index in members.tolist():
            if len(members) > 1:
                others, table = members[members != index], paused
                late_work[:, index] = work[:, index] - np.median(work[:, others], axis=1)
            else:
                # Stages launch other layers: only what is no launching can be compared.
                others, table = compared_with(scenarios.classes, index), outside[-len(paused) :]
                late_work[:, index] = work[:, index] * _slower(facts, index, others)
                comparable[index] = len(table) == len(paused) and bool((table[:, [index, *others]] >= 0).all())
            if len(others) and comparable[index]:
                late_host[:, index] = table[:, index] - np.median(table[:, others], axis=1)
            if launches and len(members) > 1:
                late_host[:, index] += scenarios.slower_launching_ns(index, others)
    late_host = _without_outliers(late_host)
    step_ns = 0.0 if scenarios.step is None else scenarios.step.ms * 1e6
    even_host_ns = EVEN_HOSTS * step_ns
    usual_ns = float(np.median(work.mean(axis=0)))
    least = (
        max(STANDARD_ERRORS * _error(late_work), EVEN_WORK * usual_ns, EVEN_GPUS * step_ns),
        max(STANDARD_ERRORS * _error(late_host), even_host_ns),
    )
    return Lateness(late_work, late_host, least, even_host_ns, launches, comparable)


def _columns(of_ranks: Sequence[Ints], chosen: Sequence[Bools]) -> Floats:
    """Of each rank in the chosen steps; zeros for one that lacks some of them."""
    steps = max(int(here.sum()) for here in chosen)
    table = np.zeros((steps, len(of_ranks)))
    for index, (column, here) in enumerate(zip(of_ranks, chosen, strict=True)):
        if int(here.sum()) == steps:
            table[:, index] = column[here]
    return table


def _slower(facts: Sequence[RankFacts], index: int, others: Ints) -> float:
    """The share of a rank's work by which its kernels are slower than those of ranks with other work."""
    speed = kernel_speed(facts, index, others)
    slowdown = None if speed is None else speed.slowdown
    return 0.0 if slowdown is None or slowdown < SLOWER else 1 - 1 / slowdown


def _without_outliers(table: Floats) -> Floats:
    """Each rank's step that is furthest from its median as the mean of the others, where there are three or more: hosts
    have hiccups, and what comes after the last call of a recording is not seen."""
    if len(table) < 3:
        return table
    far = np.abs(table - np.median(table, axis=0)).argmax(axis=0)
    at = (far, np.arange(table.shape[1]))
    result = table.copy()
    result[at] = (table.sum(axis=0) - table[at]) / (len(table) - 1)
    return result


def _error(table: Floats) -> float:
    """Standard error of a mean over the steps, by the median rank."""
    if len(table) < 2:
        return 0.0
    return float(np.median(table.std(axis=0, ddof=1))) / float(np.sqrt(len(table)))


def work_of(rank: RankFacts) -> Ints:
    """Compute by step, as if no communication had run at the same time where that is known of all calls."""
    contended = rank.collectives.contended_ns
    if (contended < 0).any():
        return rank.steps.compute_ns
    lost = np.zeros(len(rank.steps.number), dtype=np.int64)
    np.add.at(lost, rank.collectives.iteration, contended)
    return rank.steps.compute_ns - lost
