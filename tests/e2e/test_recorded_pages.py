"""Pages over recorded runs show what Python computes, and lead from a figure to what it is made of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from e2e.conftest import FROM_TRACES, TRACES
from playwright.sync_api import Page, expect
from support.recorded_runs import demo_run
from support.tensorboard import OF_TENSORBOARD, PAGE_MS, Server, Watched, figure, holding

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.pages.advice import advice_page
from tb_dlprof_plugin.pages.compare import compare_op, compare_page
from tb_dlprof_plugin.pages.memory import memory_page
from tb_dlprof_plugin.pages.modules import modules_page
from tb_dlprof_plugin.pages.overview import overview
from tb_dlprof_plugin.pages.sentences import text_of
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

FP32, AMP, OTHER = "vgg16/fp32", "vgg16/amp-fp16", "lenet/fp32"


@pytest.fixture(scope="module")
def server(shared: Callable[[str, str], Server], load_fast: str) -> Server:
    return shared("few", load_fast)


@OF_TENSORBOARD
def test_overview_in_tensorboard_shows_the_figures_and_follows_the_theme(server: Server, watched: Watched) -> None:
    run = demo_run(FP32)
    expected = overview(run.view, run.ref, run.selection).summary
    frame = watched.open_in_tensorboard(server, "overview", run=FP32)
    assert figure(frame, "overview-step-time") == expected.average_iteration_ns
    assert figure(frame, "overview-gpu-utilization") == pytest.approx(expected.gpu_utilization_percent, rel=1e-9)
    assert figure(frame, "overview-tc-utilization") == expected.tensor_core_kernel_utilization_percent == 0

    background = "element => getComputedStyle(element).backgroundColor"
    light = frame.locator("body").evaluate(background)
    watched.page.evaluate("document.body.classList.add('dark-mode')")
    expect(frame.locator("body")).not_to_have_css("background-color", light)
    watched.nothing_went_wrong()


_AT_SHARE = """(ring, share) => {
    ring.scrollIntoView({ block: "center" });
    const { left, top, width, height } = ring.getBoundingClientRect();
    const angle = 2 * Math.PI * share, radius = 0.81 * width / 2;
    const x = left + width / 2 + radius * Math.sin(angle), y = top + height / 2 - radius * Math.cos(angle);
    return document.elementFromPoint(x, y).closest("[data-tip]")?.dataset.tip ?? "nothing";
}"""
"""What a ring shows at a share of its way around, clockwise from the top."""


@pytest.mark.long
def test_a_ring_shows_each_part_in_its_place(server: Server, watched: Watched) -> None:
    run = demo_run(AMP)
    expected = [slice_ for slice_ in overview(run.view, run.ref, run.selection).resource_usage if slice_.value_ns]
    frame = watched.open(server, "overview", run=AMP)
    frame.get_by_test_id("overview-more").locator("> summary").click()
    ring = frame.get_by_role("img", name="Resource usage:")
    ring.scroll_into_view_if_needed()
    whole, before = sum(slice_.value_ns or 0 for slice_ in expected), 0
    large = []
    for slice_ in expected:
        value = slice_.value_ns or 0
        if value > 0.02 * whole:
            large.append(slice_.label)
            for part in (0.2, 0.5, 0.8):
                assert ring.evaluate(_AT_SHARE, (before + part * value) / whole).startswith(f"{slice_.label}: ")
        before += value
    assert len(large) > 1
    watched.nothing_went_wrong()


def test_a_module_leads_to_its_ops(server: Server, watched: Watched) -> None:
    run = demo_run(FP32)
    rows = modules_page(run.view, run.ref, run.selection).rows
    expected = next(row for row in rows if row.path == "features.0")
    frame = watched.open(server, "modules", run=FP32)
    # Only as wide as its time: a leaf is reached through the module that holds it.
    frame.get_by_role("treeitem", name="features,").click()
    frame.get_by_role("treeitem", name="0,", exact=False).nth(0).click()
    detail = frame.get_by_test_id("module-detail")
    expect(detail).to_contain_text("features.0")
    assert expected.gpu_ns is not None
    per_step = round(expected.gpu_ns / run.selection.count)
    expect(detail.locator(f"[title='{per_step:,} ns']").first).to_be_visible()
    expect(watched.page).to_have_url(holding("p.tb_dlprof.module=features.0"))
    detail.get_by_test_id("module-ops").click()
    expect(frame.get_by_test_id("page-filter")).to_contain_text("features.0")
    expect(frame.get_by_test_id("ops-table").locator("tbody tr")).to_have_count(expected.ops)
    watched.nothing_went_wrong()


@pytest.mark.long
def test_the_tensor_core_page_holds_the_roofline_and_leads_to_it(server: Server, watched: Watched) -> None:
    frame = watched.open(server, "tensor_cores", run=AMP)
    card = frame.get_by_test_id("tc-roofline")
    expect(card.locator(".chart > svg")).to_be_visible()
    card.get_by_role("button", name="All rates").click()
    expect(frame.get_by_test_id("roofline-table")).to_be_visible()
    watched.nothing_went_wrong()


def test_the_memory_page_shows_what_its_view_holds(server: Server, watched: Watched) -> None:
    view = ProfileView(analyze_trace(TRACES / f"{FROM_TRACES['memory']}.pt.trace.json.gz"))
    expected = memory_page(view, RunRef("memory", "", 0, 0), view.selection())
    assert expected.figures is not None
    frame = watched.open(server, "memory", run="memory")
    expect(frame.get_by_test_id("headline")).to_have_text(expected.headline)
    assert figure(frame, "memory-peak") == expected.figures.peak_allocated_bytes
    expect(frame.get_by_test_id("memory-curve").locator(".chart > svg")).to_be_visible(timeout=PAGE_MS)
    words = frame.get_by_test_id("memory-peak-words")
    expect(words).to_have_text(text_of(expected.peak_parts))
    assert [part.text for part in expected.peak_parts if part.kind] == words.get_by_role("button").all_inner_texts()
    # The exact bytes of a moment stand in the tooltip.
    frame.get_by_test_id("memory-curve").locator(".chart > svg").hover()
    expect(frame.get_by_test_id("memory-curve")).to_contain_text("Allocated")
    expect(frame.get_by_test_id("memory-curve")).to_contain_text(" bytes")
    watched.nothing_went_wrong()


# ---- Advice, and the outcome of its savings


def test_advice_has_findings_by_saving_whose_evidence_leads_to_its_op_by_keyboard(
    server: Server, watched: Watched
) -> None:
    run = demo_run(FP32)
    expected = advice_page(run.view, run.ref, run.selection)
    frame = watched.open(server, "advice", run=FP32)
    expect(frame.get_by_test_id("headline")).to_have_text(expected.headline)
    shown = frame.locator("article.finding").evaluate_all("cards => cards.map(card => card.dataset.testid)")
    assert shown == [f"finding-{finding.rule}" for finding in expected.findings]
    assert expected.combined is not None
    assert figure(frame, "together-saving") == expected.combined.expected_ns
    expect(frame.get_by_test_id("together-saving")).to_contain_text(expected.combined_text)
    for finding in expected.findings:
        if finding.saving is not None:
            price = frame.get_by_test_id(f"finding-{finding.rule}").locator("strong.price-amount")
            expect(price).to_have_attribute("title", f"{finding.saving.expected_ns:,} ns")
    for choice in expected.mixed_precision.choices:
        assert choice.forecast is not None
        assert figure(frame, f"forecast-{choice.precision}") == choice.forecast.speedup

    of_op = next(one for one in expected.findings if one.saving and one.evidence and one.evidence[0].page == "ops")
    card = frame.get_by_test_id(f"finding-{of_op.rule}")
    details = card.get_by_test_id("finding-details")
    if details.get_attribute("aria-expanded") == "false":
        details.focus()
        watched.page.keyboard.press("Enter")
    expect(details).to_have_attribute("aria-expanded", "true")
    expect(card).to_contain_text(of_op.saving.derivation if of_op.saving else "")
    link = card.locator(".evidence").get_by_role("button").first
    expect(link).to_have_text(of_op.evidence[0].label)
    link.focus()
    watched.page.keyboard.press("Enter")
    expect(frame.get_by_test_id("op-detail")).to_be_visible(timeout=PAGE_MS)
    assert f"p.tb_dlprof.op={of_op.evidence[0].id}" in watched.page.url
    watched.nothing_went_wrong()


@pytest.mark.long
def test_a_finding_leads_to_the_outcome_of_its_saving(server: Server, watched: Watched) -> None:
    frame = watched.open(server, "advice", run=FP32)
    card = frame.get_by_test_id("finding-amp_not_used")
    details = card.get_by_test_id("finding-details")
    if details.get_attribute("aria-expanded") == "false":
        details.click()
    card.get_by_test_id("other-runs").get_by_role("button", name=AMP).click()
    expect(frame.get_by_test_id("promised-amp_not_used")).to_contain_text("Predicted: ", timeout=PAGE_MS)
    watched.nothing_went_wrong()


def test_predictions_are_compared_with_the_second_run(server: Server, watched: Watched) -> None:
    bf16 = "vgg16/amp-bf16"
    found = compare_page(demo_run(FP32), demo_run(bf16)).promises
    assert found is not None
    assert found.forecast is not None
    frame = watched.open(server, "compare", **{"a.run": FP32, "b.run": bf16})
    expect(frame.get_by_test_id("promised-headline")).to_have_text(found.forecast.headline, timeout=PAGE_MS)
    expect(frame.get_by_test_id("promised-outcome")).to_have_text("within the interval")
    expect(frame.get_by_test_id("promised-amp_not_used")).to_contain_text(found.savings[0].text)

    # WHEN the op that the forecast missed by most is followed THEN its kernels before and after are shown
    frame.get_by_text("Each op: forecast and measured, what was missed by most first").click()
    worst = max(found.forecast.ops, key=lambda op: abs(op.error_ms or 0))
    row = frame.get_by_test_id("promised-ops").locator("tbody tr").first
    expect(row).to_contain_text(worst.name)
    row.get_by_role("button").click()
    expect(frame.get_by_test_id("kernels-after")).to_be_visible(timeout=PAGE_MS)
    expect(frame.get_by_test_id("compare-op")).to_contain_text(worst.op_type)
    watched.nothing_went_wrong()


# ---- Compare


def _number(frame: Page, test_id: str) -> int:
    return int(figure(frame, test_id))


def test_from_the_waterfall_to_an_ops_kernels_and_back_by_the_address(server: Server, watched: Watched) -> None:
    # GIVEN the Compare page, WHEN the two runs are picked
    base_run, other_run = demo_run(FP32), demo_run(AMP)
    expected = compare_page(base_run, other_run)
    frame = watched.open(server, "compare")
    frame.get_by_test_id("compare-base-run-picker").select_option(FP32)
    frame.get_by_test_id("compare-candidate-run-picker").select_option(AMP)
    speedup = frame.get_by_test_id("compare-speedup")
    expect(speedup).to_have_attribute("data-value", str(expected.speedup), timeout=PAGE_MS)

    # THEN the waterfall adds up
    base, candidate = _number(frame, "waterfall-base"), _number(frame, "waterfall-candidate")
    assert base == round(expected.base_ms * 1e6)
    assert candidate == round(expected.candidate_ms * 1e6)
    shown = [bucket for bucket in expected.buckets if bucket.base_ns or bucket.candidate_ns]
    bars = {bucket.key: _number(frame, f"bucket-{bucket.key}") for bucket in shown}
    assert bars == {bucket.key: bucket.difference_ns for bucket in shown}
    assert base + sum(bars.values()) == candidate

    # WHEN one drills from a bar to a module, to an op
    frame.get_by_test_id("bucket-tensor_core").click()
    module = max(expected.modules, key=lambda row: abs(row.b_buckets.get("tensor_core", 0)))
    first = frame.get_by_test_id("drill-modules").locator("tbody tr").first
    expect(first).to_contain_text(module.module)
    first.get_by_role("button").click()
    op = max(
        (op for op in expected.ops if op.module == module.module), key=lambda op: op.b_buckets.get("tensor_core", 0)
    )
    row = frame.get_by_test_id("drill-ops").locator("tbody tr").first
    expect(row).to_contain_text(op.op_type)
    expect(row).to_contain_text(op.direction)
    row.get_by_role("button").click()

    # THEN its kernels before and after are shown
    detail = compare_op(base_run, other_run, op.id)
    before, after = frame.get_by_test_id("kernels-before"), frame.get_by_test_id("kernels-after")
    expect(before).to_contain_text(detail.a_kernels[0].short_name, timeout=PAGE_MS)
    expect(after).to_contain_text(detail.b_kernels[0].short_name)
    expect(after.locator("tbody tr")).to_have_count(len(detail.b_kernels))

    # WHEN the address is opened elsewhere THEN it is the same page
    address = watched.page.url
    texts = [frame.get_by_test_id(name).inner_text() for name in ("waterfall", "compare-drill", "headline")]
    watched.page.goto("about:blank")
    watched.page.goto(address)
    expect(frame.get_by_test_id("kernels-after")).to_be_visible(timeout=PAGE_MS)
    expect(frame.get_by_test_id("bucket-tensor_core")).to_have_attribute("aria-pressed", "true")
    assert [frame.get_by_test_id(name).inner_text() for name in ("waterfall", "compare-drill", "headline")] == texts

    # AND the way back leads to the op's module and to the bar
    crumbs = frame.get_by_test_id("compare-crumbs")
    crumbs.get_by_role("button", name=module.module).click()
    expect(frame.get_by_test_id("drill-ops")).to_be_visible()
    crumbs.get_by_role("button", name="Tensor Core kernels").click()
    expect(frame.get_by_test_id("drill-modules")).to_be_visible()
    watched.nothing_went_wrong()


@pytest.mark.long
def test_another_candidate_leaves_the_bar_and_forgets_the_op(server: Server, watched: Watched) -> None:
    state = {"a.run": FP32, "b.run": AMP, "bucket": "other_compute", "pairModule": "features.0"}
    frame = watched.open(server, "compare", **state)
    expect(frame.get_by_test_id("drill-ops")).to_be_visible(timeout=PAGE_MS)
    frame.get_by_test_id("compare-candidate-run-picker").select_option(OTHER)
    expect(frame.get_by_test_id("drill-modules")).to_be_visible(timeout=PAGE_MS)
    expect(frame.get_by_test_id("drill-modules")).to_contain_text("removed")
    expect(frame.get_by_test_id("bucket-other_compute")).to_have_attribute("aria-pressed", "true")
    watched.nothing_went_wrong()
