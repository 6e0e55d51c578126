"""How much is done for an answer, as a number that is the same on every machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

_NUMPY = os.path.dirname(np.__file__)


def operations(work: Callable[[], Any]) -> int:
    """Lines that Python executes, those of a loop once a turn. What numpy does in itself does not count."""
    count = 0

    def traced(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def elements(work: Callable[[], Any]) -> int:
    """Calls of Python functions, the elements of the arrays that numpy's are given, and those of copied containers.

    So a pass over a whole table counts as such, however fast numpy makes it.
    """
    count = 0

    def profiled(frame: FrameType, event: str, called: Any) -> None:
        nonlocal count
        if event == "c_call" and called.__name__ == "copy" and isinstance(called.__self__, list | dict | set):
            count += len(called.__self__)
        if event == "call":
            code = frame.f_code
            arguments = code.co_varnames[: code.co_argcount] if _NUMPY in code.co_filename else ()
            known = frame.f_locals
            count += 1 + sum(known[one].size for one in arguments if isinstance(known.get(one), np.ndarray))

    before = sys.getprofile()
    sys.setprofile(profiled)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
