"""Cases of `bad_tensor_shape`: sizes that are no multiple of 8."""

from __future__ import annotations

from advice.case import ANY, Case, between
from advice.training_step import HALF_TYPE, layers

from tb_dlprof_plugin.model.run_facts import RunFacts

CASES = (
    Case(
        "4001",
        layers(HALF_TYPE, width=4001),
        "fired",
        readings={"Layers with odd sizes": 2, "Their matrix kernels, per step": 1_000_000},
        saving_ns=(between(300_001, 1_030_000), ANY, between(300_001, 1_030_000)),
        says=["4001 to 4008 or 4032"],
        facts=RunFacts(autocast=True),
    ),
    Case("4000", layers(HALF_TYPE, width=4000), "silent"),
    Case("4096", layers(HALF_TYPE, width=4096), "silent"),
)
