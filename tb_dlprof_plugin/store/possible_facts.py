"""Which numbers the facts about a run and its machine may have: any other is as if it was not recorded.

Columns declare what their numbers may be (`model.column`), because a row that is wrong makes a table wrong. A fact
stands alone, so the profile is read without it.
"""

from __future__ import annotations

import math

from tb_dlprof_plugin.model.column import LARGEST

_LARGEST_EXACT = 2**53
"""The largest whole number that a browser's float64 holds exactly: bytes, parameters, counts."""
_LONGEST_STEP_NS = 2**46
"""19 hours: the time of as many such steps as a profile may hold is an int64."""


def is_possible(name: str, value: str | bytes | float | bool) -> bool:
    """Whether the field of this name can have the value."""
    if isinstance(value, (str, bytes, bool)):
        return True
    if isinstance(value, float):
        return math.isfinite(value)
    return abs(value) <= _most(name)


def _most(name: str) -> int:
    if name.endswith("_unix_ns"):
        return LARGEST
    return _LONGEST_STEP_NS if name.endswith("_ns") and name.startswith("unprofiled_") else _LARGEST_EXACT
