"""Cases of `tf32_off`: products in FP32 whose switch is off."""

from __future__ import annotations

from typing import Any

from advice.case import Case, between
from advice.recordings import fp32_while_launching, nothing, unknown_gpu

from tb_dlprof_plugin.model.run_facts import RunFacts

_TIME = "FP32 matrix kernels off the Tensor Cores, of each step"


def _switches(matmul: bool | None, cudnn: bool | None) -> RunFacts:
    return RunFacts(unprofiled_step_ns=1_000_000, matmul_allow_tf32=matmul, cudnn_allow_tf32=cudnn)


def _steps(precision: str = "fp32", capability: Any = (9, 0)) -> dict[str, Any]:
    return {"precision": precision, "steps": 2, "capability": capability}


CASES = (
    Case(
        "both are off",
        unknown_gpu,
        "fired",
        "matmul is off, cuDNN is off",
        {_TIME: 700_000},
        # 700 us of kernels get 2.5 times as fast, and the CPU waits for most of them.
        (between(1, 233_333), between(336_000, 420_000), between(336_000, 1e6)),
        facts=_switches(False, False),
        training=_steps(),
    ),
    Case("cuDNN's is on", unknown_gpu, "fired", readings={_TIME: 200_000}, facts=_switches(False, True),
         training=_steps()),
    Case("that of matmul is on", unknown_gpu, "fired", readings={_TIME: 500_000}, facts=_switches(True, False),
         training=_steps()),
    Case("both are on", nothing, "silent", facts=_switches(True, True), training=_steps()),
    Case("kernels in TF32", nothing, "silent", training=_steps("tf32", (8, 0))),
    Case("kernels in FP16", nothing, "silent", facts=_switches(False, False), training=_steps("fp16", (8, 0))),
    Case("no TF32", nothing, "not_applicable", facts=_switches(False, None), training=_steps("fp32", (7, 5))),
    Case("an unknown GPU", nothing, "not_applicable", training=_steps("fp32", None)),
    Case("the CPU sets the pace", fp32_while_launching, "silent"),
)  # fmt: skip
