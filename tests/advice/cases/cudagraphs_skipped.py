"""Cases of `cudagraphs_skipped`: a tensor of the CPU, a graph without a reason's line, and none skipped."""

from __future__ import annotations

from typing import Any

from advice.case import Case, between
from advice.recordings import GEMM

from tb_dlprof_plugin.model.run_facts import Compilation, CudagraphSkip, RunFacts

_COMPILED = [Compilation("0/0", "net.py:7 forward", 3 * 10**9)]


def _launching(trace: Any) -> None:
    """Ten short kernels in a region: the GPU waits for each launch."""
    trace.gpu()
    for index in range(5):
        at = 1000 * index
        trace.step(4 + index, at, 1000)
        trace.op("Torch-Compiled Region: 0/0", at + 10, 900)
        trace.annotation("## Call CompiledFxGraph fabc ##", at + 15, 890)
        for launch in range(10):
            trace.launch(GEMM, at + 20 + 80 * launch, at + 40 + 80 * launch, 10)


def _replayed(trace: Any) -> None:
    trace.gpu()
    trace.step(4, 0, 1000)
    trace.op("Torch-Compiled Region: 0/0", 10, 900)
    trace.annotation("## Call CompiledFxGraph fabc ##", 15, 890)
    trace.runtime(20, 10, 77, name="cudaGraphLaunch")
    trace.kernel(GEMM, 100, 300, 77)


def _on_cpu(trace: Any) -> None:
    trace.step(0, 0, 100)
    trace.op("Torch-Compiled Region: 0/0", 10, 80)


def _skipped(place: str, reason: str) -> RunFacts:
    return RunFacts(compilations=_COMPILED, cudagraph_skips=[CudagraphSkip(place, reason, 2)])


CASES = (
    Case(
        "a tensor of the CPU",
        _launching,
        "fired",
        "net.py:9 forward: cpu device (arange)",
        readings={"Graphs without a CUDA graph": 2},
        # Ten launches take 890 us in each graph; a replay takes 100 to 890 of them.
        saving_ns=(between(0, 300_000), between(300_000, 600_000), between(600_000, 900_000)),
        says=("net.py:9 forward: create the tensor on the GPU", "for 2 of its graphs"),
        facts=_skipped("net.py:9 forward", "cpu device (arange)"),
    ),
    Case(
        "an input is written to",
        _launching,
        "fired",
        "mutated inputs",
        says=("do not write into an input",),
        facts=_skipped("", "mutated inputs (1 instances)"),
    ),
    Case(
        "the graph that runs is replayed",
        _replayed,
        "fired",
        saving_ns=None,
        facts=_skipped("net.py:9 forward", "cpu device (arange)"),
    ),
    Case("without a GPU", _on_cpu, "fired", saving_ns=None, facts=_skipped("", "cpu device (x)")),
    Case("none skipped", _launching, "silent", "skipped no CUDA graph", facts=RunFacts(compilations=_COMPILED)),
    Case("compilations were not recorded", _launching, "not_applicable", "compilations"),
)
