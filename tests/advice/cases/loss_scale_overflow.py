"""Cases of `loss_scale_overflow`: steps that the scaler skipped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advice.case import Case

from tb_dlprof_plugin.model.run_facts import RunFacts


def _steps(taken: str) -> Callable[[Any], None]:
    """Steps of a scaler in FP16; "-" took no optimizer step."""

    def events(trace: Any) -> None:
        trace.gpu()
        for index, took in enumerate(taken):
            at = 1000 * index
            trace.step(index, at, 1000)
            trace.op("aten::mm", at + 10, 10, dims=[[64, 64], [64, 64]], types=["c10::Half"] * 2)
            trace.launch("nvjet_sm90_hsh_128x64_64x8_2x1_v_bz_TNN", at + 12, at + 20, 600)
            trace.op("aten::_amp_foreach_non_finite_check_and_unscale_", at + 700, 10, types=["TensorList"])
            if took == "+":
                trace.optimizer(at + 800, 50)
            trace.op("aten::_amp_update_scale_", at + 900, 10)

    return events


_FACTS = RunFacts(grad_scaler=True, grad_scaler_scale=2.0**24, unprofiled_step_ns=1_000_000)

CASES = (
    Case(
        "two of five",
        _steps("+-+-+"),
        "fired",
        readings={
            "Optimizer steps skipped": 2,
            "Share of the optimizer steps": 40.0,
            "Time for skipped steps, per step": 400_000,
        },
        saving_ns=None,
        severity="high",
        facts=_FACTS,
    ),
    Case("none", _steps("+++++"), "silent", facts=_FACTS),
    Case("one, as a scale settles", _steps("++-++"), "silent", facts=_FACTS),
)
