"""Whether facts of ranks, which may be anybody's bytes, hold what all that read them rely on."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Collectives, Gradients, KernelTimes, Operation, RankFacts, Steps
from tb_dlprof_plugin.model.profile import Ints

Table: TypeAlias = Steps | Collectives | KernelTimes | Gradients
_LARGEST = 2**61
_MOST_DIMENSIONS = 64
"""Of a mesh; a large job has five."""
_NO_QUANTITIES = ("key", "work_hash")


_NAMES: dict[Any, tuple[str, ...]] = {
    kind: tuple(column.name for column in dataclasses.fields(kind))
    for kind in (Steps, Collectives, KernelTimes, Gradients)
}


def names_of(kind: type[Table]) -> tuple[str, ...]:
    """The columns of a table."""
    return _NAMES[kind]


def columns_of(table: Table) -> dict[str, Ints]:
    """The columns by name."""
    return {name: getattr(table, name) for name in names_of(type(table))}


def fits(table: Table) -> bool:
    """Whether all columns have one length."""
    return len({len(column) for column in columns_of(table).values()}) == 1


def check(facts: Sequence[RankFacts]) -> None:
    """Checks several ranks at once.

    Raises:
        ValueError: a row is not there, or a number is out of range.
    """
    calls = [one.collectives for one in facts]
    for one in facts:
        if not (fits(one.steps) and fits(one.collectives) and fits(one.kernels) and fits(one.gradients)):
            raise ValueError("columns differ in length")
        if len(one.mesh) > _MOST_DIMENSIONS:
            raise ValueError("its mesh has more dimensions than any")
        if not 0 < one.launch_share <= 1:
            raise ValueError("the share of launching is none")
        if not abs(one.base_ns) < _LARGEST:
            raise ValueError("a step ends before it begins")
        if len(one.gradients):
            _check_gradients(one)
    count = [len(each) for each in calls]
    for columns, rows in (
        ([each.group for each in calls], [len(one.groups) for one in facts]),
        ([each.dtype for each in calls], [len(one.strings) for one in facts]),
        ([each.module for each in calls], [len(one.strings) for one in facts]),
    ):
        column = np.concatenate(columns)
        if len(column) and (column.min() < UNKNOWN or (column >= np.repeat(rows, count)).any()):
            raise ValueError("a collective names a group, data type or module that is not there")
    operation = np.concatenate([each.operation for each in calls])
    if len(operation) and (operation.min() < 0 or operation.max() > max(Operation)):
        raise ValueError("an operation is none")
    _check_sums([one.steps for one in facts])
    _check_sums(calls)
    _check_sums([one.kernels for one in facts])
    _check_sums([one.gradients for one in facts])
    begins, ends = (np.concatenate([getattr(one.steps, name) for one in facts]) for name in ("start_ns", "end_ns"))
    if (ends < begins).any():
        raise ValueError("a step ends before it begins")
    for each in (
        [each.duration_ns for each in calls],
        [each.work_ns for each in calls],
        [each.idle_ns for each in calls],
    ):
        if np.concatenate(each).min(initial=0) < 0:
            raise ValueError("a collective lasts less than nothing")


def _check_gradients(one: RankFacts) -> None:
    parts = one.gradients
    if min(parts.iteration.min(), parts.call.min(), parts.bytes.min()) < 0:
        raise ValueError("gradients belong to no call")
    if parts.iteration.max() >= len(one.steps.number):
        raise ValueError("gradients belong to no step")


def _check_sums(tables: Sequence[Table]) -> None:
    """No sum of a rank's column is too large; a bound of all tables together mostly shows it."""
    columns = [column for table in tables for column in _quantities(table)]
    if not columns:
        return
    all_numbers = np.concatenate(columns)
    most = max(len(column) for column in columns)
    if most * max(abs(int(all_numbers.max(initial=0))), abs(int(all_numbers.min(initial=0)))) <= _LARGEST:
        return
    for column in columns:
        if float(np.abs(column.astype(np.float64)).sum()) > _LARGEST:
            raise ValueError("a number is out of range")


def _quantities(table: Table) -> list[Ints]:
    """The columns that are summed up, without those that take no room."""
    return [
        column
        for name, column in columns_of(table).items()
        if name not in _NO_QUANTITIES and len(column) and column.strides[0]
    ]
