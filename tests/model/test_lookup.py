"""Values by rows that may be "none"."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.lookup import rows_of_each, take_or


def test_a_negative_row_has_the_value_for_missing() -> None:
    assert take_or(np.array([5, 6]), np.array([1, -1, 0]), -7).tolist() == [6, -7, 5]
    assert take_or(np.array([5, 6]), np.array([1, -1]), np.array([8, 9])).tolist() == [6, 9]


def test_an_empty_column_has_no_row_to_take() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert take_or(nothing, np.array([-1, -1]), 3).tolist() == [3, 3]
    assert take_or(nothing.astype(np.bool_), np.array([-1]), False).dtype == np.bool_
    assert take_or(np.array([1]), nothing, 0).tolist() == []


def test_rows_of_each_key_are_in_their_order() -> None:
    found = [(key, rows.tolist()) for key, rows in rows_of_each(np.array([7, -1, 7, 3]))]
    assert found == [(-1, [1]), (3, [3]), (7, [0, 2])]
    assert list(rows_of_each(np.zeros(0, dtype=np.int64))) == []
