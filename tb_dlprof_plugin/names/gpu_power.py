"""What GPUs draw at rest and for each kind of work, by the name that CUDA reports: fitted to measured trainings.

The figures are of boards as they were found, with the factory's power limit (`benchmarks/energy`). One board of a kind
differs from the next by some percent, and estimates are scaled to what a run's own counter said. A GPU that is not in
the table is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

PICO = 1e-12


class Work(str, Enum):
    """Kinds of GPU work that draw power differently, with their names on pages."""

    FP32 = "Products in FP32"
    TF32 = "Products in TF32"
    HALF = "Products in FP16, BF16 or FP8"
    OTHER = "Other kernels"
    COPIES = "Copies and sets"


PRODUCTS = {
    "fp32": Work.FP32,
    "fp64": Work.FP32,
    "tf32": Work.TF32,
    "3xtf32": Work.TF32,
    "fp16": Work.HALF,
    "bf16": Work.HALF,
    "fp8": Work.HALF,
    "mxfp8": Work.HALF,
    "int8": Work.HALF,
}
"""The kind of a kernel that computes products in a precision."""


@dataclass(frozen=True, slots=True)
class GpuPower:
    """Power above that at rest, in watts while such work runs, and what the arithmetic of products takes beyond it.

    Attributes:
        idle_watts: with clocks up and nothing to do.
        watts: by kind of work, while it runs.
        picojoules_per_flop: by kind of product, besides.
        spread: standard deviation of the logarithm of a step's energy above rest, estimated from the table alone.
        source: what was measured.
    """

    idle_watts: float
    watts: dict[Work, float]
    picojoules_per_flop: dict[Work, float]
    spread: float
    source: str

    def joules(self, kind: Work, seconds: float, flops: float) -> float:
        """Energy above rest of work of a kind."""
        return self.watts[kind] * seconds + self.picojoules_per_flop.get(kind, 0.0) * PICO * flops


def power_of(gpu: str) -> GpuPower | None:
    """The power of a GPU by the name that CUDA reports; None where it was not measured."""
    return _BY_NAME.get(gpu.removeprefix("NVIDIA ").strip())


_BY_NAME: dict[str, GpuPower] = {}
