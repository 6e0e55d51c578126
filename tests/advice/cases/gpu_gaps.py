"""Cases of `gpu_gaps`: pauses of the CPU."""

from __future__ import annotations

from typing import Any

import pytest
from advice.case import Case, between
from advice.recordings import ADD, STEPS, launches

from tb_dlprof_plugin.model.run_facts import RunFacts


def _one_late_step(trace: Any) -> None:
    trace.gpu()
    for step in range(STEPS):
        at = 10_000 * step
        late = 6000 if step == 1 else 0
        trace.step(step, at, 10_000)
        trace.op("aten::mm", at + late, 100)
        trace.launch(ADD, at + late + 50, at + late + 100, 9000 - late)


def _loading(trace: Any) -> None:
    trace.gpu()
    for step in range(STEPS):
        at = 10_000 * step
        trace.step(step, at, 10_000)
        trace.loader(at, 6000)
        trace.op("aten::mm", at + 6000, 100)
        trace.launch(ADD, at + 6050, at + 6100, 3000)


CASES = (
    Case(
        "a pause in each step",
        launches((20, 20, 100, {"name": "aten::mm", "pause": 5000})),
        "fired",
        "runs Python code outside PyTorch, before mm is launched",
        {
            "Iterations with such a gap": STEPS,
            # 5 ms in the first iteration; later ones begin with 1.6 ms of the kernels before.
            "GPU idle in them per step": pytest.approx((5_000_000 + 3 * 3_400_000) / 4, rel=0.02),
        },
        # Without the pause the GPU's 2 ms are the step; with half of it it is 2.9 ms.
        (between(2_198_000, 2_431_000), between(3_230_000, 3_570_000), between(3_351_000, 3_705_000)),
        facts=RunFacts(unprofiled_step_ns=5_400_000),
    ),
    Case("a gap in one iteration of four", _one_late_step, "silent", "only 1 of 4 iterations"),
    Case("the CPU loads data", _loading, "silent"),
    Case("the CPU launches", launches((5, 900, 10, {})), "silent"),
)
