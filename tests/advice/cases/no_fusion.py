"""Cases of `no_fusion`: chains of pointwise ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from advice.case import ANY, Case
from advice.recordings import ADD, GEMM, STEPS

_FULL = [4096, 4096]
_TENSOR_BYTES = 4096 * 4096 * 4
_CHAIN = (("mm", 2, 1000), ("mul", 1, 40), ("add", 2, 60), ("tanh", 1, 40), ("mul", 2, 60), ("mm", 2, 1000))


def _chain(*ops: tuple[str, int, float]) -> Callable[[Any], None]:
    """Ops as (name, inputs, us)."""

    def events(trace: Any) -> None:
        trace.gpu()
        length = 50.0 + sum(microseconds for *_, microseconds in ops)
        for step in range(STEPS):
            at = length * step
            free = at + 30
            trace.step(step, at, length)
            for number, (op, inputs, microseconds) in enumerate(ops):
                trace.op(f"aten::{op}", at + 20 * number, 18, dims=[_FULL] * inputs, types=["float"] * inputs)
                trace.launch(GEMM if op == "mm" else ADD, at + 20 * number + 2, free, microseconds)
                free += microseconds
            trace.runtime(at + 200, free - at - 200, name="cudaStreamSynchronize")

    return events


CASES = (
    Case(
        "four pointwise ops between products",
        _chain(*_CHAIN),
        "fired",
        "mul, add, tanh, mul",
        {
            "Kernels in chains per step": 4,
            "Their time per step": 200_000,
            "Bytes moved by them per step": 10 * _TENSOR_BYTES,
        },
        # Of ten tensors two remain at best, one further input is expected, at 0.8 of 4.8 TB/s.
        (ANY, pytest.approx(200_000 - 3 * _TENSOR_BYTES / 3.84e12 * 1e9, rel=0.05), ANY),
    ),
    *(
        Case(name, _chain(*((op, 2, 500) for op in ops.split())), "silent", "No 3 pointwise kernels")
        for name, ops in (
            ("two ops", "mul add"),
            ("casts", "mul copy_ copy_ add"),
            ("products between them", "mul mm add mm mul"),
        )
    ),
)
