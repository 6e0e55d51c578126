"""Cases of `unused_parameters`: parameters without a gradient, and what DDP does for them."""

from __future__ import annotations

from typing import Any

import pytest
from advice.case import ANY, Case
from advice.recordings import nothing
from advice.training_step import SIMT_GEMM

from tb_dlprof_plugin.model.run_facts import RunFacts


def _facts(unused: int, **facts: Any) -> RunFacts:
    return RunFacts(trainable_parameters=6, unused_parameters=unused, **facts)


def _summed(trace: Any) -> None:
    """8 of 10 million numbers that are summed up are of unused parameters, and nothing overlaps with the sum."""
    trace.gpu()
    for index in range(3):
        at = 3000 * index
        trace.step(index, at, 3000)
        trace.op("aten::mm", at + 10, 20, dims=[[64, 64], [64, 64]], types=["float"] * 2)
        trace.launch(SIMT_GEMM, at + 12, at + 20, 500)
        trace.op("record_param_comms", at + 40, 30, dims=[[[10_000_000]], []], types=["TensorList", "Scalar"])
        trace.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", at + 42, at + 520, 1000)


CASES = (
    Case("not recorded", nothing, "not_applicable", "was not recorded", training={}),
    Case("all are used", nothing, "silent", "All 6 parameters", facts=_facts(0), training={}),
    Case(
        "two, without DDP",
        nothing,
        "fired",
        "2 of 6 parameters of the optimizer require a gradient and got none while recorded (aux.weight, aux.bias)",
        saving_ns=None,
        severity="low",
        facts=_facts(2, unused_parameter_bytes=60 << 20, unused_parameter_names=["aux.weight", "aux.bias"]),
        training={},
    ),
    Case(
        "a search for none",
        nothing,
        "silent",
        "costs less than 2 %",
        facts=_facts(0, find_unused_parameters=True),
        training={},
    ),
    Case(
        "zeros that DDP sums up",
        _summed,
        "fired",
        saving_ns=(pytest.approx(0.6 * 800_000, abs=0.02 * 3_000_000), 800_000, ANY),
        facts=_facts(2, unused_parameter_bytes=32_000_000, find_unused_parameters=True),
    ),
)
