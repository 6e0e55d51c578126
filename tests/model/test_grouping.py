from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_dlprof_plugin.model.grouping import distinct, first_rows, group_rows

_VALUE = st.one_of(st.integers(-1, 3), st.integers(0, 2**40))


@given(st.lists(st.tuples(_VALUE, _VALUE, _VALUE), max_size=30))
def test_it_groups_as_numpy_does(rows) -> None:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    columns, inverse = group_rows(*table)
    expected, expected_inverse = np.unique(table, axis=1, return_inverse=True)
    assert np.array_equal(np.stack(columns), expected)
    assert np.array_equal(inverse, expected_inverse.reshape(-1))


@given(st.lists(st.integers(0, 50), max_size=30))
def test_distinct_values_and_their_first_rows(values) -> None:
    column = np.array(values, dtype=np.int64)
    unique, first = np.unique(column, return_index=True)
    assert np.array_equal(distinct(column), unique)
    assert np.array_equal(first_rows(column), first)
