"""Cases of `recompiles`: a size, a data type and a number that changed, and a function that was compiled once."""

from __future__ import annotations

from typing import Any

from advice.case import Case
from advice.recordings import GEMM

from tb_dlprof_plugin.model.run_facts import Compilation, RunFacts


def _region(trace: Any) -> None:
    trace.gpu()
    for index in range(2):
        at = 1000 * index
        trace.step(4 + index, at, 1000)
        trace.op("Torch-Compiled Region: 0/0", at + 100, 300)
        trace.launch(GEMM, at + 110, at + 150, 50)
        trace.op("_compile.compile_inner (dynamo_timed)", at + 500, 40)
        trace.op("backend_compile (dynamo_timed)", at + 510, 20)


def _again(reason: str) -> RunFacts:
    first = Compilation("0/0", "net.py:7 forward", 3 * 10**9)
    return RunFacts(
        compilations=[first, Compilation("0/1", "net.py:7 forward", 7 * 10**9, reason, backward_ns=2 * 10**9)]
    )


CASES = (
    Case(
        "a size that changed",
        _region,
        "fired",
        "net.py:7 forward was compiled again because of 0/0: tensor 'x' size mismatch",
        readings={"Recompiles": 1, "Their time": 9 * 10**9, "Compiling in the recorded steps": 80_000},
        saving_ns=None,
        says=("dynamic=True", "once, for 9.0 s"),
        facts=_again("0/0: tensor 'x' size mismatch at index 0. expected 16, actual 8"),
    ),
    Case(
        "a data type that changed",
        _region,
        "fired",
        says=("the same data types",),
        facts=_again("0/0: tensor 'x' dtype mismatch. expected Float, actual Double"),
    ),
    Case("a number that changed", _region, "fired", says=("as a tensor",), facts=_again("0/0: k == 1")),
    Case(
        "compiled once",
        _region,
        "silent",
        "compiled once",
        facts=RunFacts(compilations=[Compilation("0/0", "net.py:7 forward", 3 * 10**9)]),
    ),
    Case("compilations were not recorded", _region, "not_applicable", "compilations"),
)
