"""Cases of `synchronising_calls`: waits of the training loop itself."""

from __future__ import annotations

from typing import Any

from advice.case import Case
from advice.recordings import ADD, loop


def _event(trace: Any, at: float) -> None:
    trace.runtime(at + 50, 275, name="cudaEventSynchronize")


def _event_with_work_queued(trace: Any, at: float) -> None:
    trace.op("aten::mul", at + 30, 8)
    trace.launch(ADD, at + 32, at + 321, 350)
    _event(trace, at)


def _of_ddp(trace: Any, at: float) -> None:
    trace.annotation("DistributedDataParallel.forward", at + 45, 290)
    _event(trace, at)


CASES = (
    Case(
        "torch.cuda.synchronize()",
        loop(lambda trace, at: trace.runtime(at + 50, 275, name="cudaDeviceSynchronize")),
        "fired",
        readings={"Waiting calls per step": 1},
        says=["torch.cuda.synchronize()", "cudaDeviceSynchronize, 1 a step"],
    ),
    Case("the GPU has more to do", loop(_event_with_work_queued), "silent", "waited for nothing"),
    Case("DDP waits", loop(_of_ddp), "silent", "waited for nothing"),
)
