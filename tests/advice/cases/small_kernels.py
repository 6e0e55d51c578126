"""Cases of `small_kernels`: which calls can be made one, and which kernels are small."""

from __future__ import annotations

from typing import Any

import pytest
from advice.case import ANY, Case, between
from advice.recordings import filled

_ROW = {"dims": [[4096]], "types": ["float"]}
_ROWS = {"dims": [[16, 4096]], "types": ["float"]}
_SQUARE = {"dims": [[8, 64], [64, 64], [64]], "types": ["float"] * 3}
_WIDER = {"dims": [[8, 64], [128, 64], [128]], "types": ["float"] * 3}
_TWO = {"dims": [[4096], [4096]], "types": ["float"] * 2}
_SOFTMAX = ("aten::softmax", 1, 200, _ROW)
_UNBIND = ("aten::unbind", 0, 0, _ROWS)
_SELECT = ("aten::select", 0, 0, _ROWS)


def _calls(name: str, calls: list[tuple[str, int, float, dict[str, Any]]], independent: bool) -> Case:
    label = "Of it in kernels of calls that do not depend on each other"
    return Case(
        name,
        filled(*calls, ("aten::mm", 512, 2000, {})),
        "fired",
        readings={label: between(1, 1e9) if independent else 0},
        says=["in calls that do not depend on each other", "op(rows)"] if independent else [],
    )


CASES = (
    Case(
        "kernels of one block that could run as one",
        filled(_UNBIND, *[_SOFTMAX] * 16, ("aten::mm", 512, 2000, {})),
        "fired",
        "1 block of 1024 threads; registers let 1 of them onto a multiprocessor",
        {
            "Time in such kernels per step": 3_200_000,
            "Multiprocessors used in it": pytest.approx(100 / 132),
        },
        # One kernel of 16 blocks takes one and a half times as long as one of them.
        (pytest.approx(2_400_000, rel=0.1), pytest.approx(2_900_000, rel=0.03), ANY),
        ["runs 16 times"],
    ),
    _calls("rows of a tensor that is taken apart", [_UNBIND, *[_SOFTMAX] * 16], True),
    _calls("rows that are picked", [_SELECT, _SOFTMAX] * 16, True),
    _calls("none can take what another returns", [("aten::linear", 1, 200, _WIDER)] * 16, True),
    _calls("calls whose input is unknown", [_SOFTMAX] * 16, False),
    _calls("the layers of a chain", [("aten::linear", 1, 200, _SQUARE)] * 16, False),
    _calls("one of two tensors may be of the step before", [_SELECT, ("aten::add", 1, 200, _TWO)] * 16, False),
    _calls("kernels between them", [_UNBIND, *[_SOFTMAX, ("aten::mul", 1, 20, _ROW)] * 16], False),
    _calls("rows of too small a tensor", [("aten::unbind", 0, 0, _ROW), *[_SOFTMAX] * 16], False),
    _calls("no shapes", [("aten::softmax", 1, 200, {})] * 16, False),
    Case("kernels that fill the GPU", filled(("aten::softmax", 132, 1000, {})), "silent", "take 0.0 %"),
    Case("short kernels", filled(*[("aten::softmax", 1, 4, {})] * 50), "silent", "take 0.0 %"),
    Case("little to save", filled(("aten::softmax", 60, 1000, {}), ("aten::mm", 512, 3500, {})), "silent",
         "should save only"),
    Case("another stream fills the rest",
         filled(("aten::mm", 8, 1000, {}), ("aten::mm", 8, 1000, {"stream": 9, "beside": True})), "silent",
         "take 0.0 %"),
)  # fmt: skip
