"""Cases of `compile_no_effect`: a dropped result, a function that Dynamo gave up, a backend without kernels, and code
that runs."""

from __future__ import annotations

from typing import Any

from advice.case import Case, between
from advice.recordings import GEMM

from tb_dlprof_plugin.model.run_facts import Compilation, CompileCall, RunFacts

_CALLED = [CompileCall("train.py:12")]
_COMPILED = Compilation("0/0", "net.py:7 forward", 3 * 10**9)


def _eager(trace: Any) -> None:
    trace.gpu()
    for index in range(2):
        trace.step(4 + index, 1000 * index, 1000)
        trace.op("aten::mm", 1000 * index + 100, 300)
        trace.launch(GEMM, 1000 * index + 110, 1000 * index + 150, 50)


def _region(trace: Any) -> None:
    _eager(trace)
    for index in range(2):
        trace.op("Torch-Compiled Region: 0/0", 1000 * index + 500, 300)


CASES = (
    Case(
        "the result is dropped",
        _eager,
        "fired",
        "train.py:12 calls torch.compile, but nothing was compiled",
        readings={"Calls of torch.compile": 1},
        # A product stays as it is; launching it may take longer than before.
        saving_ns=(between(-200_000, 0), between(0, 100_000), between(0, 400_000)),
        says=("train.py:12: call what torch.compile returns", "model.compile()"),
        facts=RunFacts(compile_calls=_CALLED),
    ),
    Case(
        "Dynamo gave up",
        _eager,
        "fired",
        "Dynamo gave up on net.py:7 forward (Dynamo recompile limit exceeded)",
        says=("net.py:7 forward: keep what its guards check",),
        facts=RunFacts(
            compile_calls=_CALLED,
            compilations=[
                _COMPILED, Compilation("0/8", "net.py:7 forward", 10**6, failure="Dynamo recompile limit exceeded")
            ],
        ),
    ),
    Case(
        "another function was compiled",
        _eager,
        "fired",
        "net.py:7 forward, is not called in the recorded steps",
        facts=RunFacts(compile_calls=_CALLED, compilations=[_COMPILED]),
    ),
    Case(
        "a backend without kernels",
        _region,
        "fired",
        "the backend eager generates no kernels",
        says=("leave the backend out",),
        facts=RunFacts(compile_calls=[CompileCall("train.py:12", backend="eager")], compilations=[_COMPILED]),
    ),
    Case(
        "code that runs",
        _region,
        "silent",
        "runs in the steps",
        facts=RunFacts(compile_calls=_CALLED, compilations=[_COMPILED]),
    ),
    Case("torch.compile was not called", _eager, "not_applicable", "No call of torch.compile"),
)  # fmt: skip
