"""Cases of `launch_bound`: kernels that are shorter than their launches."""

from __future__ import annotations

import pytest
from advice.case import Case, between
from advice.recordings import launches

from tb_dlprof_plugin.model.run_facts import RunFacts

CASES = (
    Case(
        "kernels are shorter than their launches",
        launches((40, 50, 10, {})),
        "fired",
        readings={
            "Launches per step": 40,
            "GPU time per launch": 10_000,
            "CPU time per launch": pytest.approx(50_000, rel=0.01),
            "GPU waits for launches, while recorded": pytest.approx(80, abs=2),
        },
        # A step takes the GPU's 400 us; torch.compile alone takes a fifth off the CPU's 1200 us. The low end is
        # wider by 6.4 % of the step afterwards, which the replay may miss; at the high end a quarter of the GPU's time
        # is left in fused kernels.
        saving_ns=(between(169_000, 187_500), between(776_000, 824_000), between(1_095_000, 1_115_000)),
        says=["3.0 times as large"],
        facts=RunFacts(unprofiled_step_ns=1_200_000),
    ),
    Case("kernels are longer", launches((40, 10, 50, {})), "silent", "sets the pace of 0 of 4"),
    Case(
        "without the profiler the CPU is faster",
        launches((40, 50, 40, {})),
        "silent",
        "without the profiler it is faster",
        facts=RunFacts(unprofiled_step_ns=1_650_000),
    ),
    Case("the CPU does other things", launches((40, 50, 10, {"pause": 3000})), "silent", "launching is only"),
    Case(
        "one stretch waits",
        launches((10, 20, 400, {"name": "aten::mm", "wait": True}), (50, 40, 4, {"name": "aten::mul_"})),
        "silent",
        facts=RunFacts(unprofiled_step_ns=5_500_000),
    ),
)
