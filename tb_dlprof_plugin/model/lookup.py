"""Rows of tables: values by rows that may be "none", rows by a key, some rows of all columns, and tables together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_T = TypeVar("_T", bound=np.generic)
_Table = TypeVar("_Table")


def take_or(column: npt.NDArray[_T], rows: Ints, missing: Any) -> npt.NDArray[_T]:
    """The column's value at each row, ``missing`` where the row is negative; the column may be empty then.

    ``missing`` is a value, or one for each row.
    """
    if not len(column):
        result: npt.NDArray[_T] = np.full(len(rows), missing, dtype=np.result_type(column, missing))
        return result
    return np.where(rows >= 0, column[np.maximum(rows, 0)], missing)


def rows_with(keys: Ints, wanted: Ints) -> Ints:
    """For each wanted key the first row that has it, -1 for none."""
    if not len(keys):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    row = order[np.minimum(np.searchsorted(keys[order], wanted), len(order) - 1)]
    return np.where(keys[row] == wanted, row, -1)


def rows_of_each(keys: Ints) -> Iterator[tuple[int, Ints]]:
    """Each key, ascending, and its rows in their order: one sort, however many keys there are."""
    if len(keys) and (keys == keys[0]).all():
        yield int(keys[0]), np.arange(len(keys))
        return
    order = np.argsort(keys, kind="stable")
    if len(order):
        for rows in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
            yield int(keys[rows[0]]), rows


def take_rows(table: _Table, rows: npt.NDArray[Any]) -> _Table:
    """Some rows of a dataclass whose fields are columns."""
    return type(table)(*(getattr(table, column.name)[rows] for column in fields(table)))  # type: ignore[arg-type]


def joined(parts: Sequence[_Table], kind: type[_Table]) -> _Table:
    """Dataclasses whose fields are columns, one behind the other; one without rows where there is none."""
    nothing = np.zeros(0, dtype=np.int64)
    names = [column.name for column in fields(kind)]  # type: ignore[arg-type]
    return kind(*(np.concatenate([getattr(part, name) for part in parts]) if parts else nothing for name in names))
