"""From the waterfall of two recorded runs to a bar, a module, an op and its kernels, and by the address back again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import FrameLocator, expect
from support.recorded_runs import recorded_view
from support.tensorboard import RECORDED, Server, Watched

from tb_dlprof_plugin.pages.compare import ComparePage, compare_op, compare_page
from tb_dlprof_plugin.pages.compare_metrics import CompareInput
from tb_dlprof_plugin.store.run_ref import RunRef

FP32, AMP, OTHER = "vgg16/fp32", "vgg16/amp-fp16", "lenet/fp32"
_PAGE_MS = 30_000


@pytest.fixture(scope="module")
def server(shared: Callable[[str, str], Server], load_fast: str) -> Server:
    return shared("few", load_fast)


def side(run: str) -> CompareInput:
    frame = recorded_view(RECORDED / run)
    return CompareInput(frame, RunRef(run, "", 0, 0), frame.selection())


@pytest.fixture(scope="module")
def expected() -> ComparePage:
    """What the page must show."""
    return compare_page(side(FP32), side(AMP))


def tab(watched: Watched, url: str) -> FrameLocator:
    watched.page.goto(url)
    frame = watched.page.frame_locator("iframe")
    expect(frame.get_by_test_id("headline")).to_be_visible(timeout=_PAGE_MS)
    return frame


def number(frame: FrameLocator, test_id: str) -> int:
    return int(frame.get_by_test_id(test_id).get_attribute("data-value") or "")


def test_from_the_waterfall_to_an_ops_kernels_and_back_by_the_address(
    server: Server, watched: Watched, expected: ComparePage
) -> None:
    # GIVEN the Compare page, WHEN the two runs are picked
    frame = tab(watched, f"{server.url}#tb_dlprof&p.tb_dlprof.page=compare")
    frame.get_by_test_id("compare-base-run-picker").select_option(FP32)
    frame.get_by_test_id("compare-candidate-run-picker").select_option(AMP)
    speedup = frame.get_by_test_id("compare-speedup")
    expect(speedup).to_have_attribute("data-value", str(expected.speedup), timeout=_PAGE_MS)

    # THEN the waterfall adds up
    base, candidate = number(frame, "waterfall-base"), number(frame, "waterfall-candidate")
    assert base == round(expected.base_ms * 1e6)
    assert candidate == round(expected.candidate_ms * 1e6)
    shown = [bucket for bucket in expected.buckets if bucket.base_ns or bucket.candidate_ns]
    bars = {bucket.key: number(frame, f"bucket-{bucket.key}") for bucket in shown}
    assert bars == {bucket.key: bucket.difference_ns for bucket in shown}
    assert base + sum(bars.values()) == candidate

    # WHEN one drills from a bar to a module, to an op
    frame.get_by_test_id("bucket-tensor_core").click()
    module = max(expected.modules, key=lambda row: abs(row.b_buckets.get("tensor_core", 0)))
    modules = frame.get_by_test_id("drill-modules")
    first = modules.locator("tbody tr").first
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
    detail = compare_op(side(FP32), side(AMP), op.id)
    before, after = frame.get_by_test_id("kernels-before"), frame.get_by_test_id("kernels-after")
    expect(before).to_contain_text(detail.a_kernels[0].short_name, timeout=_PAGE_MS)
    expect(after).to_contain_text(detail.b_kernels[0].short_name)
    expect(after.locator("tbody tr")).to_have_count(len(detail.b_kernels))
    crumbs = frame.get_by_test_id("compare-crumbs")
    expect(crumbs).to_contain_text("Tensor Core kernels")
    expect(crumbs).to_contain_text(module.module)

    # WHEN the address is opened elsewhere THEN it is the same page
    address = watched.page.url
    texts = [frame.get_by_test_id(name).inner_text() for name in ("waterfall", "compare-drill", "headline")]
    watched.page.goto("about:blank")
    again = tab(watched, address)
    expect(again.get_by_test_id("kernels-after")).to_be_visible(timeout=_PAGE_MS)
    expect(again.get_by_test_id("bucket-tensor_core")).to_have_attribute("aria-pressed", "true")
    assert [again.get_by_test_id(name).inner_text() for name in ("waterfall", "compare-drill", "headline")] == texts

    # AND the way back leads to the op's module and to the bar
    again.get_by_test_id("compare-crumbs").get_by_role("button", name=module.module).click()
    expect(again.get_by_test_id("drill-ops")).to_be_visible()
    again.get_by_test_id("compare-crumbs").get_by_role("button", name="Tensor Core kernels").click()
    expect(again.get_by_test_id("drill-modules")).to_be_visible()
    assert watched.errors == []
    assert watched.foreign == []


def test_another_candidate_leaves_the_bar_and_forgets_the_op(server: Server, watched: Watched) -> None:
    state = {"page": "compare", "a.run": FP32, "b.run": AMP, "bucket": "other_compute", "pairModule": "features.0"}
    pairs = "".join(f"&p.tb_dlprof.{key}={value}" for key, value in state.items())
    watched.page.goto(f"{server.page_alone}#tb_dlprof{pairs}")
    frame = watched.page
    expect(frame.get_by_test_id("drill-ops")).to_be_visible(timeout=_PAGE_MS)
    frame.get_by_test_id("compare-candidate-run-picker").select_option(OTHER)
    expect(frame.get_by_test_id("drill-modules")).to_be_visible(timeout=_PAGE_MS)
    expect(frame.get_by_test_id("drill-modules")).to_contain_text("removed")
    expect(frame.get_by_test_id("bucket-other_compute")).to_have_attribute("aria-pressed", "true")
    assert watched.errors == []
