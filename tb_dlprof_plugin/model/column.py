"""What the numbers of a profile's columns may be, declared with each column in `tb_dlprof_plugin.model.profile`.

A column is `typing.Annotated` with one of these. `tb_dlprof_plugin.store.validation` compares each stored column with
its declaration, so that no later code looks up a row that is not there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


@dataclass(frozen=True, slots=True)
class RowsOf:
    """Rows of a table or list of the profile.

    Attributes:
        table: the attribute of `Profile`, such as "calls" or "light_window.calls".
        lowest: 0, or a negative number where those above it have a meaning, such as -1 for "none".
    """

    table: str
    lowest: int = 0


@dataclass(frozen=True, slots=True)
class Between:
    """Numbers from ``low`` to ``high``, both inclusive. They are added up: their total is within ``high`` too where
    ``total`` is set."""

    low: int
    high: int
    total: bool = False


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""


Meaning = RowsOf | Between | Flag

LARGEST = 2**62 - 1
"""Of times, bytes and their totals: a sum of two is an int64."""
TIME = Between(-LARGEST, LARGEST)
DURATION = Between(0, LARGEST, total=True)
BYTES = Between(-LARGEST, LARGEST)
BYTES_OR_NONE = Between(-1, LARGEST, total=True)
COUNT_OR_NONE = Between(-1, LARGEST)
NUMBER = Between(-1, 2**31 - 1)
"""Of a device or stream, or of a launch configuration; -1 where it was not recorded."""
THREAD = Between(0, 2**22 - 1)
"""Threads are numbered from 0; Linux runs at most 2**22 (``PID_MAX_LIMIT``)."""
STEP = Between(-(2**53), 2**53)
"""A count of training steps, which a browser's float64 holds."""


def member_of(kind: type[IntEnum]) -> Between:
    """The values of an enum, which are counted from 0."""
    return Between(0, max(kind))
