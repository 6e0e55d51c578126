"""Cases of `amp_not_used`: matrix kernels in FP32 on a GPU with Tensor Cores."""

from __future__ import annotations

from typing import Any

from advice.case import Case, between
from advice.recordings import fp32_while_launching, nothing, unknown_gpu
from advice.training_step import layers

from tb_dlprof_plugin.model.run_facts import RunFacts

_TIMED = RunFacts(unprofiled_step_ns=1_000_000)


def _steps(precision: str = "fp32", capability: Any = (9, 0)) -> dict[str, Any]:
    return {"precision": precision, "steps": 2, "capability": capability}


CASES = (
    Case(
        "FP32",
        unknown_gpu,
        "fired",
        readings={
            "Eligible kernel time of each step": 700_000,
            "Of it in half precision": 0.0,
            "Of it in FP32, off the Tensor Cores": 700_000,
            "Of it in TF32": 0,
            "Step time": 1_000_000,
        },
        # Of 700 us of kernels, which take the CPU's waits with them, a third is left; the CPU's other work, a tenth
        # longer under AMP, bounds what that saves.
        saving_ns=(between(-1e6, 466_666), between(762_500 - 1.1 * 646_000, 466_666), between(52_000, 1e6)),
        says=["conv1/conv2d (backward)", "fc/linear (backward)", "bfloat16"],
        severity="high",
        facts=_TIMED,
        training=_steps(),
    ),
    Case(
        "a GPU without BF16", unknown_gpu, "fired", says=["GradScaler"], facts=_TIMED, training=_steps("fp32", (7, 0))
    ),
    Case("FP16", nothing, "silent", "100 % of the eligible kernel time is in half precision", training=_steps("fp16")),
    Case("no Tensor Cores", nothing, "not_applicable", "no Tensor Cores", training=_steps("fp32", (6, 1))),
    Case("an unknown GPU", nothing, "not_applicable", "was not recorded", training=_steps("fp32", None)),
    Case("the CPU sets the pace", fp32_while_launching, "silent", "the CPU sets the pace"),
    Case(
        "autocast",
        layers(),
        "silent",
        "Autocast is on",
        facts=RunFacts(autocast=True, autocast_dtype="bfloat16", matmul_allow_tf32=True),
    ),
)
