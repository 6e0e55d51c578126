"""The recorded VGG-16 pair, FP32 and AMP FP16 on an H200: the page in TensorBoard shows what Python computes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import FrameLocator, Page, expect
from support.marks import long, short_of
from support.recorded_runs import recorded_view
from support.tensorboard import RECORDED, Server, Watched, holding

from tb_dlprof_plugin.pages.advice import AdvicePage, advice_page
from tb_dlprof_plugin.pages.compare import compare_page
from tb_dlprof_plugin.pages.compare_metrics import CompareInput
from tb_dlprof_plugin.pages.modules import modules_page
from tb_dlprof_plugin.pages.overview import Overview, overview
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

FP32, AMP = "vgg16/fp32", "vgg16/amp-fp16"
_PAGE_MS = 30_000


@pytest.fixture(scope="module")
def server(shared: Callable[[str, str], Server], load_fast: str) -> Server:
    return shared("few", load_fast)


def analysed(run: str) -> ProfileView:
    """The run's profile as Python reads it, without TensorBoard."""
    return recorded_view(RECORDED / run)


def overview_of(run: str) -> Overview:
    """What the Overview of the run must show."""
    frame = analysed(run)
    return overview(frame, RunRef(run, "", 0, 0), frame.selection())


def advice_of(run: str) -> AdvicePage:
    """What the Advice page of the run must show."""
    frame = analysed(run)
    return advice_page(frame, RunRef(run, "", 0, 0), frame.selection())


def open_page(server: Server, watched: Watched, page: str, **state: str) -> Page:
    """Opens a deep link to the page alone."""
    watched.page.goto(f"{server.page_alone}{_address(page, state)}")
    expect(watched.page.get_by_test_id("headline")).to_be_visible(timeout=_PAGE_MS)
    return watched.page


def open_tab(server: Server, watched: Watched, page: str, **state: str) -> FrameLocator:
    """Opens a deep link into TensorBoard's tab and returns the plugin's frame."""
    watched.page.goto(f"{server.url}{_address(page, state)}")
    frame = watched.page.frame_locator("iframe")
    expect(frame.get_by_test_id("headline")).to_be_visible(timeout=_PAGE_MS)
    return frame


def _address(page: str, state: dict[str, str]) -> str:
    return "#tb_dlprof" + "".join(f"&p.tb_dlprof.{key}={value}" for key, value in {"page": page, **state}.items())


def raw_value(frame: FrameLocator | Page, test_id: str) -> float:
    """The exact number behind a figure on the page."""
    text = frame.get_by_test_id(test_id).get_attribute("data-value")
    assert text is not None, f"{test_id} shows no number"
    return float(text)


def nothing_went_wrong(watched: Watched) -> None:
    """No console error, and no request left this machine."""
    assert watched.errors == []
    assert watched.foreign == []


@pytest.mark.parametrize("run", [FP32, long(AMP)])
def test_overview_shows_what_the_analysis_gives(server: Server, watched: Watched, run: str) -> None:
    expected = overview_of(run).summary
    frame = open_tab(server, watched, "overview", run=run)
    assert raw_value(frame, "overview-step-time") == expected.average_iteration_ns
    assert raw_value(frame, "overview-gpu-utilization") == pytest.approx(expected.gpu_utilization_percent, rel=1e-9)
    assert raw_value(frame, "overview-tc-utilization") == pytest.approx(
        expected.tensor_core_kernel_utilization_percent, rel=1e-9
    )
    nothing_went_wrong(watched)


_AT_SHARE = """(ring, share) => {
    ring.scrollIntoView({ block: "center" });
    const { left, top, width, height } = ring.getBoundingClientRect();
    const angle = 2 * Math.PI * share, radius = 0.81 * width / 2;
    const x = left + width / 2 + radius * Math.sin(angle), y = top + height / 2 - radius * Math.cos(angle);
    return document.elementFromPoint(x, y).closest("[data-tip]")?.dataset.tip ?? "nothing";
}"""
"""What a ring shows at a share of its way around, clockwise from the top."""


def test_a_ring_shows_each_part_in_its_place(server: Server, watched: Watched) -> None:
    expected = [slice_ for slice_ in overview_of(AMP).resource_usage if slice_.value_ns]
    frame = open_page(server, watched, "overview", run=AMP)
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
    nothing_went_wrong(watched)


def test_tensor_cores_are_idle_in_fp32_and_work_under_amp() -> None:
    assert overview_of(FP32).summary.tensor_core_kernel_utilization_percent == 0
    amp = overview_of(AMP).summary.tensor_core_kernel_utilization_percent
    assert amp is not None
    assert amp > 40


def test_a_picked_range_of_iterations_changes_the_numbers(server: Server, watched: Watched) -> None:
    frame_of_run = analysed(FP32)
    expected = overview(frame_of_run, RunRef(FP32, "", 0, 0), frame_of_run.selection(2, 4)).summary
    frame = open_page(server, watched, "overview", run=FP32, first="2", last="4")
    assert raw_value(frame, "overview-step-time") == expected.average_iteration_ns
    nothing_went_wrong(watched)


@pytest.mark.long
def test_compare_shows_the_speedup(server: Server, watched: Watched) -> None:
    a, b = analysed(FP32), analysed(AMP)
    expected = compare_page(
        CompareInput(a, RunRef(FP32, "", 0, 0), a.selection()), CompareInput(b, RunRef(AMP, "", 0, 0), b.selection())
    )
    frame = open_page(server, watched, "compare", **{"a.run": FP32, "b.run": AMP})
    shown = raw_value(frame, "compare-speedup")
    assert shown == pytest.approx(expected.speedup, rel=1e-9)
    assert shown > 1.5
    nothing_went_wrong(watched)


def test_the_tensor_core_page_holds_the_roofline_and_leads_to_it(server: Server, watched: Watched) -> None:
    frame = open_page(server, watched, "tensor_cores", run=AMP)
    card = frame.get_by_test_id("tc-roofline")
    expect(card.locator("canvas")).to_be_visible()
    card.get_by_role("button", name="All rates").click()
    expect(frame.get_by_test_id("roofline-table")).to_be_visible()
    nothing_went_wrong(watched)


def test_the_amp_rule_fires_on_fp32_with_a_saving(server: Server, watched: Watched) -> None:
    (expected,) = (f for f in advice_of(FP32).findings if f.rule == "amp_not_used")
    assert expected.saving is not None
    assert 0 < expected.saving.low_ns <= expected.saving.expected_ns <= expected.saving.high_ns
    frame = open_page(server, watched, "advice", run=FP32)
    card = frame.get_by_test_id("finding-amp_not_used")
    expect(card).to_be_visible()
    expect(card).to_contain_text(expected.title)
    expect(card).to_contain_text("torch.autocast")
    nothing_went_wrong(watched)


def test_the_predicted_saving_is_the_saving_measured() -> None:
    (finding,) = (f for f in advice_of(FP32).findings if f.rule == "amp_not_used")
    assert finding.saving is not None
    measured = overview_of(FP32).summary.average_iteration_ns - overview_of(AMP).summary.average_iteration_ns
    assert finding.saving.low_ns <= measured <= finding.saving.high_ns


def test_the_amp_rule_is_silent_on_amp(server: Server, watched: Watched) -> None:
    frame = open_page(server, watched, "advice", run=AMP)
    expect(frame.get_by_test_id("finding-amp_not_used")).to_have_count(0)
    (status,) = (rule for rule in advice_of(AMP).rules if rule.rule == "amp_not_used")
    assert status.outcome == "silent"
    nothing_went_wrong(watched)


def test_selecting_an_op_shows_its_kernels_and_survives_a_reload(server: Server, watched: Watched) -> None:
    top = overview_of(FP32).top_ops[0]
    frame = open_tab(server, watched, "ops", run=FP32)
    frame.get_by_role("button", name=top.name).or_(frame.get_by_role("link", name=top.name)).first.click()
    detail = frame.get_by_test_id("op-detail")
    expect(detail).to_be_visible()
    expect(detail).to_contain_text(top.name)
    expect(watched.page).to_have_url(holding("p.tb_dlprof.op="))
    watched.page.reload()
    expect(watched.page.frame_locator("iframe").get_by_test_id("op-detail")).to_be_visible(timeout=_PAGE_MS)
    nothing_went_wrong(watched)


def test_a_module_leads_to_its_ops(server: Server, watched: Watched) -> None:
    analysis = analysed(FP32)
    page = modules_page(analysis, RunRef(FP32, "", 0, 0), analysis.selection())
    expected = next(row for row in page.rows if row.path == "features.0")
    frame = open_page(server, watched, "modules", run=FP32)
    # Only as wide as its time: a leaf is reached through the module that holds it.
    frame.get_by_role("treeitem", name="features,").click()
    frame.get_by_role("treeitem", name="0,", exact=False).nth(0).click()
    detail = frame.get_by_test_id("module-detail")
    expect(detail).to_contain_text("features.0")
    assert expected.gpu_ns is not None
    per_step = round(expected.gpu_ns / analysis.selection().count)
    expect(detail.locator(f"[title='{per_step:,} ns']").first).to_be_visible()
    expect(watched.page).to_have_url(holding("p.tb_dlprof.module=features.0"))
    detail.get_by_test_id("module-ops").click()
    expect(frame.get_by_test_id("page-filter")).to_contain_text("features.0")
    expect(frame.get_by_test_id("ops-table").locator("tbody tr")).to_have_count(expected.ops)
    nothing_went_wrong(watched)


@pytest.mark.parametrize(
    "page",
    short_of(
        [
            "overview",
            "ops",
            "modules",
            "kernels",
            "launches",
            "tensor_cores",
            "roofline",
            "memory",
            "advice",
            "compare",
        ],
        {"ops"},  # test_look.py looks at the width of others
    ),
)
def test_no_page_scrolls_sideways(server: Server, watched: Watched, page: str) -> None:
    frame = open_page(server, watched, page, run=FP32)
    for width in (1440, 360):
        watched.page.set_viewport_size({"width": width, "height": 800})
        frame.get_by_test_id("headline").wait_for()
        watched.page.wait_for_function(f"() => window.innerWidth === {width}")
        wide = frame.locator("html").evaluate("element => element.scrollWidth - element.clientWidth")
        assert wide <= 1, width
    nothing_went_wrong(watched)


def test_dark_mode_follows_tensorboard(server: Server, watched: Watched) -> None:
    frame = open_tab(server, watched, "overview", run=FP32)
    background = "element => getComputedStyle(element).backgroundColor"
    light = frame.locator("body").evaluate(background)
    watched.page.evaluate("document.body.classList.add('dark-mode')")
    expect(frame.locator("body")).not_to_have_css("background-color", light)
    nothing_went_wrong(watched)
