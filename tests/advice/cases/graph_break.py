"""Cases of `graph_break`: two regions in a step with a line between them, and a run without breaks."""

from __future__ import annotations

from typing import Any

from advice.case import Case
from advice.recordings import GEMM

from tb_dlprof_plugin.model.run_facts import Compilation, GraphBreak, RunFacts

_COMPILED = [Compilation("0/0", "net.py:7 forward", 3 * 10**9)]


def _two_regions(trace: Any) -> None:
    trace.gpu()
    for index in range(2):
        at = 1000 * index
        trace.step(4 + index, at, 1000)
        for part in range(2):
            trace.op("Torch-Compiled Region: 0/0", at + 100 + 400 * part, 300)
            trace.launch(GEMM, at + 110 + 400 * part, at + 150 + 400 * part, 50)


CASES = (
    Case(
        "a line between two regions",
        _two_regions,
        "fired",
        "net.py:9: Call to `print`",
        readings={
            "Lines that break a graph": 1, "Compiled regions per step": 2, "CPU time between them per step": 100_000,
        },
        saving_ns=None,
        says=("fullgraph=True", "the line net.py:9"),
        facts=RunFacts(compilations=_COMPILED, graph_breaks=[GraphBreak("net.py:9", "Call to `print`", 2)]),
    ),
    Case("no break", _two_regions, "silent", "broke no graph", facts=RunFacts(compilations=_COMPILED)),
    Case("compilations were not recorded", _two_regions, "not_applicable", "compilations"),
)  # fmt: skip
