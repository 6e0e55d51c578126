"""The Sweep page: its lines by their facts, and the colour that a precision gives them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.pages.recorded_run import RecordedRun, computed_in, recorded_run
from tb_dlprof_plugin.pages.sweep import SweepRequest, sweep_page
from tb_dlprof_plugin.store.run_ref import RunRef

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"


def _recorded(run: str) -> RecordedRun:
    view = recorded_view(RECORDED / run)
    return recorded_run(view, RunRef(run, "", 0, 0), view.selection())


def test_a_line_of_a_precision_has_its_key_and_others_have_none() -> None:
    runs = [_recorded(f"{model}/{precision}") for model in ("mlp", "lenet") for precision in ("fp32", "amp-bf16")]
    over_model = sweep_page(runs, SweepRequest(over="model"))
    assert {curve.label: curve.precision_key for curve in over_model.curves} == {"FP32": "fp32", "AMP BF16": "bf16"}
    over_precision = sweep_page(runs, SweepRequest(over="precision"))
    assert len(over_precision.curves) == 2
    assert {curve.precision_key for curve in over_precision.curves} == {""}


@pytest.mark.parametrize(
    ("precision", "key"),
    [(None, ""), ("amp-fp16", "fp16"), ("bf16", "bf16"), ("tf32", "tf32"), ("tf32-allowed", "fp32")],
)
def test_mixed_precision_counts_as_what_most_is_computed_in(precision: str | None, key: str) -> None:
    assert computed_in(precision) == key
