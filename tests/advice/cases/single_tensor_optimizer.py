"""Cases of `single_tensor_optimizer`: steps parameter by parameter."""

from __future__ import annotations

import pytest
from advice.case import Case, between
from advice.recordings import one_by_one, optimizing

from tb_dlprof_plugin.model.run_facts import RunFacts

CASES = (
    Case(
        "a hundred parameters",
        optimizing(one_by_one(100, 2), "Adam", cpu=40),
        "fired",
        readings={"Kernels on one tensor each per step": 300, "CPU time of the optimizer's step": 12e6},
        # The step cannot get shorter than the other kernels' 5 ms.
        saving_ns=(between(0, 6_899_999), pytest.approx(6_900_000, rel=0.02), between(6_900_000, 7_320_000)),
        says=["fused=True"],
        facts=RunFacts(unprofiled_step_ns=12_000_000),
    ),
    Case("no fused version", optimizing(one_by_one(100, 2), "NAdam", cpu=40), "fired", says=["foreach=True"]),
    Case("few kernels", optimizing(one_by_one(5, 2), "Adam"), "silent", "15 of 15 kernels"),
    Case("hidden kernels", optimizing(one_by_one(10, 100), "NAdam", cpu=10), "silent", "% shorter without them"),
)
