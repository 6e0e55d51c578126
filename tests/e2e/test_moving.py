"""Through the page by keys: search, rows, what belongs to an op on every page. Nothing waits in silence."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Route, expect
from support.tensorboard import PAGE_MS, Server, Watched, frame_in, holding

RUN = "resnet50/fp32"


@pytest.fixture(scope="module")
def server(shared: Callable[[str], Server]) -> Server:
    """More runs than a select shows, so that the pickers are lists to search."""
    return shared("many")


def test_from_a_word_to_an_op_and_all_that_belongs_to_it(server: Server, watched: Watched) -> None:
    page = watched.page
    page.goto(f"{server.url}#tb_dlprof&p.tb_dlprof.run={RUN}")
    frame = frame_in(page)
    expect(frame.get_by_test_id("headline")).to_be_visible(timeout=PAGE_MS)

    # The focus is still in TensorBoard's page around ours.
    page.keyboard.press("/")
    expect(frame.get_by_test_id("search-input")).to_be_focused()
    page.keyboard.type("layer3 conv2 bprop")
    expect(frame.get_by_test_id("hit-op").first).to_contain_text("layer3.0.conv2/conv2d")
    page.keyboard.press("Enter")
    expect(frame.get_by_test_id("op-detail")).to_contain_text("layer3.0.conv2/conv2d", timeout=PAGE_MS)
    expect(frame.get_by_role("heading", name="Ops", exact=True)).to_be_focused()
    expect(frame.get_by_test_id("announcer")).to_contain_text("of the GPU time")

    # The details follow the rows; Escape gives the focus back to the row.
    row = frame.get_by_test_id("ops-table").locator("tr.selected")
    before = row.inner_text()
    page.keyboard.press("j")
    expect(row).not_to_have_text(before)
    page.keyboard.press("k")
    expect(row).to_contain_text("layer3.0.conv2/conv2d")
    page.keyboard.press("Escape")
    expect(frame.get_by_test_id("op-detail")).to_have_count(0)
    expect(frame.get_by_role("button", name="layer3.0.conv2/conv2d").first).to_be_focused()
    page.keyboard.press("Enter")
    frame.get_by_test_id("op-detail").get_by_test_id("related-kernels").click()

    chip = frame.get_by_test_id("page-filter")
    expect(chip).to_contain_text("Filtered to op layer3.0.conv2/conv2d (backward)", timeout=PAGE_MS)
    kernels = frame.get_by_test_id("kernels-table").locator("tbody tr")
    expect(kernels.first).to_be_visible()
    expect(kernels.nth(10)).to_have_count(0)
    chip.get_by_test_id("related-modules").click()
    expect(frame.get_by_test_id("module-detail")).to_contain_text("layer3.0.conv2", timeout=PAGE_MS)
    chip.get_by_test_id("related-roofline").click()
    expect(frame.get_by_test_id("roofline-table").locator("tbody tr")).to_have_count(1, timeout=PAGE_MS)
    chip.get_by_test_id("related-advice").click()
    expect(chip).to_contain_text("of 3 findings", timeout=PAGE_MS)
    # Keys lead on with the filter, typing does not; a link from elsewhere opens the same.
    page.keyboard.press("g")
    page.keyboard.press("c")
    expect(frame.get_by_test_id("tc-table").locator("tbody tr")).to_have_count(1, timeout=PAGE_MS)
    page.reload()
    expect(frame.get_by_test_id("tc-table").locator("tbody tr")).to_have_count(1, timeout=PAGE_MS)
    frame.get_by_test_id("page-filter-clear").click()
    expect(frame.get_by_test_id("page-filter")).to_have_count(0)
    expect(page).not_to_have_url(holding("about"))
    page.keyboard.press("?")
    expect(frame.get_by_test_id("key-help")).to_be_visible()
    expect(frame.get_by_test_id("key-help")).to_contain_text("Next iterations")
    page.keyboard.press("Escape")
    expect(frame.get_by_test_id("key-help")).to_have_count(0)

    # Another run, by keys alone.
    frame.get_by_test_id("run-picker").press("Enter")
    expect(frame.get_by_test_id("run-picker-search")).to_be_focused()
    page.keyboard.type("lenet/tf")
    page.keyboard.press("Enter")
    expect(frame.get_by_test_id("run-picker")).to_be_focused()
    expect(page).to_have_url(holding("run=lenet%2Ftf32"))
    watched.nothing_went_wrong()


def test_a_slow_or_failing_answer_is_told_and_what_was_there_stays(server: Server, watched: Watched) -> None:
    page = watched.page
    held: list[Route] = []
    page.route("**/data/plugin/tb_dlprof/ops?*", lambda route: held.append(route))

    def asked() -> Route:
        """What the page has asked for: it says that it waits before the browser has sent it."""
        for _ in range(500):
            if held:
                break
            page.wait_for_timeout(20)
        return held.pop()

    page.goto(f"{server.page_alone}#tb_dlprof&p.tb_dlprof.run={RUN}&p.tb_dlprof.page=ops")
    frame = page
    expect(frame.get_by_role("status", name="Loading")).to_be_visible(timeout=PAGE_MS)
    asked().continue_()
    table = frame.get_by_test_id("ops-table")
    expect(table).to_be_visible(timeout=PAGE_MS)
    # The header learns the range from the page; keys move it from then on.
    first = frame.get_by_test_id("range-first")
    expect(first).to_be_visible(timeout=PAGE_MS)
    number = first.input_value()

    # Other iterations: the old rows stay, marked as busy, and go when the new ones are there.
    page.keyboard.press("]")
    expect(frame.locator(".stale[aria-busy='true']")).to_be_visible()
    expect(table).to_be_visible()
    asked().abort()
    expect(frame.get_by_test_id("run-error")).to_contain_text("What is shown below may be old.")
    expect(table).to_be_visible()
    frame.get_by_test_id("retry").click()
    expect(frame.locator("[aria-busy='true'] [data-testid='ops-table']")).to_be_visible()
    asked().continue_()
    expect(frame.get_by_test_id("run-error")).to_have_count(0)
    expect(frame.get_by_test_id("range-last")).to_have_value(number)
    assert watched.foreign == []


@pytest.mark.long
def test_a_filter_and_a_selected_row_hold_in_the_icicle_and_under_the_roofline(
    server: Server, watched: Watched
) -> None:
    page = watched.page
    page.goto(
        f"{server.page_alone}#tb_dlprof&p.tb_dlprof.run={RUN}&p.tb_dlprof.page=ops&p.tb_dlprof.about=op_type:conv2d"
    )
    views, table = page.get_by_test_id("work-view"), page.get_by_test_id("ops-table")
    expect(table.locator("tbody tr").first).to_be_visible(timeout=PAGE_MS)
    expect(table).to_contain_text("106 rows")

    views.get_by_role("button", name="Roofline").click()
    chart = page.get_by_test_id("tc-roofline")
    expect(chart.get_by_role("img")).to_have_attribute("aria-label", re.compile("of 106 ops,"), timeout=PAGE_MS)
    expect(table).to_contain_text("106 rows")

    views.get_by_role("button", name="Icicle").click()
    icicle = page.get_by_test_id("work-icicle")
    expect(icicle.get_by_role("treeitem", name=re.compile("^conv2d"))).not_to_have_count(0, timeout=PAGE_MS)
    expect(icicle.get_by_role("treeitem", name=re.compile("batch_norm"))).to_have_count(0)
    table.locator("tbody tr").first.click()
    panel = page.get_by_test_id("op-detail")
    expect(panel.get_by_test_id("work-roof")).to_contain_text("of the roof of FP32", timeout=PAGE_MS)
    expect(icicle.locator('[aria-selected="true"]')).to_have_count(1)

    # The view goes along to another grouping; a panel leads to the longest launch.
    page.get_by_test_id("nav-op-types").click()
    expect(icicle.get_by_role("treeitem", name=re.compile("^batch_norm,"))).to_have_count(1, timeout=PAGE_MS)
    icicle.get_by_role("treeitem", name=re.compile("^conv2d,")).click()
    of_type = page.get_by_test_id("op-type-detail")
    expect(of_type.get_by_role("heading", name="conv2d")).to_be_visible()
    of_type.get_by_test_id("work-longest").get_by_role("button").click()
    expect(page).to_have_url(holding("page=timeline"))
    expect(page.get_by_test_id("timeline-event")).to_contain_text("wgrad", timeout=PAGE_MS)

    # An address from before the views opens the page of rates, with the way back to the table.
    page.goto("about:blank")
    page.goto(f"{server.page_alone}#tb_dlprof&p.tb_dlprof.run={RUN}&p.tb_dlprof.page=roofline")
    expect(page.get_by_test_id("roofline-table").locator("tbody tr").first).to_be_visible(timeout=PAGE_MS)
    expect(page.get_by_test_id("nav-ops")).to_have_attribute("aria-current", "page")
    views.get_by_role("button", name="Table").click()
    expect(table.locator("tbody tr").first).to_be_visible(timeout=PAGE_MS)
    watched.nothing_went_wrong()
