"""Verdicts on compared figures."""

from __future__ import annotations

from comparison_rows import DIFFERS, EQUAL, EXPLAINED, ROUNDING, Row, table


def test_equal_is_equal_to_a_millionth() -> None:
    assert Row("time", 1_000_000.5, 1_000_000.0).verdict == EQUAL
    assert Row("time", 1_000_002.0, 1_000_000.0).verdict == DIFFERS


def test_absent_equals_only_absent() -> None:
    assert Row("time", None, None).verdict == EQUAL
    assert Row("time", None, 0.0).verdict == DIFFERS
    assert Row("time", 0.0, None).verdict == DIFFERS


def test_a_reason_explains_only_where_its_rule_gives_the_peers_figure() -> None:
    assert Row("time", 5.0, 7.0, "counts copies", 7.0).verdict == EXPLAINED
    assert Row("time", 5.0, 7.0, "counts copies", 6.0).verdict == DIFFERS
    assert Row("time", 5.0, 7.0, "counts copies").verdict == DIFFERS
    assert Row("step", None, 7.0, "counts it twice", 7.0).why == "counts it twice"


def test_rounding_explains_no_more_than_its_bound() -> None:
    assert Row("time", 5.0, 5.001, rounding=0.002).verdict == EXPLAINED
    assert Row("time", 5.0, 5.001, "counts copies", 9.0, rounding=0.002).why == ROUNDING
    assert Row("time", 5.0, 5.01, rounding=0.002).verdict == DIFFERS


def test_a_table_shows_every_difference_and_counts_the_rest() -> None:
    rows = [Row(f"equal {i}", 1.0, 1.0) for i in range(3)]
    rows += [Row(f"explained {i}", 1.0, 2.0, "reason", 2.0) for i in range(5)]
    rows += [Row("different", 1.0, 3.0)]
    lines = table("times", rows)
    assert lines[0] == "times: 3 equal, 5 explained, 1 DIFFERS"
    assert sum("explained: reason" in line for line in lines) == 4
    assert lines[-1] == "  and 2 rows that differ by less, explained: reason"
    assert any("different" in line and "DIFFERS" in line for line in lines)
    assert len(table("times", rows, everything=True)) == 2 + 9
