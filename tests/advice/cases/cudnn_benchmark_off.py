"""Cases of `cudnn_benchmark_off`: it fires only where the hook saw it off."""

from __future__ import annotations

import pytest
from advice.case import Case
from advice.recordings import fp32_while_launching, nothing, unknown_gpu

from tb_dlprof_plugin.model.run_facts import RunFacts

_STEPS = {"steps": 2}
_OFF = RunFacts(unprofiled_step_ns=1_000_000, cudnn_benchmark=False)

CASES = (
    Case(
        "off",
        unknown_gpu,
        "fired",
        readings={
            "Convolution share of the step": 50.0,
            "Convolution kernels per step": 500_000,
            "Different convolution shapes": 2,
        },
        # A replay that the CPU paces misses up to 6.4 % of what is left of the step.
        saving_ns=(0, round(500_000 * (1 - 1 / 1.2)), pytest.approx(142_857 + 0.064 * 857_143, rel=0.01)),
        facts=_OFF,
        training=_STEPS,
    ),
    Case("on", nothing, "silent", facts=RunFacts(cudnn_benchmark=True), training=_STEPS),
    Case("not recorded", nothing, "not_applicable", training=_STEPS),
    Case("deterministic algorithms", nothing, "not_applicable",
         facts=RunFacts(cudnn_benchmark=False, deterministic_algorithms=True), training=_STEPS),
    Case("no convolutions", fp32_while_launching, "not_applicable", facts=_OFF),
)  # fmt: skip
