"""The browser's Back and the address: pages and runs are steps of the history, in TensorBoard and alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import FrameLocator, Page, expect
from support.marks import long
from support.tensorboard import OF_TENSORBOARD, PAGE_MS, Server, Watched, frame_in, holding

RUN, OTHER = "lenet/fp32", "lenet/amp-fp16"


@pytest.fixture(scope="module")
def server(shared: Callable[[str], Server]) -> Server:
    return shared("few")


def _shows(where: FrameLocator | Page, heading: str, run: str = RUN) -> None:
    expect(where.get_by_role("heading", name=heading, exact=True, level=1)).to_be_visible(timeout=PAGE_MS)
    expect(where.get_by_test_id("run-picker")).to_have_value(run)


@pytest.mark.parametrize("alone", [False, long(True)], ids=["in TensorBoard", "alone"])
def test_back_shows_the_page_and_the_run_before(server: Server, watched: Watched, alone: bool) -> None:
    page = watched.page
    entry = "data/plugin_entry.html?name=tb_dlprof" if alone else ""
    page.goto(f"{server.url}{entry}#tb_dlprof&p.tb_dlprof.run={RUN}")
    where: FrameLocator | Page = page if alone else frame_in(page)
    _shows(where, "Summary")
    where.get_by_test_id("place-explore").click()
    _shows(where, "Ops")
    # What changes within a page is part of its step.
    where.get_by_test_id("ops-table").locator("tbody tr").nth(1).click()
    expect(where.get_by_test_id("op-detail")).to_be_visible()
    expect(page).to_have_url(holding("p.tb_dlprof.op="))
    with_op = page.url
    where.get_by_test_id("nav-kernels").click()
    _shows(where, "Kernels")
    where.get_by_test_id("run-picker").select_option(OTHER)
    _shows(where, "Kernels", OTHER)

    page.go_back()
    _shows(where, "Kernels")
    page.go_back()
    _shows(where, "Ops")
    expect(where.get_by_test_id("op-detail")).to_be_visible()
    expect(page).to_have_url(with_op)
    page.go_back()
    _shows(where, "Summary")
    page.go_forward()
    _shows(where, "Ops")
    # From a step in the middle another way can be taken; what was ahead is gone.
    where.get_by_test_id("place-memory").click()
    _shows(where, "Memory")
    page.go_back()
    _shows(where, "Ops")
    watched.nothing_went_wrong()


@pytest.mark.long
@OF_TENSORBOARD
def test_another_tab_of_tensorboard_is_a_step_too(server: Server, watched: Watched) -> None:
    page = watched.page
    page.goto(f"{server.url}#tb_dlprof&p.tb_dlprof.run={RUN}&p.tb_dlprof.page=ops")
    frame = page.frame_locator("iframe")
    _shows(frame, "Ops")
    frame.get_by_test_id("place-memory").click()
    _shows(frame, "Memory")
    page.evaluate("location.hash = 'timeseries'")
    expect(page.locator("iframe")).not_to_be_visible(timeout=PAGE_MS)
    page.go_back()
    expect(page.locator("iframe")).to_be_visible(timeout=PAGE_MS)
    _shows(frame, "Memory")
    page.go_back()
    _shows(frame, "Ops")
