"""Rows of tables: values by rows that may be "none", rows by a key, and some rows of all columns."""

from __future__ import annotations

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


def take_rows(table: _Table, rows: npt.NDArray[Any]) -> _Table:
    """Some rows of a dataclass whose fields are columns."""
    return type(table)(*(getattr(table, column.name)[rows] for column in fields(table)))  # type: ignore[arg-type]
