"""How the fields of a profile are stored, and what the numbers of its columns may be.

A field is `typing.Annotated` with these where it is declared: `tb_dlprof_plugin.model.profile`, `run_facts`. What is
stored follows from that (`tb_dlprof_plugin.store.layout`). `tb_dlprof_plugin.store.validation` compares each stored
column with its declaration, so that no later code looks up a row that is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any


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


@dataclass(frozen=True, slots=True)
class FieldNumber:
    """The number of a field in its stored message, where it is not the one after the field before it: the first has 1.

    A number is never given to another field, because files of every version are read.
    """

    number: int


@dataclass(frozen=True, slots=True)
class Packing:
    """How the numbers of a column are written; as they are by default, few bytes for small ones.

    Attributes:
        deltas: as differences to the number before: starts are large, differences small.
        plus_one: one larger, because a negative number takes ten bytes.
        signed: zigzag coded, so that small negative numbers are short.
        runs: each number once for all equal ones in a row; the next field number has how many these are.
    """

    deltas: bool = False
    plus_one: bool = False
    signed: bool = False
    runs: bool = False


PLAIN = Packing()
SIGNED = Packing(signed=True)
DELTAS = Packing(deltas=True, signed=True)
RISING_DELTAS = Packing(deltas=True)
PLUS_ONE = Packing(plus_one=True)
DELTAS_PLUS_ONE = Packing(deltas=True, plus_one=True, signed=True)
RUNS = Packing(runs=True)


@dataclass(frozen=True, slots=True)
class PerRow:
    """A column with several numbers in each row: ``count``, for each entry of the field ``each`` where there is one."""

    count: int
    each: str = ""


@dataclass(frozen=True, slots=True)
class Edges:
    """A column that bounds the rows: it has one number more than there are rows, or none."""


@dataclass(frozen=True, slots=True)
class InOldFiles:
    """A column that files of earlier versions lack: each of their rows has this number."""

    number: int


@dataclass(frozen=True, slots=True)
class Form:
    """Another type that a value is stored as.

    Attributes:
        kind: the stored type.
        write: makes one of the value.
        read: makes the value of one, given whether so many bytes of memory are left for it.
    """

    kind: Any
    write: Callable[[Any], Any]
    read: Callable[[Any, Callable[[int], bool]], Any]


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
