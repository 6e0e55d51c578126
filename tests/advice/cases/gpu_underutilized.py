"""Cases of `gpu_underutilized`: the GPU is busy less than half of the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from advice.case import Case, between
from advice.recordings import ADD, launches, steps

from tb_dlprof_plugin.model.run_facts import RunFacts


def _busy(microseconds: float) -> Callable[[Any], None]:
    def events(trace: Any) -> None:
        trace.gpu()
        trace.step(0, 0, 1000)
        trace.op("aten::add", 0, 100)
        trace.launch(ADD, 5, 100, microseconds)

    return events


CASES = (
    Case(
        "below half of the step, and another rule names the cause",
        _busy(499),
        "silent",
        "Other findings name the causes",
        facts=RunFacts(unprofiled_step_ns=1_000_000),
    ),
    Case("half of the step", _busy(500), "silent", facts=RunFacts(unprofiled_step_ns=1_000_000)),
    Case(
        "another rule names the cause",
        launches((40, 50, 10, {})),
        "silent",
        "Other findings name the causes",
        facts=RunFacts(unprofiled_step_ns=1_200_000),
    ),
    Case(
        "twelve pauses of 1.5 ms, none a tenth of the step",
        launches(*[(4, 20, 200, {"pause": 2000})] * 12),
        "fired",
        readings={"GPU utilization": pytest.approx(38, abs=2), "Kernels launched per step": 48},
        saving_ns=(between(0, 15_400_000), pytest.approx(15_400_000, rel=0.1), between(13_800_000, 25_000_000)),
        facts=RunFacts(unprofiled_step_ns=25_000_000),
    ),
    Case(
        "the profiler alone makes it so",
        launches((40, 50, 20, {})),
        "silent",
        "80 % of the step",
        facts=RunFacts(unprofiled_step_ns=1_000_000),
    ),
    Case("no GPU", steps(100), "not_applicable"),
)
