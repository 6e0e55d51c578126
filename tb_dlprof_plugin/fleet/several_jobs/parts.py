"""The parts of a step, as means over ranks that add up to it; the work of a step of one job over that of another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tb_dlprof_plugin.fleet.job import Job, RankAccount

PARTS = ("compute", "transfer", "waiting", "bubble", "host")
TITLES = {
    "compute": "computing",
    "transfer": "exposed transfers",
    "waiting": "waiting for other ranks",
    "bubble": "pipeline bubble",
    "host": "idle for the host",
}


@dataclass(frozen=True, slots=True)
class StepParts:
    """Parts of a step (ms): they add up to it. ``waiting_ms`` is None where it is part of ``transfer_ms``."""

    compute_ms: float
    transfer_ms: float
    waiting_ms: float | None
    bubble_ms: float
    host_ms: float

    def of(self, part: str) -> float:
        """One of `PARTS`; unknown waiting is 0, because transfer holds it."""
        return getattr(self, f"{part}_ms") or 0.0

    @property
    def step_ms(self) -> float:
        return sum(self.of(part) for part in PARTS)

    @property
    def without_waiting(self) -> StepParts:
        """With waiting as part of the transfer, to compare with a rank of which nothing else is known."""
        return StepParts(
            self.compute_ms, self.transfer_ms + (self.waiting_ms or 0.0), None, self.bubble_ms, self.host_ms
        )


def parts_of(row: RankAccount) -> StepParts:
    """Those of a rank."""
    return StepParts(row.compute_ms, row.transfer_ms, row.waiting_ms, row.bubble_ms, row.host_ms)


def mean_parts(weighted: Iterable[tuple[StepParts, float]]) -> StepParts:
    """The mean by weight; waiting is known where it is known of all.

    Raises:
        ValueError: there is nothing to take the mean of.
    """
    rows = list(weighted)
    total = sum(weight for _, weight in rows)
    if not total:
        raise ValueError("there is no rank with an account")
    known = all(row.waiting_ms is not None for row, _ in rows)
    means = {part: sum(row.of(part) * weight for row, weight in rows) / total for part in PARTS}
    mean = StepParts(*(means[part] for part in PARTS))
    return mean if known else mean.without_waiting


WorkBasis = Literal["samples", "FLOPs", "kernels"]
SAME = 0.05
"""By how much amounts of work differ at most that are called equal. Ours: a last batch that is not full, or layers that
do not divide evenly, make a few percent."""

ANOTHER_TRAINING = 1.5
"""FLOPs of a sample in one job over those in another from which they are not the same training: recomputing the whole
forward pass makes 4/3."""


@dataclass(frozen=True, slots=True)
class RelativeWork:
    """Work of a step of one job over that of another, and what it was counted by."""

    ratio: float
    by: WorkBasis


def relative_work(base: Job, candidate: Job) -> RelativeWork | None:
    """Work of the candidate's step over that of the base; None where the recordings do not show it, or they are of
    different trainings (`ANOTHER_TRAINING`).

    By samples, else by FLOPs of matrix products, else equal on each GPU where all ran the very same kernels at the same
    shapes.
    """
    before, after = base.work, candidate.work
    if before is None or after is None:
        return None
    cost = _flops_per_sample(base, candidate)
    if cost is not None and not 1 / ANOTHER_TRAINING < cost < ANOTHER_TRAINING:
        return None
    if before.samples and after.samples:
        return RelativeWork(after.samples / before.samples, "samples")
    if before.flops and after.flops:
        return RelativeWork(after.flops / before.flops, "FLOPs")
    if before.kernels is not None and before.kernels == after.kernels:
        return RelativeWork(candidate.world_size / base.world_size, "kernels")
    return None


def flops_per_sample_note(base: Job, candidate: Job) -> str:
    """A sentence where samples of the two jobs are not the same work; "" where they are, or it is not known."""
    cost = _flops_per_sample(base, candidate)
    if cost is None or abs(cost - 1) <= SAME:
        return ""
    text = f"A sample takes {cost:.3g} times the FLOPs of matrix products: "
    if not 1 / ANOTHER_TRAINING < cost < ANOTHER_TRAINING:
        return text + "these are different trainings, whose work is not compared."
    return text + "other shapes, or products that are computed twice."


def _flops_per_sample(base: Job, candidate: Job) -> float | None:
    """Those of the candidate over those of the base."""
    works = base.work, candidate.work
    rates = [work.flops / work.samples for work in works if work is not None and work.flops and work.samples]
    return rates[1] / rates[0] if len(rates) == len(works) else None
