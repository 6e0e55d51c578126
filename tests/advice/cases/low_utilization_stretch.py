"""Cases of `low_utilization_stretch`: small kernels after a wait."""

from __future__ import annotations

import pytest
from advice.case import Case
from advice.recordings import launches

from tb_dlprof_plugin.model.run_facts import RunFacts

CASES = (
    Case(
        "small kernels after a wait",
        launches((10, 20, 400, {"name": "aten::mm", "wait": True}), (50, 40, 4, {"name": "aten::mul_"})),
        "fired",
        readings={
            "GPU utilization in the stretch": pytest.approx(15, abs=6),
            "GPU utilization in the rest": pytest.approx(95, abs=6),
            "Launches in it per step": pytest.approx(48, abs=4),
        },
        says=["mul_: "],
        facts=RunFacts(unprofiled_step_ns=5_500_000),
    ),
    Case("all of the step is badly used", launches((60, 50, 10, {})), "silent"),
)
