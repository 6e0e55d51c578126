"""Cases of `recomputation`: what the backward pass computes again, and the memory to keep it."""

from __future__ import annotations

import pytest
from advice.case import ANY, Case
from advice.training_step import GIB, SIMT_GEMM, Step

from tb_dlprof_plugin.model.run_facts import RunFacts


def _block(again: bool = True) -> Step:
    run = Step()
    inputs, weight, types = [4096, 1024], [1024, 1024], ["float"] * 2
    product = ("aten::mm", [inputs, weight], types, [(SIMT_GEMM, 400)])
    number = run.forward("block", "aten::linear", [product], dims=[inputs, weight], types=types)
    recomputed = [("aten::linear", [inputs, weight], types, [(SIMT_GEMM, 400)])] if again else []
    run.backward("AddmmBackward0", number, [*recomputed, ("aten::mm", [inputs, weight], types, [(SIMT_GEMM, 700)])])
    return run


def _peak(gib: int | None) -> RunFacts:
    peak = None if gib is None else gib * GIB
    return RunFacts(peak_memory_allocated_bytes=peak, available_memory_bytes=100 * GIB)


CASES = (
    Case(
        "memory is left",
        _block(),
        "fired",
        readings={
            "Kernel time of recomputed ops, per step": 400_000,
            # At most its inputs are kept: 4096 x 1024 and 1024 x 1024 numbers of 4 bytes.
            "Memory to keep what is recomputed, at most": 4 * (4096 * 1024 + 1024 * 1024),
        },
        saving_ns=(ANY, pytest.approx(400_000, rel=0.05), ANY),
        facts=_peak(10),
    ),
    Case("memory is full", _block(), "silent", facts=_peak(95)),
    Case("memory is unknown", _block(), "not_applicable", facts=_peak(None)),
    Case("nothing is recomputed", _block(again=False), "not_applicable", facts=_peak(10)),
)
