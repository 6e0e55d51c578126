"""Sequences aligned."""

from __future__ import annotations

from tb_dlprof_plugin.comparison.align import align


def test_what_was_added_and_removed_is_left_out() -> None:
    assert align("abcdef", "abXcdf") == [(0, 0), (1, 1), (2, 3), (3, 4), (5, 5)]


def test_equal_sequences_are_paired_in_order() -> None:
    assert align([1, 1, 1], [1, 1, 1]) == [(0, 0), (1, 1), (2, 2)]
    assert align([], [1]) == []


def test_an_element_pairs_once_where_the_other_side_repeats_it() -> None:
    assert align("aa", "aaaa") == [(0, 0), (1, 1)]


def test_a_difference_too_large_to_compare_pairs_by_running_number() -> None:
    a, b = [*range(1500), "end"], [*range(1499, -1, -1), "end"]
    pairs = align(a, b)
    assert len(pairs) == 1501
    assert all(a[i] == b[j] for i, j in pairs)
