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
    # Such that about nine in ten of the configurations lie within that were measured of twelve models on an H200
    # (`benchmarks/memory_plan/recorded` and `held_out`, printed by `compare`), and at least 0.5 % and 1 %.
    "batch_size": Spread(0.01, 0.08),
    "precision": Spread(0.03, 0.12),
    "optimizer": Spread(0.005, 0.02),
    "checkpoint": Spread(0.015, 0.08),
    "layers": Spread(0.005, 0.02),
    "gradients": Spread(0.005, 0.015),
    "allocator": Spread(0.005, 0.01),
    # Four models (`benchmarks/memory_plan/inputs_and_splits_recorded`), the worst off by 0.1 and 0.2 %, and five more
    # (`library_models_recorded`), by 0.5 and 17 %: nine in ten of these.
    "offload": Spread(0.01, 0.09),
    # Not measured: as wide as the widest that are, and half again where buffers depend on the library.
    "input": Spread(0.02, 0.12),
    "relu": Spread(0.01, 0.08),
    "sharding": Spread(0.03, 0.18),
}
UNMEASURED = ("input", "relu", "sharding")
"""Kinds of change of which too little was measured for a spread."""


def spread_of(changes: list[str]) -> Spread:
    """Of several kinds of change together: their spreads are taken to add up."""
    if not changes:
        return RECORDED
    return Spread(
        sum(SPREADS[change].allocated for change in changes), sum(SPREADS[change].reserved for change in changes)
    )
