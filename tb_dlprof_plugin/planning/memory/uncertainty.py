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


RECORDED = Spread(0.001, 0.012)
"""Of the recorded configuration itself."""
SPREADS = {
    "batch_size": Spread(0.01, 0.08),
    "precision": Spread(0.02, 0.12),
    "optimizer": Spread(0.005, 0.02),
    "checkpoint": Spread(0.015, 0.06),
    "layers": Spread(0.005, 0.02),
    "gradients": Spread(0.005, 0.015),
    "allocator": Spread(0.005, 0.01),
    # Not measured: as wide as the widest that are, and half again where buffers depend on the library.
    "input": Spread(0.02, 0.12),
    "offload": Spread(0.03, 0.18),
    "relu": Spread(0.01, 0.08),
    "sharding": Spread(0.03, 0.18),
}
UNMEASURED = ("input", "offload", "relu", "sharding")
"""By kind of change, such that about nine in ten of the measured configurations of six models on an H200 lie within
(`benchmarks/memory_plan/recorded`, printed by `python -m benchmarks.memory_plan.compare`), and at least 0.5 % and 1 %:
the models were those that the rules were made on."""


def spread_of(changes: list[str]) -> Spread:
    """Of several kinds of change together: their spreads are taken to add up."""
    if not changes:
        return RECORDED
    return Spread(
        sum(SPREADS[change].allocated for change in changes), sum(SPREADS[change].reserved for change in changes)
    )
