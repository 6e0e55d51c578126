"""The forecast's accuracy on the recorded pairs: what the documentation says of it, held here."""

from __future__ import annotations

import statistics

import pytest
from precision_pairs.forecast import Row, forecasts

pytestmark = pytest.mark.long

MEDIAN_ERROR = 0.07
IN_INTERVAL = 0.95
LARGEST_ERROR = 0.21


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return forecasts()


def test_forecasts_from_the_fp32_run_alone_come_close_to_the_unprofiled_steps(rows: list[Row]) -> None:
    assert len(rows) == 75
    errors = [abs(row.error) for row in rows]
    assert statistics.median(errors) <= MEDIAN_ERROR
    assert max(errors) <= LARGEST_ERROR


def test_the_intervals_hold_the_truth(rows: list[Row]) -> None:
    assert sum(row.covered for row in rows) >= IN_INTERVAL * len(rows)


def test_no_forecast_is_wrong_about_faster_or_slower(rows: list[Row]) -> None:
    assert [(row.model, row.target) for row in rows if not row.right_direction] == []


def test_small_models_that_the_cpu_paces_get_slower(rows: list[Row]) -> None:
    found = {(row.model, row.target): row for row in rows}
    for model in ("demo/lenet", "demo/mlp"):
        for target in ("amp-fp16", "amp-bf16"):
            assert found[model, target].truth_ms > found[model, target].before_ms
            assert found[model, target].found.speedup < 0.9


def test_the_two_half_precisions_differ_where_batch_norm_leaves_cudnn(rows: list[Row]) -> None:
    found = {(row.model, row.target): row.predicted_ms for row in rows}
    assert found["demo/resnet50", "amp-bf16"] > 1.1 * found["demo/resnet50", "amp-fp16"]


def test_they_are_closer_than_daydreams_rule(rows: list[Row]) -> None:
    amp = [row for row in rows if row.target != "tf32"]
    ours = statistics.median(abs(row.error) for row in amp)
    assert 2 * ours < statistics.median(abs(row.daydream_ms / row.truth_ms - 1) for row in amp)
