"""Cases of `graph_break`: two regions in a step with a line between them, and a run without breaks."""

from __future__ import annotations

from typing import Any

from advice.case import ANY, Case, between
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
            trace.annotation("## Call CompiledFxGraph fabc ##", at + 150 + 400 * part, 200)
            trace.launch(GEMM, at + 160 + 400 * part, at + 200 + 400 * part, 50)


def _one_region(trace: Any) -> None:
    trace.gpu()
    trace.step(4, 0, 1000)
    trace.op("Torch-Compiled Region: 0/0", 100, 300)
    trace.launch(GEMM, 110, 150, 50)


def _with_a_backward_pass_between(trace: Any) -> None:
    """Two models that are trained one after the other: no line breaks a graph between them."""
    trace.gpu()
    for part in range(2):
        at = 1000 * part
        trace.op("Torch-Compiled Region: 0/0", at + 100, 200)
        trace.launch(GEMM, at + 110, at + 150, 50)
        trace.backward("CompiledFunctionBackward", at + 400, 200, seq=7 + part)
        trace.launch(GEMM, at + 410, at + 450, 50)
    trace.step(4, 0, 2000)


def _eager(trace: Any) -> None:
    """A break in a loop, after which Dynamo compiles nothing."""
    trace.gpu()
    for index in range(2):
        at = 1000 * index
        trace.step(4 + index, at, 1000)
        for part in range(4):
            trace.op("aten::gelu", at + 100 + 150 * part, 100)
            trace.launch("vectorized_elementwise_kernel", at + 110 + 150 * part, at + 150 + 150 * part, 100)


_BREAK = RunFacts(compilations=_COMPILED, graph_breaks=[GraphBreak("net.py:9", "Call to `print`", 2)])


def _region_in_a_region(trace: Any) -> None:
    """Code that goes on behind a break runs inside the code before it."""
    trace.gpu()
    for index in range(2):
        at = 1000 * index
        trace.step(4 + index, at, 1000)
        trace.op("Torch-Compiled Region: 0/0", at + 100, 800)
        trace.annotation("## Call CompiledFxGraph fabc ##", at + 150, 200)
        trace.launch(GEMM, at + 160, at + 200, 50)
        trace.op("Torch-Compiled Region: 1/0", at + 500, 380)
        trace.annotation("## Call CompiledFxGraph fdef ##", at + 600, 200)
        trace.launch(GEMM, at + 610, at + 700, 50)


CASES = (
    Case(
        "a line between two regions",
        _two_regions,
        "fired",
        "net.py:9: Call to `print`",
        readings={
            # From the first region to the end of the second there are 700 us, of them 42 between launches in graphs.
            "Lines that break a graph": 1, "Compiled regions per step": 2,
            "CPU time around their graphs per step": between(600_000, 700_000),
        },
        # Half of it would go at most: one region stays.
        saving_ns=(between(0, 100_000), between(50_000, 330_000), between(200_000, 450_000)),
        says=("fullgraph=True", "the line net.py:9"),
        facts=_BREAK,
    ),
    Case(
        "a region inside another one",
        _region_in_a_region,
        "fired",
        readings={"Compiled regions per step": 2, "CPU time around their graphs per step": between(700_000, 800_000)},
        saving_ns=ANY,
        facts=_BREAK,
    ),
    Case(
        "nothing runs compiled",
        _eager,
        "fired",
        readings={"Compiled regions per step": 0},
        # What compiling would save: of 400 us in elementwise kernels a quarter to four fifths are left.
        saving_ns=(between(-200_000, 50_000), between(0, 250_000), between(100_000, 500_000)),
        facts=_BREAK,
    ),
    Case("one region a step", _one_region, "fired", saving_ns=None, facts=_BREAK),
    Case(
        "regions with a backward pass between",
        _with_a_backward_pass_between,
        "fired",
        readings={"Compiled regions per step": 2, "CPU time around their graphs per step": 0},
        saving_ns=None,
        facts=_BREAK,
    ),
    Case("no break", _two_regions, "silent", "broke no graph", facts=RunFacts(compilations=_COMPILED)),
    Case("compilations were not recorded", _two_regions, "not_applicable", "compilations"),
)  # fmt: skip
