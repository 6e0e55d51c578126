"""Cases of `bad_iteration_range`: which iterations are unlike the others."""

from __future__ import annotations

from typing import Any

import pytest
from advice.case import Case
from advice.recordings import steps

from tb_dlprof_plugin.model.run_facts import RunFacts

_SLOW = (1_900e3, 2_100e3, 1_200e3, 800e3)
_TWICE = (100, 101, 100, 200, 100, 102, 100, 205)


def _calls_made_once(trace: Any) -> None:
    for index, (at, length) in enumerate(((0, 400), (400, 100), (500, 100), (600, 100))):
        trace.step(index, at, length)
        trace.op("aten::linear", at + 1, length / 2)
    trace.runtime(20, 150, name="cudaMalloc")
    trace.runtime(180, 80, name="cuLibraryLoadData", cat="cuda_driver")
    trace.runtime(270, 9, name="cudaMallocAsync")


CASES = (
    Case(
        "a slow beginning",
        steps(500, 180, 100, 102, 98, 101, 100, 99),
        "fired",
        readings={
            "Furthest from the median": pytest.approx(100 * (500 / 100.5 - 1)),
            "Iterations unlike the others": 2,
            "Mean over the selected iterations": 160_000,
            "Mean over the range to use": 100_000,
        },
        saving_ns=None,
        says=["use steps 12 to 17", "--first 2 --last 7", "the first ones do what is done only once"],
    ),
    Case(
        "one that has an op of its own",
        steps(100, 101, 100, 400, 99, 100, extra={3: "aten::argmax"}),
        "fired",
        says=["use steps 10 to 12", "Only there: argmax"],
    ),
    Case(
        "most are slower than without the profiler",
        steps(*_SLOW, 92e3, 93e3, *_SLOW),
        "fired",
        "Without the profiler a step takes 90.67 ms, and the iterations nearest to that 92.50 ms",
        says=["8 of 10 iterations are unlike the others: use steps 14 to 15", "--first 4 --last 5"],
        facts=RunFacts(unprofiled_before_ns=[90_000_000, 91_000_000, 89_000_000, 92_000_000]),
    ),
    Case("nothing else tells which are the usual ones", steps(*_SLOW, 92e3, 93e3, *_SLOW), "silent"),
    Case("as often long without the profiler", steps(*_TWICE), "silent",
         facts=RunFacts(unprofiled_before_ns=[90_000, 90_000, 90_000, 180_000] * 3)),
    Case("never long without the profiler", steps(*_TWICE), "fired", says=["2 of 8"],
         facts=RunFacts(unprofiled_before_ns=[90_000] * 8)),
    Case("the beginning of the first was not recorded", steps(55, 110, 112, 108, 111, 109), "fired",
         says=["use steps 11 to 15"], facts=RunFacts(unprofiled_before_ns=[50_000] * 5)),
    Case("calls that are made once", _calls_made_once, "fired",
         "1 call to the driver for memory (0.15 ms) and 1 call to load code (0.08 ms)"),
    Case("all vary", steps(100, 140, 95, 130, 105, 145), "silent"),
    Case("all are alike", steps(100, 102, 110, 98, 101), "silent"),
    Case("two", steps(100, 400), "not_applicable"),
)  # fmt: skip
