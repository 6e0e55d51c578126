"""How much more work a step of one job is than that of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tb_dlprof_plugin.fleet.job import Job

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
    rates = [one.flops / one.samples for one in works if one is not None and one.flops and one.samples]
    return rates[1] / rates[0] if len(rates) == len(works) else None
