"""The forecast on the Advice page, and on Compare its outcome: the pages show what Python computes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from support.recorded_runs import recorded_view
from support.tensorboard import RECORDED, Server, Watched

from tb_dlprof_plugin.pages.advice import advice_page
from tb_dlprof_plugin.pages.compare import compare_page
from tb_dlprof_plugin.pages.compare_metrics import CompareInput
from tb_dlprof_plugin.pages.forecast import forecast_page
from tb_dlprof_plugin.store.run_ref import RunRef

_PAGE_MS = 30_000


@pytest.fixture(scope="module")
def server(shared: Callable[[str, str], Server], load_fast: str) -> Server:
    return shared("few", load_fast)


def side(run: str) -> CompareInput:
    frame = recorded_view(RECORDED / run)
    return CompareInput(frame, RunRef(run, "", 0, 0), frame.selection())


def tab(server: Server, watched: Watched, **state: str) -> Page:
    pairs = "".join(f"&p.tb_dlprof.{key}={value}" for key, value in state.items())
    watched.page.goto(f"{server.page_alone}#tb_dlprof{pairs}")
    expect(watched.page.get_by_test_id("headline")).to_be_visible(timeout=_PAGE_MS)
    return watched.page


def test_what_mixed_precision_would_gain(server: Server, watched: Watched) -> None:
    # GIVEN the advice for an FP32 run THEN all of mixed precision is forecast, the best in detail
    run = side("vgg16/fp32")
    expected = advice_page(run.view, run.ref, run.selection).mixed_precision.choices
    frame = tab(server, watched, page="advice", run="vgg16/fp32")
    for choice in expected:
        assert choice.forecast is not None
        expect(frame.get_by_test_id(f"forecast-{choice.precision}")).to_have_attribute(
            "data-value", str(choice.forecast.speedup)
        )
    best = max(expected, key=lambda choice: choice.forecast.speedup if choice.forecast else 0)
    expect(frame.get_by_test_id(f"forecast-{best.precision}")).to_have_attribute("aria-pressed", "true")

    # WHEN another is picked THEN its sentence, its code and its ops are there, and the address names it
    frame.get_by_test_id("forecast-bf16").click()
    page = forecast_page(run.view, run.ref, "bf16")
    expect(frame.get_by_test_id("forecast-headline")).to_have_text(page.headline)
    expect(frame.get_by_test_id("forecast-chosen")).to_contain_text("torch.bfloat16")
    first = min(page.ops, key=lambda op: op.predicted_ms + op.casts_ms - op.measured_ms)
    row = frame.get_by_test_id("forecast-ops").locator("tbody tr").first
    expect(row).to_contain_text(first.name, timeout=_PAGE_MS)
    assert "p.tb_dlprof.precision=bf16" in watched.page.url

    # WHEN an op is followed THEN the Ops page shows it
    row.get_by_role("button").click()
    expect(frame.get_by_test_id("ops-table")).to_be_visible(timeout=_PAGE_MS)
    assert f"p.tb_dlprof.op={first.id}" in watched.page.url
    assert watched.errors == []
    assert watched.foreign == []


def test_a_step_that_would_get_longer_is_said_to(server: Server, watched: Watched) -> None:
    frame = tab(server, watched, page="advice", run="lenet/fp32", precision="fp16")
    expect(frame.get_by_test_id("forecast-headline")).to_contain_text("% longer")
    expect(frame.get_by_test_id("finding-amp_not_used")).to_have_count(0)
    frame.get_by_test_id("silent-rules").locator("summary").click()
    expect(frame.get_by_test_id("rule-amp_not_used")).to_contain_text("the CPU sets the pace")
    assert watched.errors == []


def test_a_run_in_amp_says_why_it_has_no_forecast(server: Server, watched: Watched) -> None:
    frame = tab(server, watched, page="advice", run="lenet/amp-fp16")
    expect(frame.get_by_test_id("forecast-refusal")).to_contain_text("a forecast starts from FP32 or TF32")
    assert watched.errors == []


def test_promises_are_held_against_the_second_run(server: Server, watched: Watched) -> None:
    found = compare_page(side("vgg16/fp32"), side("vgg16/amp-bf16")).promises
    assert found is not None
    assert found.forecast is not None
    frame = tab(server, watched, page="compare", **{"a.run": "vgg16/fp32", "b.run": "vgg16/amp-bf16"})
    expect(frame.get_by_test_id("promised-headline")).to_have_text(found.forecast.headline, timeout=_PAGE_MS)
    expect(frame.get_by_test_id("promised-outcome")).to_have_text("within the interval")
    expect(frame.get_by_test_id("promised-amp_not_used")).to_contain_text(found.savings[0].text)

    # WHEN the op that the forecast missed by most is followed THEN its kernels before and after are shown
    frame.get_by_text("Each op: forecast and measured, what was missed by most first").click()
    worst = max(found.forecast.ops, key=lambda op: abs(op.error_ms or 0))
    row = frame.get_by_test_id("promised-ops").locator("tbody tr").first
    expect(row).to_contain_text(worst.name)
    row.get_by_role("button").click()
    expect(frame.get_by_test_id("kernels-after")).to_be_visible(timeout=_PAGE_MS)
    expect(frame.get_by_test_id("compare-op")).to_contain_text(worst.op_type)
    assert watched.errors == []


def test_the_profilers_overhead_is_named_where_the_cpu_sets_the_pace(server: Server, watched: Watched) -> None:
    frame = tab(server, watched, page="compare", **{"a.run": "lenet/fp32", "b.run": "lenet/amp-fp16"})
    expect(frame.get_by_test_id("promised-note")).to_contain_text("includes the profiler's overhead", timeout=_PAGE_MS)
    expect(frame.get_by_test_id("promised-kernels")).to_be_visible()
    expect(frame.get_by_test_id("promised-scaler")).to_be_visible()
    assert watched.errors == []
