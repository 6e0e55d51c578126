"""Values of a table by rows that may be "none"."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_T = TypeVar("_T", bound=np.generic)


def take_or(column: npt.NDArray[_T], rows: Ints, missing: Any) -> npt.NDArray[_T]:
    """The column's value at each row, ``missing`` where the row is negative; the column may be empty then.

    ``missing`` is a value, or one for each row.
    """
    if not len(column):
        result: npt.NDArray[_T] = np.full(len(rows), missing, dtype=np.result_type(column, missing))
        return result
    return np.where(rows >= 0, column[np.maximum(rows, 0)], missing)
