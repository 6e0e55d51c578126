"""Cases of `missing_annotations`: ops without modules."""

from __future__ import annotations

from typing import Any

from advice.case import Case
from advice.recordings import nothing

from tb_dlprof_plugin.model.run_facts import RunFacts


def _five_ops(trace: Any) -> None:
    trace.step(0, 0, 100)
    for index in range(4):
        trace.op("aten::linear", 10 * index, 8)
    trace.op("aten::relu", 50, 8)


CASES = (
    Case(
        "five ops of two kinds",
        _five_ops,
        "fired",
        "The 5 ops of each step are in 2 rows",
        says=["linear stands for 4 calls, relu stands for 1 calls", "model=model"],
    ),
    Case("modules", nothing, "silent", training={}),
    Case("a compiled model", _five_ops, "not_applicable", facts=RunFacts(compiled=True)),
    Case("DataParallel", _five_ops, "not_applicable", facts=RunFacts(parallel_wrapper="DataParallel")),
)
