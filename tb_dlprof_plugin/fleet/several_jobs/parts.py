"""The parts of a step, as means over ranks that add up to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tb_dlprof_plugin.fleet.job import RankAccount

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
