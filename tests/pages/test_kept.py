"""Predictions on the Compare page and in ``tb-dlprof compare``: the engine's numbers, in sentences that fit them."""

from __future__ import annotations

import msgspec
import pytest
from support.recorded_runs import demo_run

from tb_dlprof_plugin.pages.advice import advice_page
from tb_dlprof_plugin.pages.compare import compare_page
from tb_dlprof_plugin.pages.forecast import forecast_page
from tb_dlprof_plugin.pages.realised_savings import PredictionCheck
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef


def check_of(base: str, candidate: str) -> PredictionCheck | None:
    return compare_page(demo_run(base), demo_run(candidate)).promises


def test_advice_forecast_and_promise_say_the_same() -> None:
    base = demo_run("custom/fp32")
    forecast = forecast_page(base.view, base.ref, "tf32")
    advice = advice_page(base.view, base.ref, base.selection)
    found = check_of("custom/fp32", "custom/tf32")
    assert found is not None
    assert found.forecast is not None
    panel = found.forecast
    step = (forecast.unprofiled_step_ms, forecast.predicted_step_ms, forecast.low_ms, forecast.high_ms)
    assert (panel.base_ms, panel.predicted_ms, panel.low_ms, panel.high_ms) == step
    choice = next(choice for choice in advice.mixed_precision.choices if choice.precision == "tf32")
    assert choice.forecast == msgspec.structs.replace(forecast, ops=[])
    assert {(op.id, op.predicted_ms) for op in panel.ops} == {(op.id, op.predicted_ms) for op in forecast.ops}
    assert panel.total_rows == len(panel.ops)
    errors = [abs(op.error_ms or 0) for op in panel.ops]
    assert errors == sorted(errors, reverse=True)
    (saving,) = found.savings
    stated = next(finding.saving for finding in advice.findings if finding.rule == "tf32_off")
    assert stated is not None
    assert (saving.low_ns, saving.expected_ns, saving.high_ns) == (stated.low_ns, stated.expected_ns, stated.high_ns)
    assert saving.expected_ns / 1e6 == pytest.approx(step[0] - step[1], abs=0.001)


def test_where_the_cpu_sets_the_pace_the_overhead_in_the_recorded_step_is_named() -> None:
    found = check_of("custom/fp32", "custom/amp-fp16")
    assert found is not None
    assert found.forecast is not None
    panel = found.forecast
    assert panel.estimated
    assert "includes the profiler's overhead" in panel.note
    assert panel.step_low_ms <= panel.step_ms <= panel.step_high_ms <= panel.recorded_ms
    assert "without the profiler, as estimated" in panel.headline
    assert [part.key for part in panel.parts] == ["kernels", "casts", "scaler"]


def test_a_saving_stated_for_another_half_precision_says_so() -> None:
    for precision, said in (("amp-fp16", True), ("amp-bf16", False)):
        found = check_of("custom/fp32", f"custom/{precision}")
        assert found is not None
        assert ("It was predicted for BF16." in found.savings[0].text) is said


def test_there_is_no_section_where_nothing_was_predicted() -> None:
    assert check_of("lenet/amp-fp16", "lenet/amp-bf16") is None
    assert check_of("vgg16/fp32", "vgg16/fp32") is None


def test_why_there_is_no_forecast_to_hold_is_said() -> None:
    found = check_of("vgg16/fp32", "alexnet/tf32")
    assert found is not None
    assert found.forecast is None
    assert "differ in more than the precision" in found.refusal


def test_runs_that_no_forecast_starts_from_say_why_on_the_advice_page(cpu_view: ProfileView, ref: RunRef) -> None:
    amp = demo_run("lenet/amp-bf16")
    for view, why in ((cpu_view, "no GPU work"), (amp.view, "a forecast starts from FP32 or TF32")):
        choices = advice_page(view, ref, view.selection()).mixed_precision.choices
        assert [choice.precision for choice in choices] == ["tf32", "fp16", "bf16"]
        assert all(choice.forecast is None and why in choice.refusal for choice in choices)
