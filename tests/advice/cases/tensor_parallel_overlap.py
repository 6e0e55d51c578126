"""Cases of `tensor_parallel_overlap`: collectives in the layers, in simulated and recorded jobs."""

from __future__ import annotations

from advice.case import Case, between
from advice.recorded import recorded
from advice.simulated import on_gpu

from tests.support.simulated_job import fsdp, simulate, tensor_and_data

CASES = (
    Case(
        "two by two ranks",
        on_gpu(lambda: simulate(4, tensor_and_data(2, 2), seed=5)),
        "fired",
        saving_ns=(0, between(1, 1e9), between(1, 1e9)),
        says=["SequenceParallel"],
        training={},
    ),
    Case(
        "FSDP alone", on_gpu(lambda: simulate(2, fsdp(2)), parallel_wrapper="FSDPModule"), "not_applicable", training={}
    ),
    Case("the CPU sets the pace", recorded("ranks/recorded/tensor_even"), "silent", "hiding them saves 0.00 ms"),
)
