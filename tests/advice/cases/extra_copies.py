"""Cases of `extra_copies`: tensors that are made on the CPU and copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advice.case import Case
from advice.recordings import HTOD, copy, loop


def _made(filled: list[int]) -> Callable[[Any, float], None]:
    """A tensor of the shape is filled, one of 64 x 100 is copied."""

    def each(trace: Any, at: float) -> None:
        trace.op("aten::randn", at + 25, 200)
        trace.op("aten::normal_", at + 30, 190, dims=[filled, [], [], []], types=["float"])
        name, dims = HTOD.format("Pageable"), [[64, 100], []]
        copy(trace, at + 230, name, size=800_000, gpu=at + 295, dur=40, until=at + 340, dims=dims)

    return each


def _of_values(trace: Any, at: float) -> None:
    copy(trace, at + 60, HTOD.format("Pageable"), size=24, gpu=at + 325, dur=2, until=at + 330)
    trace.op("aten::lift_fresh", at + 338, 2)
    trace.op("aten::detach_", at + 341, 2)


CASES = (
    Case(
        "of the same shape",
        loop(_made([64, 100])),
        "fired",
        "They come from torch.randn.",
        {"Tensors made on the CPU and copied, per step": 1, "CPU time for them, per step": 200_000 + 116_000},
    ),
    Case("of Python values", loop(_of_values), "fired", "They come from torch.tensor."),
    Case("of another shape", loop(_made([7])), "silent", "No copy"),
)
