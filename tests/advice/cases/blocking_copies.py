"""Cases of `blocking_copies`: copies that the CPU waits for."""

from __future__ import annotations

from typing import Any

from advice.case import Case, between
from advice.recordings import DTOH, HTOD, copy, loop


def _waited_for(trace: Any, at: float) -> None:
    copy(trace, at + 50, HTOD.format("Pinned"), size=100_000, gpu=at + 321, dur=3, until=at + 325)


def _left_alone(trace: Any, at: float) -> None:
    copy(trace, at + 30, HTOD.format("Pinned"), size=100_000, gpu=at + 321, dur=3, until=None)


def _in_an_op_that_looks(trace: Any, at: float) -> None:
    trace.op("aten::bincount", at + 40, 300)
    copy(trace, at + 50, DTOH.format("Pageable"), size=8, gpu=at + 321, dur=2, until=at + 325)


def _of_ddp(trace: Any, at: float) -> None:
    trace.op("aten::copy_", at + 50, 280, tid=2)
    trace.launch(DTOH.format("Pageable"), at + 53, at + 321, 2, bytes=8, tid=2)
    trace.runtime(at + 56, 268, name="cudaStreamSynchronize", tid=2)


CASES = (
    Case(
        "a copy of a batch",
        loop(_waited_for),
        "fired",
        readings={"Copies that the CPU waits for, per step": 1, "Waiting, per step": 267_000},
        # Most of the 275 us that the GPU idles between the two kernels goes, and no more than it idles in all.
        saving_ns=(between(0, 3e5), between(150_000, 300_000), between(150_000, 310_000)),
        says=["non_blocking=True", "to, 1 a step"],
    ),
    Case("the CPU does not wait", loop(_left_alone, waits=False), "silent", "waited for no copy"),
    Case("an op reads a value", loop(_in_an_op_that_looks), "silent", "waited for no copy"),
    Case("DDP copies in the backward pass", loop(_of_ddp), "silent", "waited for no copy"),
)
