"""Interval unions against a model that marks each nanosecond."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_dlprof_plugin.model.intervals import Intervals, covered, covered_by_others, merge, union

_INTERVALS = st.lists(st.tuples(st.integers(-30, 60), st.integers(-5, 30)), max_size=12)


def _columns(intervals: list[tuple[int, int]]) -> Intervals:
    pairs = np.array([(start, start + length) for start, length in intervals], dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _moments(intervals: list[tuple[int, int]]) -> set[int]:
    return {moment for start, length in intervals for moment in range(start, start + length)}


def _moments_of(found: Intervals) -> set[int]:
    return {moment for start, stop in zip(*found, strict=True) for moment in range(start, stop)}


@given(_INTERVALS)
def test_a_union_covers_the_same_moments_with_sorted_disjoint_intervals(intervals: list[tuple[int, int]]) -> None:
    start, stop = union(*_columns(intervals))
    assert _moments_of((start, stop)) == _moments(intervals)
    assert (start < stop).all()
    assert (stop[:-1] < start[1:]).all(), "touching intervals are one"


@given(_INTERVALS, _INTERVALS)
def test_merging_unions_is_the_union_of_all(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    merged = merge(union(*_columns(first)), union(*_columns(second)))
    assert _moments_of(merged) == _moments(first) | _moments(second)


@given(_INTERVALS, st.lists(st.tuples(st.integers(-50, 100), st.integers(0, 60)), max_size=5))
def test_coverage_of_a_window_counts_its_covered_moments(
    intervals: list[tuple[int, int]], windows: list[tuple[int, int]]
) -> None:
    found = covered(union(*_columns(intervals)), *_columns(windows))
    assert found.tolist() == [len(_moments(intervals) & set(range(start, start + length))) for start, length in windows]


def test_what_other_groups_cover_is_what_the_union_of_all_others_does() -> None:
    source = np.random.default_rng(0)
    for _ in range(300):
        count = int(source.integers(1, 12))
        group, start = 7 * source.integers(0, 4, count), source.integers(-20, 30, count)
        stop = start + source.integers(0, 10, count)
        rows = source.integers(0, count, 5)
        begin = source.integers(-30, 40, 5)
        end = begin + source.integers(0, 15, 5)
        found = covered_by_others(group, start, stop, rows, begin, end).tolist()
        others = [group != group[row] for row in rows]
        assert found == [
            int(covered(union(start[other], stop[other]), begin[[at]], end[[at]])[0]) for at, other in enumerate(others)
        ]
