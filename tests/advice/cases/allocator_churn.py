"""Cases of `allocator_churn`: memory in pieces, and memory that grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advice.case import Case
from advice.recordings import nothing
from advice.training_step import GIB, SIMT_GEMM

from tb_dlprof_plugin.model.run_facts import RunFacts


def _facts(allocated: int | None, reserved: int, retries: int = 0) -> RunFacts:
    return RunFacts(
        peak_memory_allocated_bytes=None if allocated is None else allocated * GIB,
        peak_memory_reserved_bytes=reserved * GIB,
        available_memory_bytes=100 * GIB,
        allocator_retries=retries,
    )


def _keeping(kept: int) -> Callable[[Any], None]:
    """Four steps that allocate 100 MB each and keep some of it."""

    def events(trace: Any) -> None:
        trace.gpu()
        held = 500_000_000
        for index in range(4):
            at = 1000 * index
            trace.step(index, at, 1000)
            trace.op("aten::mm", at + 10, 20, dims=[[64, 64], [64, 64]], types=["float"] * 2)
            trace.launch(SIMT_GEMM, at + 12, at + 20, 600)
            for size, address in ((kept, 10 + index), (100_000_000, 100 + index)):
                if size:
                    held += size
                    trace.memory(at + 15, size, address, allocated=held, reserved=10**9, device=0)
            held -= 100_000_000
            trace.memory(at + 700, -100_000_000, 100 + index, allocated=held, reserved=10**9, device=0)

    return events


CASES = (
    Case("a sixth of what is reserved", nothing, "fired", facts=_facts(10, 60), training={}),
    Case("failed allocations", nothing, "fired", facts=_facts(60, 95, 3), training={}),
    Case("most of what is reserved", nothing, "silent", facts=_facts(50, 60), training={}),
    Case("little is reserved", nothing, "silent", facts=_facts(1, 5), training={}),
    Case("the peak is unknown", nothing, "not_applicable", facts=_facts(None, 60), training={}),
    Case(
        "20 MB more in each step",
        _keeping(20_000_000),
        "fired",
        # At 150 GB, of which 680 MB are taken at the peak.
        f"{(150_000_000_000 - 680_000_000) // 20_000_000:,} more steps",
        {"Growth per step": 20_000_000},
        says=["mm"],
        severity="medium",  # The steps of the recording are not reliable.
    ),
    Case("no more in any step", _keeping(0), "not_applicable"),
)
