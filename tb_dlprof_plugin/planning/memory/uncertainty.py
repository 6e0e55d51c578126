"""How far a forecast of memory can be off, by what was changed: shares by which the truth was seen to differ.

Each figure's interval has three parts: allocations whose class is not known, at both ends of what they may be; the
error of the replay of the recorded step itself; and the spread of the kind of change below. The first two come from the
run.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Shares of a figure: ``allocated`` of peaks of tensors, ``reserved`` of reserved memory and limits."""

    allocated: float
    reserved: float


SPREADS = {
    "batch_size": Spread(0.01, 0.04),
    "precision": Spread(0.04, 0.06),
    "optimizer": Spread(0.01, 0.03),
    "checkpoint": Spread(0.03, 0.06),
    "layers": Spread(0.01, 0.03),
    "gradients": Spread(0.01, 0.03),
    "allocator": Spread(0.005, 0.04),
}
"""Assumed, wider than what was seen in the recordings of the repository (docs/memory_plan.md); `python -m
benchmarks.memory_plan.compare` measures them."""


def spread_of(changes: list[str]) -> Spread:
    """Of several kinds of change together: their spreads are taken to add up."""
    return Spread(
        sum(SPREADS[change].allocated for change in changes), sum(SPREADS[change].reserved for change in changes)
    )
