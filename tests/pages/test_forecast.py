"""The forecast's page: the numbers of the forecast in ms, a headline, refusals side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.pages.forecast import ForecastPage, forecast_page, mixed_precision
from tb_dlprof_plugin.planning import ForecastError, forecast
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
A100 = "NVIDIA A100-SXM4-80GB"


def recorded(name: str) -> ProfileView:
    return recorded_view(RECORDED / name)


@pytest.fixture(scope="module")
def lenet() -> ProfileView:
    return recorded("lenet/fp32")


@pytest.fixture(scope="module")
def vgg() -> ProfileView:
    return recorded("vgg16/fp32")


def json_of(page: ForecastPage) -> dict[str, Any]:
    answer: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(page))
    return answer


def test_the_times_are_the_forecasts_in_ms(lenet: ProfileView, ref: RunRef) -> None:
    found, page = forecast(lenet, "fp16"), json_of(forecast_page(lenet, ref, "fp16"))
    assert {name: page[name] for name in ("measured_step_ms", "predicted_step_ms", "low_ms", "high_ms")} == {
        "measured_step_ms": round(found.measured_ns / 1e6, 4),
        "predicted_step_ms": round(found.predicted_ns / 1e6, 4),
        "low_ms": round(found.low_ns / 1e6, 4),
        "high_ms": round(found.high_ns / 1e6, 4),
    }
    assert page["low_ms"] < page["predicted_step_ms"] < page["high_ms"]
    assert page["unprofiled_step_ms"] < page["measured_step_ms"]
    assert (page["limited_by"], page["precision"], page["gpu"]) == ("cpu", "fp16", "NVIDIA H200")
    assert (page["model"], page["batch_size"], page["casts"]) == ("LeNet5", 512, 23)
    assert page["ref"] == {"run": "run", "session": "trace", "rank": 0, "cycle": 0}


def test_the_speedup_is_against_the_step_without_the_profiler(lenet: ProfileView, ref: RunRef) -> None:
    page = forecast_page(lenet, ref, "fp16")
    found = forecast(lenet, "fp16")
    assert page.speedup == pytest.approx(page.unprofiled_step_ms / page.predicted_step_ms, abs=1e-3)
    assert (page.speedup_low, page.speedup_high) == pytest.approx(found.speedup_interval, abs=1e-3)
    # A timed FP16 step of 3.96 ms after one of 2.66 in FP32.
    assert page.speedup_low < 0.71 < page.speedup < page.speedup_high < 1


def test_the_headline_says_what_changes_by_how_much_and_why(lenet: ProfileView, vgg: ProfileView, ref: RunRef) -> None:
    slower, faster, same = (
        forecast_page(view, ref, precision) for view, precision in ((lenet, "fp16"), (vgg, "bf16"), (lenet, "tf32"))
    )
    assert slower.headline.startswith(f"FP16 would make the step {100 * (1 / slower.speedup - 1):.0f} % longer: ")
    assert slower.headline.endswith("the CPU sets the pace: it launches kernels more slowly than the GPU runs them.")
    assert faster.headline.startswith(f"BF16 would make the step {faster.speedup:.2f} times as fast: ")
    assert faster.headline.endswith(f"{faster.unprofiled_step_ms:.2f} ms now; the GPU's kernels set the pace.")
    assert f"{faster.predicted_step_ms:.2f} ms a step ({faster.low_ms:.2f} to {faster.high_ms:.2f})" in faster.headline
    assert same.headline.startswith("TF32 would change little: ")


def test_ops_have_their_name_time_and_what_they_would_run_in(vgg: ProfileView, ref: RunRef) -> None:
    page = forecast_page(vgg, ref, "bf16")
    assert page.total_rows == len(page.ops) > 50
    assert {op.id for op in page.ops} <= set(vgg.groups.ids)
    assert len({op.id for op in page.ops}) == len(page.ops)
    first = page.ops[0]
    assert (first.op_type, first.precision) == ("conv2d", "bf16")
    assert first.name == f"{first.module}/conv2d"
    assert first.predicted_ms < 0.6 * first.measured_ms
    assert {op.direction for op in page.ops} >= {"forward", "backward"}
    kept = [op for op in page.ops if not op.precision]
    assert any(op.op_type.startswith("_foreach") for op in kept)
    assert all(op.measured_ms == op.predicted_ms for op in kept)
    whole = sum(op.predicted_ms + op.casts_ms for op in page.ops) + page.scaler_ms
    # Some convolutions run on several streams side by side.
    assert 0.9 * whole < page.gpu_ms < 1.005 * whole


def test_only_fp16_has_a_scaler_and_tf32_no_casts(vgg: ProfileView, ref: RunRef) -> None:
    pages = {precision: forecast_page(vgg, ref, precision) for precision in ("tf32", "fp16", "bf16")}
    assert {name: page.scaler_ms > 0 for name, page in pages.items()} == {"tf32": False, "fp16": True, "bf16": False}
    assert {name: page.casts > 0 for name, page in pages.items()} == {"tf32": False, "fp16": True, "bf16": True}
    assert pages["tf32"].casts_ms == 0


def test_what_is_asked_stands_on_the_page(lenet: ProfileView, ref: RunRef) -> None:
    page = forecast_page(lenet, ref, "fp32", batch_size=1024, gpu=A100)
    assert (page.precision, page.batch_size, page.gpu) == ("fp32", 1024, A100)
    assert page.gpu_ms > 2 * page.gpu_before_ms


def test_a_run_without_a_batch_size_says_none(training: Callable[..., Any], ref: RunRef) -> None:
    page = forecast_page(training("fp32").view(), ref, "bf16")
    assert (page.batch_size, json_of(page)["batch_size"]) == (None, None)


def test_a_refusal_is_the_forecasts(cpu_view: ProfileView, ref: RunRef) -> None:
    with pytest.raises(ForecastError, match="recorded no GPU work"):
        forecast_page(cpu_view, ref, "bf16")
    with pytest.raises(ForecastError, match="there is no precision 'fp8'"):
        forecast_page(cpu_view, ref, "fp8")


def test_mixed_precisions_stand_side_by_side(vgg: ProfileView, ref: RunRef) -> None:
    side_by_side = mixed_precision(vgg, ref)
    assert [choice.precision for choice in side_by_side.choices] == ["tf32", "fp16", "bf16"]
    assert side_by_side.iterations == 10
    for choice in side_by_side.choices:
        assert choice.refusal == ""
        assert choice.forecast is not None
        whole = forecast_page(vgg, ref, choice.precision)
        assert choice.forecast == msgspec.structs.replace(whole, ops=[])


def test_each_mixed_precision_that_is_refused_says_why(ref: RunRef, training: Callable[..., Any]) -> None:
    trace = training("fp32")
    trace.rest["deviceProperties"][0].update(name="Tesla V100-SXM2-16GB", computeMajor=7, computeMinor=0)
    refusals = {choice.precision: choice.refusal for choice in mixed_precision(trace.view(), ref).choices}
    assert refusals == {
        "tf32": "the Tesla V100-SXM2-16GB has no Tensor Cores for TF32.",
        "fp16": "",
        "bf16": "the Tesla V100-SXM2-16GB has no Tensor Cores for BF16.",
    }
