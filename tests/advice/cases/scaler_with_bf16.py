"""Cases of `scaler_with_bf16`: a gradient scaler that BF16 does not need."""

from __future__ import annotations

from typing import Any

from advice.case import ANY, Case, between
from advice.training_step import ELEMENTWISE, HALF_TYPE, MULTI_TENSOR, Step, layers

from tb_dlprof_plugin.model.run_facts import RunFacts


def _scaled() -> Step:
    run = layers(HALF_TYPE)
    run.update(
        ("aten::to", [[]], ["float"], [(ELEMENTWISE, 1)]),
        ("aten::reciprocal", [[]], ["double"], [(ELEMENTWISE, 1)]),
        ("aten::full", [[]], [""], [(ELEMENTWISE, 1)]),
        ("aten::_amp_foreach_non_finite_check_and_unscale_", [], [], [(MULTI_TENSOR, 300)]),
    )
    run.wait()
    run.update(("aten::_amp_update_scale_", [[]], ["float"], [(ELEMENTWISE, 2)]))
    return run


def _unscaled_in_fp16(trace: Any) -> None:
    trace.op("aten::_amp_foreach_non_finite_check_and_unscale_", 415, 4, types=["TensorList"])


CASES = (
    Case(
        "with BF16",
        _scaled(),
        "fired",
        readings={"Calls of the scaler per step": 6, "Their kernels per step": 305_000},
        saving_ns=(ANY, between(0.9 * 305_000, 1e6), ANY),
        says=["the CPU waits"],
        facts=RunFacts(grad_scaler=True, autocast=True),
    ),
    Case("with FP16", _unscaled_in_fp16, "silent", "in FP16", facts=RunFacts(grad_scaler=True),
         training={"precision": "fp16"}),
)  # fmt: skip
