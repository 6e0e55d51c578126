"""Cases of `host_reads`: values of the GPU that the CPU reads."""

from __future__ import annotations

from typing import Any

from advice.case import Case, between
from advice.cases.blocking_copies import _in_an_op_that_looks, _of_ddp
from advice.recordings import ADD, DTOH, item, loop


def _logged(trace: Any, at: float) -> None:
    trace.event("train.py(12): log_loss", "python_function", at + 45, 300)
    trace.event("torch/_tensor.py(30): item", "python_function", at + 48, 290)
    item(trace, at)


def _of_the_scaler(trace: Any, at: float) -> None:
    trace.op("aten::_amp_foreach_non_finite_check_and_unscale_", at + 40, 8)
    trace.launch(ADD, at + 42, at + 320, 0.5)
    item(trace, at)


def _size(trace: Any, at: float) -> None:
    trace.op("aten::nonzero", at + 50, 276)
    trace.launch(DTOH.format("Pinned"), at + 53, at + 321, 2, bytes=4)
    trace.runtime(at + 56, 268, name="cudaStreamSynchronize")


def _with_work_queued(trace: Any) -> None:
    trace.gpu()
    for number in range(3):
        at = 1000.0 * number
        trace.step(number, at, 1000)
        trace.op("aten::mul", at + 1, 30)
        trace.launch(ADD, at + 5, at + 10, 495)
        trace.launch(ADD, at + 20, at + 505, 490)
        trace.op("aten::item", at + 600, 397)
        trace.op("aten::_local_scalar_dense", at + 601, 395)
        trace.launch(DTOH.format("Pinned"), at + 605, at + 995.5, 1, bytes=4)
        trace.runtime(at + 608, 388, name="cudaStreamSynchronize")


CASES = (
    Case(
        "a loss is logged",
        loop(_logged),
        "fired",
        "Most of them are in train.py:12 log_loss",
        {"Reads per step": 1, "Waiting for them, per step": 268_000},
        (between(0, 3e5), between(150_000, 400_000), between(150_000, 400_000)),
        ["item, 1 a step, in train.py:12 log_loss"],
    ),
    Case("the gradient scaler reads", loop(_of_the_scaler), "fired", says=["GradScaler", "fused=True"]),
    Case("the GPU decides a size", loop(_size), "fired", says=["aten::nonzero in the training loop: use torch.where"]),
    Case("an op copies to find something out", loop(_in_an_op_that_looks), "fired", says=["aten::bincount"]),
    Case(
        "one of many steps reads",
        loop(lambda trace, at: item(trace, at) if at == 0 else None),
        "silent",
        "no more than logging needs",
    ),
    Case("the GPU has work queued", _with_work_queued, "silent", "the GPU is idle for only"),
    Case("DDP copies in the backward pass", loop(_of_ddp), "silent", "No op waited"),
    Case(
        "the loop waits",
        loop(lambda trace, at: trace.runtime(at + 50, 275, name="cudaDeviceSynchronize")),
        "silent",
        "No op waited for a value of the GPU.",
    ),
)
