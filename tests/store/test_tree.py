"""The tree functions against a plain walk, on random forests and on chains deeper than any recursion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_dlprof_plugin.model.tree import (
    any_in_subtree,
    climb,
    inherit,
    nearest,
    outermost,
    parents,
    self_time,
    subtree_ends,
)


@st.composite
def forests(draw) -> tuple[np.ndarray, np.ndarray]:
    """Depths of calls in their order, and a flag for each."""
    depth: list[int] = []
    for _ in range(draw(st.integers(0, 40))):
        depth.append(draw(st.integers(0, depth[-1] + 1 if depth else 0)))
    flags = draw(st.lists(st.booleans(), min_size=len(depth), max_size=len(depth)))
    return np.array(depth, dtype=np.int64), np.array(flags, dtype=np.bool_)


def _walked_parents(depth: np.ndarray) -> list[int]:
    path: list[int] = []
    result = []
    for row, level in enumerate(depth.tolist()):
        del path[level:]
        result.append(path[-1] if path else -1)
        path.append(row)
    return result


def _line(parent: list[int], row: int) -> list[int]:
    """The row and all above it, from the inside."""
    result = []
    while row >= 0:
        result.append(row)
        row = parent[row]
    return result


@given(forests())
def test_all_functions_agree_with_a_walk(forest) -> None:
    depth, flags = forest
    walked = _walked_parents(depth)
    parent = parents(depth)
    assert parent.tolist() == walked
    rows = range(len(depth))
    lines = [[r for r in _line(walked, row) if flags[r]] for row in rows]
    assert nearest(flags, parent).tolist() == [line[0] if line else -1 for line in lines]
    assert outermost(flags, parent).tolist() == [line[-1] if line else -1 for line in lines]
    values = np.arange(len(depth)) * 10
    assert inherit(values, flags, parent).tolist() == [
        10 * (line[0] if line else row) for row, line in zip(rows, lines, strict=True)
    ]
    below = [[r for r in rows if row in _line(walked, r)] for row in rows]
    assert any_in_subtree(flags, subtree_ends(parent)).tolist() == [any(flags[r] for r in inside) for inside in below]
    assert subtree_ends(parent).tolist() == [inside[-1] + 1 for inside in below]
    free = [next((r for r in _line(walked, row) if not flags[r]), _line(walked, row)[-1]) for row in rows]
    assert climb(np.arange(len(depth)), flags, parent).tolist() == free


@pytest.mark.timeout(20)
def test_a_chain_of_half_a_million_calls_takes_no_longer_than_a_flat_list() -> None:
    # GIVEN a file in which every call lies in the one before
    depth = np.arange(500_000)
    parent = parents(depth)
    flags = np.zeros(len(depth), dtype=np.bool_)
    flags[0] = True
    assert parent[-1] == len(depth) - 2
    assert (nearest(flags, parent) == 0).all()
    assert any_in_subtree(flags, subtree_ends(parent)).sum() == 1
    assert (subtree_ends(parent) == len(depth)).all()
    assert self_time(np.arange(len(depth), 0, -1), parent).tolist() == [1] * len(depth)


def test_nothing_is_a_forest_too() -> None:
    nothing, none = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
    assert (
        len(parents(nothing))
        == len(inherit(nothing, none, nothing))
        == len(any_in_subtree(none, subtree_ends(nothing)))
        == 0
    )
    assert climb(np.array([-1]), none, nothing).tolist() == [-1]
