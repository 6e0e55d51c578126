"""Forecasts with another batch size, against the recorded runs: what the documentation says of it, held here."""

from __future__ import annotations

import statistics

import pytest
from precision_pairs.batch_sizes import Row, forecasts


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return list(forecasts())


def test_from_each_batch_size_to_each_other_one(rows: list[Row]) -> None:
    assert len({(row.before, row.after, row.target) for row in rows}) == len(rows) == 24


def test_larger_batches_come_close(rows: list[Row]) -> None:
    larger = [row for row in rows if row.after > row.before]
    errors = [abs(row.error) for row in larger]
    assert statistics.median(errors) < 0.1
    assert max(errors) < 0.2
    assert all(row.covered for row in larger)
    # A step as many times as long as the batch is larger: small batches leave the GPU part empty.
    assert all(row.proportional_error > 0.05 for row in larger)
    assert 3 * statistics.median(errors) < statistics.median(row.proportional_error for row in larger)


def test_smaller_batches_come_close_where_the_gpu_sets_the_pace(rows: list[Row]) -> None:
    smaller = [row for row in rows if row.after < row.before and row.found.limited_by == "gpu"]
    assert len(smaller) >= 4
    assert all(abs(row.error) < 0.25 for row in smaller)


def test_smaller_batches_are_too_long_where_the_cpu_of_a_waiting_run_sets_the_pace(rows: list[Row]) -> None:
    # As documented; a correction would have to hold for other models as well.
    smaller = [row for row in rows if row.after < row.before and row.found.limited_by == "cpu"]
    assert all(-0.15 < row.error < 0.4 for row in smaller)
