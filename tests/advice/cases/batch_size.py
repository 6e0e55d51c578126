"""Cases of `batch_size`: GPU time and memory for a larger batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advice.case import Case
from advice.recordings import GEMM, nothing

from tb_dlprof_plugin.model.run_facts import RunFacts


def _busy(microseconds: float) -> Callable[[Any], None]:
    def events(trace: Any) -> None:
        trace.gpu()
        for index in range(3):
            at = 1000 * index
            trace.step(4 + index, at, 1000)
            trace.op("aten::linear", at + 1, 900)
            trace.launch(GEMM, at + 5, at + 20, microseconds, grid=[264, 1, 1])

    return events


_FACTS = RunFacts(
    batch_size=8, unprofiled_step_ns=1_000_000, steady_memory_bytes=10**9, peak_memory_allocated_bytes=3 * 10**9
)

CASES = (
    Case(
        "a fifth of the step",
        _busy(200),
        "fired",
        readings={"Memory per sample": 250_000_000, "Samples that would fit": 530},
        saving_ns=None,
        # Five times the kernels fill the step: four times the batch costs nothing, eight times gains a quarter more.
        says=["A batch of 64 instead of 8 would train 5.0 times as many samples a second"],
        facts=_FACTS,
    ),
    Case("most of the step", _busy(950), "silent", facts=_FACTS),
    Case("memory is full", nothing, "silent", "would not fit",
         facts=RunFacts(batch_size=8, peak_memory_allocated_bytes=100 * 10**9), training={}),
    Case("the batch is unknown", nothing, "not_applicable", training={}),
)  # fmt: skip
