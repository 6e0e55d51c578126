"""Cases of `gpu_too_large`: a smaller GPU for the same step."""

from __future__ import annotations

from advice.case import Case, between
from advice.recorded import recorded

CASES = (
    Case(
        "a small batch",
        recorded("planted/batch_size/fault"),
        "fired",
        readings={"Longer step there at most": between(-100, 10)},
        says=["in place of H200"],
    ),
    Case("the GPU works most of the step", recorded("energy/recorded/mlp/fp32"), "silent", "The GPU works"),
    Case(
        "no smaller one has the memory",
        recorded("planted/batch_size/fault", peak_memory_reserved_bytes=130 << 30),
        "silent",
        "no smaller GPU",
    ),
)
