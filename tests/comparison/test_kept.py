"""The forecast compared with recorded runs: which pairs it is about, and that what is measured is the candidate's."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
from support.recorded_runs import recorded_view

import tb_dlprof_plugin
from tb_dlprof_plugin.comparison import compare
from tb_dlprof_plugin.comparison.forecast_check import (
    ForecastCheck,
    NotComparableError,
    check_forecast,
    forecast_precision,
)
from tb_dlprof_plugin.metrics.iterations import step_totals
from tb_dlprof_plugin.planning import ForecastError, forecast
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.estimate import step_estimate

ROOT = Path(__file__).resolve().parents[2]
DEMO = "demo/recorded"
PAIRS = "tests/data/precision_pairs"


@functools.cache
def view(run: str) -> ProfileView:
    return recorded_view(ROOT / run)


@functools.cache
def kept(base: str, candidate: str) -> ForecastCheck | None:
    a, b = view(base), view(candidate)
    return check_forecast(compare(a, b), a, b, b.selection())


@pytest.mark.parametrize(
    ("base", "candidate", "precision"),
    [
        (f"{DEMO}/custom/fp32", f"{DEMO}/custom/tf32", "tf32"),
        (f"{DEMO}/custom/fp32", f"{DEMO}/custom/amp-fp16", "fp16"),
        (f"{DEMO}/custom/fp32", f"{DEMO}/custom/amp-bf16", "bf16"),
        # TF32 was switched on, and LeNet's small kernels did not all take it up.
        (f"{DEMO}/lenet/fp32", f"{DEMO}/lenet/tf32", "tf32"),
        (f"{DEMO}/custom/fp32", f"{DEMO}/custom/fp32", None),
        (f"{DEMO}/custom/tf32", f"{DEMO}/custom/amp-fp16", None),
        (f"{DEMO}/custom/amp-fp16", f"{DEMO}/custom/fp32", None),
        (f"{PAIRS}/torchvision/resnet18/fp32", f"{PAIRS}/torchvision/resnet18/cast-fp16", None),
        (f"{PAIRS}/torchvision/resnet18/fp32", f"{PAIRS}/torchvision/resnet18/compile-amp-bf16", None),
    ],
)
def test_forecasts_are_about_tf32_and_autocast_after_fp32(base: str, candidate: str, precision: str | None) -> None:
    assert forecast_precision(view(base), view(candidate)) == precision


def test_where_the_gpu_sets_the_pace_the_recorded_step_is_what_was_forecast() -> None:
    base, candidate = f"{DEMO}/resnet50/fp32", f"{DEMO}/resnet50/amp-bf16"
    found = kept(base, candidate)
    assert found is not None
    run = view(candidate)
    assert not found.step.estimated
    assert round(found.step.ns) == step_totals(run, run.selection()).average_ns
    assert found.step.ns == pytest.approx(found.step.recorded_ns, rel=0.02)
    assert found.forecast.predicted_ns == forecast(view(base), "bf16").predicted_ns
    assert found.outcome == "within"
    assert abs(found.error_percent) < 10


def test_kernels_are_those_that_the_candidate_launched() -> None:
    found = kept(f"{DEMO}/custom/fp32", f"{DEMO}/custom/amp-fp16")
    assert found is not None
    run = view(f"{DEMO}/custom/amp-fp16")
    launches = run.profile.launches.duration_ns[run.selected_launches(run.selection())]
    assert found.kernel_ns == pytest.approx(launches.sum() / run.selection().count)
    ops = sum(op.measured_ns or 0 for op in found.ops)
    # What is left belongs to what FP32 does not have: casts and GradScaler.
    assert ops + found.cast_ns + found.scaler_ns == pytest.approx(found.kernel_ns, rel=0.02)
    assert all(op.measured_ns is not None for op in found.ops)


def test_where_the_cpu_sets_the_pace_the_recorders_part_is_taken_out() -> None:
    # The unprofiled steps are those of the recording.json files.
    for run, unprofiled_ms in (
        (f"{DEMO}/custom/amp-fp16", 15.61),
        (f"{PAIRS}/torchvision/resnet18-b8/amp-bf16", 7.09),
        (f"{PAIRS}/transformers/distilbert/amp-bf16", 9.91),
    ):
        recorded = view(run)
        step = step_estimate(recorded, recorded.selection())
        assert step.estimated
        assert step.low_ns <= step.ns <= step.high_ns
        assert step.low_ns / 1e6 <= unprofiled_ms <= step.high_ns / 1e6
        assert step.ns / 1e6 == pytest.approx(unprofiled_ms, rel=0.3)
        assert step.recorded_ns / 1e6 > 1.2 * unprofiled_ms


def test_steps_timed_without_the_profiler_are_the_truth() -> None:
    (stored,) = tb_dlprof_plugin.read_profiles(ROOT / DEMO / "custom/amp-fp16")
    run = ProfileView(stored.profile)
    run.profile.facts.unprofiled_step_ns = 15_610_000
    step = step_estimate(run, run.selection())
    assert (step.ns, step.source) == (15_610_000, "measured")
    assert 0.97 * step.ns < step.low_ns < step.ns < step.high_ns < 1.03 * step.ns


def test_a_run_without_a_gpu_keeps_its_recorded_step(cpu_view: ProfileView) -> None:
    step = step_estimate(cpu_view, cpu_view.selection())
    assert (step.ns, step.source) == (100_000, "recorded")


def test_another_model_is_no_run_that_was_forecast() -> None:
    with pytest.raises(NotComparableError, match="differ in more than the precision"):
        kept(f"{DEMO}/resnet50/fp32", f"{DEMO}/vgg16/tf32")


def test_another_batch_size_is_part_of_the_forecast() -> None:
    base, candidate = f"{PAIRS}/torchvision/resnet18-b32/fp32", f"{PAIRS}/torchvision/resnet18/amp-bf16"
    found = kept(base, candidate)
    assert found is not None
    assert found.forecast.predicted_ns == forecast(view(base), "bf16", batch_size=128).predicted_ns


def test_without_shapes_the_reason_is_given(training: Any) -> None:
    a, b = training("fp32").view(), training("tf32").view()
    a.profile.ops.shapes[:] = 0
    with pytest.raises(ForecastError, match="shapes"):
        check_forecast(compare(a, b), a, b, b.selection())
