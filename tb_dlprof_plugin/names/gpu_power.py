"""What GPUs draw at rest and for each kind of work, by the name that CUDA reports: fitted to measured trainings.

The figures are of boards as they were found, with the factory's power limit (`lab/energy`). One board of a kind
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
    """Power at rest, and what work takes above it.

    Attributes:
        idle_watts: with clocks up and nothing to do.
        product_watts: while a kernel computes products.
        other_watts: while other work runs.
        picojoules_per_flop: of products, by kind, besides.
        picojoules_per_byte: of device memory that is read or written, besides.
        cache_bytes: what an op moves below this stays in the cache.
        spread: root mean square of a step's relative error, of models that the fit did not see.
        source: what was measured.
    """

    idle_watts: float
    product_watts: float
    other_watts: float
    picojoules_per_flop: dict[Work, float]
    picojoules_per_byte: float
    cache_bytes: int
    spread: float
    source: str


def power_of(gpu: str) -> GpuPower | None:
    """The power of a GPU by the name that CUDA reports; None where it was not measured."""
    return _BY_NAME.get(gpu.removeprefix("NVIDIA ").strip())


_BY_NAME = {
    "H200": GpuPower(
        idle_watts=118.9,
        product_watts=328.0,
        other_watts=164.0,
        picojoules_per_flop={Work.FP32: 3.90, Work.TF32: 0.63, Work.HALF: 0.38},
        picojoules_per_byte=93.7,
        cache_bytes=30_000_000,
        spread=0.12,
        source="One H200, limit 700 W, driver 580, 2026-11: ResNet-50, GPT, LSTM, MLP in FP32 and BF16, five loops",
    )
}


POWER = frozenset({"power cap", "power brake"})
HEAT = frozenset({"thermal slowdown", "thermal slowdown by hardware"})
