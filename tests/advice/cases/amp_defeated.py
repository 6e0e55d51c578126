"""Cases of `amp_defeated`: layers in FP32 and casts in a mixed precision run."""

from __future__ import annotations

import pytest
from advice.case import ANY, Case, between
from advice.recordings import nothing
from advice.training_step import HALF_TYPE, layers

from tb_dlprof_plugin.model.run_facts import RunFacts

_AUTOCAST = RunFacts(autocast=True)

CASES = (
    Case(
        "a head in FP32",
        layers(),
        "fired",
        readings={"Matrix kernels on FP32 tensors, per step": 600_000, "Share of all matrix kernels": 60.0},
        # Measured products of this size take about a fifteenth of FP32's time in BF16.
        saving_ns=(between(480_001, 639_999), ANY, between(480_001, 639_999)),
        says=["head/linear"],
        facts=RunFacts(autocast=True, autocast_dtype="bfloat16"),
    ),
    Case(
        "tensors that go to FP32 and back",
        layers(HALF_TYPE, casts=60),
        "fired",
        saving_ns=(ANY, pytest.approx(120_000, rel=0.06), ANY),
        says=["Tensors go to FP32 and back: 0.12 ms"],
        facts=_AUTOCAST,
    ),
    Case("all layers in BF16", layers(HALF_TYPE), "silent", facts=_AUTOCAST),
    Case("a run in FP32", nothing, "not_applicable", training={}),
)
