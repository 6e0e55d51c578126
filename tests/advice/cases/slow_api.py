"""Cases of `slow_api`: debugging aids that were left on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advice.case import ANY, Case, between
from advice.recordings import ADD, GEMM, nothing

from tb_dlprof_plugin.model.run_facts import RunFacts


def _checked(checked: int) -> Callable[[Any], None]:
    """Four backward nodes, ``checked`` of which check their gradient for NaN."""

    def events(trace: Any) -> None:
        trace.gpu()
        for index in range(2):
            at = 1000 * index
            trace.step(4 + index, at, 1000)
            trace.module("fc", at, 300)
            trace.op("aten::relu", at + 10, 200)
            trace.launch(GEMM, at + 20, at + 40, 50)
            for node in range(4):
                begin = at + 400 + 100 * node
                trace.backward("ReluBackward0", begin, 90, node)
                if node < checked:
                    trace.op("aten::isnan", begin + 10, 20, tid=2, seq=node, fwd=1)
                    trace.op("aten::item", begin + 40, 40, tid=2, seq=node, fwd=1)
                    trace.runtime(begin + 45, 30, name="cudaStreamSynchronize", tid=2)

    return events


def _blocking_launches(trace: Any) -> None:
    trace.gpu()
    for index in range(2):
        at = 1000 * index
        trace.step(4 + index, at, 1000)
        for kernel in range(15):
            begin = at + 60 * kernel
            trace.op("aten::mm", begin, 55)
            trace.runtime(begin + 2, 50, 100 * index + kernel + 1)
            trace.kernel(GEMM, begin + 6, 45, 100 * index + kernel + 1)


def _filled_tensor(trace: Any) -> None:
    trace.gpu()
    for index in range(2):
        at = 1000 * index
        trace.step(4 + index, at, 1000)
        trace.op("aten::empty", at + 10, 100)
        trace.op("aten::fill_", at + 20, 80)
        trace.launch(ADD, at + 30, at + 40, 300)
        trace.op("aten::mm", at + 120, 30)
        trace.launch(GEMM, at + 130, at + 340, 400)


_TIMED = {"unprofiled_step_ns": 900_000}

CASES = (
    *(
        Case(
            f"anomaly detection, seen by the hook: {seen}",
            _checked(3),
            "fired",
            # Three checks of 20 and 40 us; relu takes 200 - 2 us of its own, 20 of which are no stack trace.
            "6 calls a step check gradients for NaN, 0.18 ms on the CPU",
            saving_ns=(between(1, 900_000), ANY, between(1, 900_000)),
            says=["Anomaly detection is on", "forward ops spend 0.18 ms on stack traces"],
            facts=RunFacts(**_TIMED, anomaly_mode=seen),
        )
        for seen in (None, True)
    ),
    Case("a check of the user's own", _checked(1), "silent", facts=RunFacts(**_TIMED)),
    Case(
        "launches that return after their kernel",
        _blocking_launches,
        "fired",
        readings={"Launches waiting for their kernel, per step": 15 * 40_000},
        # The GPU works 675 us of a step.
        saving_ns=(ANY, ANY, 225_000),
        says=["Waiting for each launch is on"],
        facts=RunFacts(**_TIMED),
    ),
    Case(
        "switches",
        nothing,
        "fired",
        saving_ns=None,
        says=["PYTHONTRACEMALLOC=1, sys.settrace(pydevd) are on", "unset PYTHONTRACEMALLOC\n"],
        facts=RunFacts(slow_switches=["PYTHONTRACEMALLOC=1", "sys.settrace(pydevd)"]),
        training={},
    ),
    Case(
        "deterministic algorithms fill new tensors",
        _filled_tensor,
        "fired",
        "fill 1 new tensors a step",
        says=["torch.utils.deterministic.fill_uninitialized_memory = False"],
        facts=RunFacts(deterministic_algorithms=True),
    ),
    Case("tensors that the user fills", _filled_tensor, "silent"),
)
