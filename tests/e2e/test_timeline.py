"""The Timeline page in a browser: selection by hand and by keys, zooming, searching, the way to other pages."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support.tensorboard import PAGE_MS, RECORDED, Server, Watched, holding

from tb_dlprof_plugin.cli.open_profile import choose
from tb_dlprof_plugin.pages.timeline.event import timeline_event
from tb_dlprof_plugin.pages.timeline.matches import timeline_matches
from tb_dlprof_plugin.pages.timeline.page import timeline_page

RUN = "mlp/fp32"


@pytest.fixture(scope="module")
def server(shared: Callable[[str], Server]) -> Server:
    return shared("many")


@pytest.fixture
def opened(server: Server, watched: Watched) -> Callable[..., Page]:
    """Opens the page alone, with more in the address, and returns it once it is drawn."""

    def open_page(more: str = "") -> Page:
        watched.page.goto("about:blank")
        watched.page.goto(f"{server.page_alone}#tb_dlprof&p.tb_dlprof.page=timeline&p.tb_dlprof.run={RUN}{more}")
        frame = watched.page
        expect(frame.get_by_test_id("timeline-figure")).to_have_attribute("data-to", re.compile(r"\d"), timeout=PAGE_MS)
        return frame

    return open_page


def _span(frame: Page) -> float:
    figure = frame.get_by_test_id("timeline-figure")
    return float(figure.get_attribute("data-to") or 0) - float(figure.get_attribute("data-from") or 0)


def _shows_less_than(frame: Page, span: float) -> None:
    """Waits for a zoom, which the next frame draws."""
    deadline = time.monotonic() + PAGE_MS / 1000
    while _span(frame) >= span:
        assert time.monotonic() < deadline, f"{_span(frame)} ns are seen, not less than {span}"
        frame.wait_for_timeout(20)


def test_the_longest_kernel_leads_to_its_launch_its_op_and_back(opened, watched: Watched) -> None:
    chosen = choose(RECORDED / Path(RUN))
    page = timeline_page(chosen.view, chosen.ref, chosen.selection)
    longest = page.longest_gpu[0]
    detail = timeline_event(chosen.view, chosen.ref, chosen.selection, None, longest.spot.id)
    assert detail.gpu is not None
    assert detail.gpu.launch.call is not None
    frame = opened()
    expect(frame.get_by_test_id("headline")).to_have_text(page.headline)
    # What is seen first is the step, from its begin to its end; the CPU's lead is in the whole window.
    assert _span(frame) == page.iteration.duration_ns
    figure = frame.get_by_test_id("timeline-figure")
    frame.get_by_test_id("timeline-all").click()
    expect(figure).to_have_attribute("data-to", str(page.window_ns))
    expect(figure).to_have_attribute("data-from", "0")
    frame.get_by_test_id("timeline-step").click()
    expect(figure).to_have_attribute("data-from", str(page.iteration.start_ns))
    expect(figure).to_have_attribute("data-to", str(page.iteration.stop_ns))

    frame.get_by_test_id("timeline-gpu").locator("tbody button").first.click()
    expect(frame.get_by_test_id("timeline-event-name")).to_contain_text(longest.spot.label)
    expect(frame.get_by_test_id("timeline-launch-call")).to_have_text(detail.gpu.launch.call.label)
    expect(frame.get_by_test_id("timeline-delay").locator(".num")).to_have_attribute(
        "title", f"{detail.gpu.launch.delay_ns:,} ns"
    )
    expect(watched.page).to_have_url(holding("p.tb_dlprof.op="))
    expect(watched.page).to_have_url(holding(f"p.tb_dlprof.event={longest.spot.id}"))
    _shows_less_than(frame, page.window_ns / 2)  # zoomed to it

    # Its launching call launched just this kernel.
    frame.get_by_test_id("timeline-launch-call").click()
    expect(frame.get_by_test_id("timeline-launched").locator("li")).to_have_count(1)
    frame.get_by_test_id("timeline-launched").locator("button").click()
    frame.get_by_test_id("timeline-to-op").click()
    expect(frame.get_by_test_id("op-detail")).to_contain_text(detail.op, timeout=PAGE_MS)
    # From there the op is looked for here.
    frame.get_by_test_id("op-detail").get_by_test_id("related-timeline").click()
    found = timeline_matches(chosen.view, chosen.selection, None, op=detail.op_id)
    expect(frame.get_by_test_id("timeline-found")).to_contain_text(f"The selected op: {found.count} event")
    assert found.first is not None
    expect(frame.get_by_test_id("timeline-cursor")).to_contain_text(f"{found.first.label}, ")
    watched.nothing_went_wrong()


@pytest.mark.long
def test_a_link_shows_the_event_that_it_names_and_a_wrong_one_says_so(opened) -> None:
    chosen = choose(RECORDED / Path(RUN))
    gap = timeline_page(chosen.view, chosen.ref, chosen.selection, 2).longest_gaps[0].spot
    frame = opened(f"&p.tb_dlprof.iteration=2&p.tb_dlprof.event={gap.id}")
    expect(frame.get_by_test_id("timeline-event-name")).to_contain_text(gap.label)
    expect(frame.get_by_test_id("timeline-event")).to_contain_text("In detail: ")
    expect(frame.get_by_test_id("timeline-iteration")).to_have_value("2")
    frame.get_by_test_id("timeline-after").click()
    expect(frame.get_by_test_id("timeline-iteration")).to_have_value("3")
    expect(frame.get_by_test_id("timeline-event")).to_have_count(0)

    frame = opened("&p.tb_dlprof.event=g99999999")
    expect(frame.get_by_test_id("timeline-event")).to_contain_text("has no event 'g99999999'")


def test_keys_walk_the_events_zoom_and_select(opened, watched: Watched) -> None:
    frame = opened()
    figure, cursor = frame.get_by_test_id("timeline-figure"), frame.get_by_test_id("timeline-cursor")
    figure.focus()
    whole = _span(frame)
    for _ in range(4):
        watched.page.keyboard.press("w")
    expect(frame.get_by_test_id("timeline-span")).to_contain_text(re.compile(r"Shows [1-7]\d\d µs"))
    _shows_less_than(frame, whole / 3)
    watched.page.keyboard.press("0")
    expect(figure).to_have_attribute("data-to", str(round(whole)))
    watched.page.keyboard.press("ArrowRight")
    expect(cursor).to_contain_text(re.compile("part of the step"))
    before = cursor.text_content()
    watched.page.keyboard.press("ArrowLeft")
    expect(cursor).not_to_have_text(before or "")
    for _ in range(4):
        watched.page.keyboard.press("ArrowDown")
    expect(cursor).to_contain_text("CPU thread 0: training")
    watched.page.keyboard.press("Enter")
    expect(frame.get_by_test_id("timeline-event-name")).to_contain_text((cursor.text_content() or "").split(",")[0])
    expect(watched.page).to_have_url(holding("p.tb_dlprof.event=c"))
    watched.page.keyboard.press("Escape")
    expect(frame.get_by_test_id("timeline-event")).to_have_count(0)
    assert watched.errors == []


def test_pointer_and_wheel_move_and_a_click_selects(opened, watched: Watched) -> None:
    frame = opened()
    canvas = frame.get_by_test_id("timeline-canvas")
    whole = _span(frame)
    box = canvas.bounding_box()
    assert box is not None
    # The page scrolls until the drawing is clicked.
    x, y = box["x"] + box["width"] * 0.6, box["y"] + 9
    watched.page.mouse.move(x, y)
    expect(frame.get_by_test_id("timeline-hover")).to_contain_text("part of the step")
    watched.page.mouse.click(x, y)
    expect(frame.get_by_test_id("timeline-event-name")).to_contain_text("Backward")
    watched.page.mouse.wheel(0, -600)
    expect(frame.get_by_test_id("timeline-figure")).not_to_have_attribute("data-from", "0")
    _shows_less_than(frame, whole)
    start = frame.get_by_test_id("timeline-figure").get_attribute("data-from")
    watched.page.mouse.down()
    watched.page.mouse.move(x - 120, y, steps=4)
    watched.page.mouse.up()
    expect(frame.get_by_test_id("timeline-figure")).not_to_have_attribute("data-from", start or "")
    # That was a drag, not a click.
    expect(frame.get_by_test_id("timeline-event-name")).to_contain_text("Backward")


@pytest.mark.long
def test_a_search_marks_counts_and_goes_from_one_to_the_next(opened, watched: Watched) -> None:
    chosen = choose(RECORDED / Path(RUN))
    found = timeline_matches(chosen.view, chosen.selection, None, text="addmm")
    frame = opened()
    frame.get_by_test_id("timeline-search").fill("AddMM")
    expect(frame.get_by_test_id("timeline-found")).to_contain_text(f"{found.count} events")
    frame.get_by_test_id("timeline-search").press("Enter")
    expect(frame.get_by_test_id("timeline-cursor")).to_contain_text("addmm, forward op")
    first = frame.get_by_test_id("timeline-cursor").text_content()
    frame.get_by_test_id("timeline-search").press("Enter")
    expect(frame.get_by_test_id("timeline-cursor")).not_to_have_text(first or "")
    frame.get_by_test_id("timeline-search").fill("no such thing")
    expect(frame.get_by_test_id("timeline-found")).to_contain_text("Nothing has this in its name")
    assert watched.errors == []
