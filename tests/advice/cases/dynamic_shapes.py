"""Cases of `dynamic_shapes`: code for any size that gets one size, or two, or does not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advice.case import Case, between
from advice.recordings import GEMM

from tb_dlprof_plugin.model.run_facts import Compilation, RunFacts

_GUARD = "0/0: tensor 'x' size mismatch at index 0. expected 16, actual 8"
_DYNAMIC = RunFacts(
    compilations=[
        Compilation("0/0", "net.py:7 forward", 3 * 10**9),
        Compilation("0/1", "net.py:7 forward", 4 * 10**9, _GUARD, dynamic=True),
    ]
)


def _region(*rows: int, name: str = "Torch-Compiled Region: 0/1") -> Callable[[Any], None]:
    def events(trace: Any) -> None:
        trace.gpu()
        for index, size in enumerate(rows):
            at = 1000 * index
            trace.step(4 + index, at, 1000)
            trace.op(name, at + 100, 300)
            trace.op("aten::mm", at + 110, 100, dims=[[size, 8], [8, 8]], types=["float", "float"])
            trace.launch(GEMM, at + 120, at + 150, 50)
            trace.annotation("## Call CompiledFxGraph fabc ##", at + 220, 150)
            trace.launch("triton_poi_fused_add_0", at + 230, at + 330, 20)

    return events


CASES = (
    Case(
        "one size",
        _region(16, 16, 16),
        "fired",
        "net.py:7 forward runs code for any size",
        readings={"Functions with code for any size and calls of one": 1},
        saving_ns=(between(0, 0), between(0, 30_000), between(20_000, 300_000)),
        says=("drop_last=True", _GUARD),
        facts=_DYNAMIC,
    ),
    Case("two sizes", _region(16, 8, 16), "silent", "up to 2 different sizes", facts=_DYNAMIC),
    Case(
        "the code for one size runs",
        _region(16, 16, name="Torch-Compiled Region: 0/0"),
        "silent",
        "does not run in the steps",
        facts=_DYNAMIC,
    ),
    Case(
        "fixed sizes",
        _region(16, 16),
        "silent",
        "No code was compiled for sizes that vary",
        facts=RunFacts(compilations=[Compilation("0/0", "net.py:7 forward", 3 * 10**9)]),
    ),
    Case("compilations were not recorded", _region(16, 16), "not_applicable", "compilations"),
)
