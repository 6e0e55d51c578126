"""A key node picked on the page cuts the recording as Python does, travels in a link; ranges by mouse and keyboard."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e.conftest import UNMARKED
from playwright.sync_api import FrameLocator, Page, expect
from support.recorded_runs import demo_run
from support.tensorboard import PAGE_MS, Server, Watched, frame_in

from tb_dlprof_plugin.metrics.key_node import with_key_node
from tb_dlprof_plugin.pages.overview import Overview, overview
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.reports.registry import make_report
from tb_dlprof_plugin.store.run_ref import RunRef

RUN, KEY_NODE = "lenet/fp32", "conv1/conv2d"


@pytest.fixture(scope="module")
def server(shared: Callable[[str, str], Server], load_fast: str) -> Server:
    return shared("few", load_fast)


@pytest.fixture(scope="module")
def recorded() -> ProfileView:
    """The run as Python reads it, without TensorBoard."""
    return demo_run(RUN).view


@pytest.fixture(scope="module")
def cut(recorded: ProfileView) -> ProfileView:
    """The same, cut at the key node."""
    return ProfileView(with_key_node(recorded.profile, KEY_NODE))


def overview_of(frame: ProfileView, first: int | None = None, last: int | None = None) -> Overview:
    return overview(frame, RunRef(RUN, "", 0, 0), frame.selection(first, last))


def shows(frame: FrameLocator | Page, expected: Overview) -> None:
    """Waits until the Overview is this one."""
    step = str(expected.summary.average_iteration_ns)
    expect(frame.get_by_test_id("overview-step-time")).to_have_attribute("data-value", step, timeout=PAGE_MS)
    expect(frame.get_by_test_id("headline")).to_have_text(expected.headline)
    first, last = expected.range.first_number, expected.range.last_number
    for which, number in (("first", first), ("last", last)):
        expect(frame.get_by_test_id(f"range-{which}")).to_have_value(str(number))


def test_a_key_node_that_is_picked_cuts_the_recording_and_the_link_shows_the_same(
    server: Server, watched: Watched, recorded: ProfileView, cut: ProfileView
) -> None:
    # In TensorBoard, to whose address our page hands its own.
    watched.page.goto(f"{server.url}#tb_dlprof&p.tb_dlprof.run={RUN}")
    frame = frame_in(watched.page)
    shows(frame, overview_of(recorded))
    frame.get_by_test_id("key-node-summary").click()
    frame.get_by_test_id("key-node-search").fill("conv1 forward")
    frame.get_by_test_id("key-node-choice").first.click()
    expected = overview_of(cut)
    assert expected.range.total == len(recorded.profile.iterations) + 1
    shows(frame, expected)
    expect(frame.get_by_test_id("range-last")).to_have_value(str(expected.range.last_number))

    link = watched.page.url
    assert "p.tb_dlprof.keyNode=conv1%2Fconv2d" in link
    other = watched.page.context.new_page()
    other.goto(link)
    shows(frame_in(other), expected)
    other.close()

    frame.get_by_test_id("key-node-summary").click()
    frame.get_by_test_id("key-node-recorded").click()
    shows(frame, overview_of(recorded))
    watched.nothing_went_wrong()


@pytest.mark.long
def test_a_recording_without_steps_offers_ops_that_repeat(server: Server, watched: Watched) -> None:
    frame = watched.open(server, "overview", run=UNMARKED)
    expect(frame.get_by_test_id("no-steps")).to_contain_text("counts as one iteration")
    expect(frame.get_by_test_id("no-steps-choice").first).to_contain_text("linear (forward, 6 calls)")
    frame.get_by_test_id("no-steps-choice").first.click()
    expect(frame.get_by_test_id("range-last")).to_have_value("6")
    expect(frame.get_by_test_id("no-steps")).to_have_count(0)
    watched.nothing_went_wrong()


def test_a_range_is_picked_with_the_mouse_and_with_the_keyboard(
    server: Server, watched: Watched, recorded: ProfileView
) -> None:
    frame = watched.open(server, "overview", run=RUN)
    bars = frame.get_by_test_id("iteration-bars")
    expect(bars.locator(".chart > svg")).to_be_visible(timeout=PAGE_MS)
    bars.scroll_into_view_if_needed()
    box = bars.bounding_box()
    assert box is not None
    # The bars fill the right of the box; both ends of the drag lie well within a bar.
    middle = box["y"] + box["height"] / 2
    watched.page.mouse.move(box["x"] + box["width"] * 0.5, middle)
    watched.page.mouse.down()
    watched.page.mouse.move(box["x"] + box["width"] * 0.7, middle, steps=8)
    watched.page.mouse.up()
    expect(frame.get_by_test_id("range-all")).to_be_visible()
    # The fields have the numbers of the iterations.
    least = int(recorded.profile.iterations.number[0])
    first, last = (int(frame.get_by_test_id(f"range-{end}").input_value()) - least for end in ("first", "last"))
    assert 0 < first < last < 9
    shows(frame, overview_of(recorded, first, last))

    bars.focus()
    watched.page.keyboard.press("Escape")
    shows(frame, overview_of(recorded))
    for key in ("Home", "ArrowRight", "ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight"):
        watched.page.keyboard.press(key)
    numbers = recorded.profile.iterations.number
    marked = f"Iterations {numbers[2]} to {numbers[4]}; Enter takes them."
    expect(frame.get_by_test_id("iteration-bars-marked")).to_have_text(marked)
    watched.page.keyboard.press("Enter")
    shows(frame, overview_of(recorded, 2, 4))
    watched.nothing_went_wrong()


def test_a_report_and_its_csv_file_hold_what_the_command_writes(
    server: Server, watched: Watched, cut: ProfileView, tmp_path: Path
) -> None:
    expected = make_report("kernel_groups", cut, RunRef(RUN, "", 0, 0), cut.selection(1, 3))
    frame = watched.open(server, "reports", run=RUN, keyNode=KEY_NODE, first="1", last="3", report="kernel_groups")
    expect(frame.get_by_test_id("report-table")).to_contain_text(f"{len(expected.rows)} rows")
    with watched.page.expect_download() as download:
        frame.get_by_test_id("csv-download").click()
    download.value.save_as(tmp_path / "groups.csv")
    with (tmp_path / "groups.csv").open(encoding="utf-8-sig", newline="") as file:
        head, *rows = csv.reader(file)
    assert tuple(head) == expected.columns
    numbers = [[cell if isinstance(cell, str) else float(cell) for cell in row] for row in expected.rows]
    assert [[cell if i < 2 else float(cell) for i, cell in enumerate(row)] for row in rows] == numbers

    frame.get_by_test_id("report-api").click()
    expect(frame.get_by_test_id("headline")).to_contain_text("different CUDA calls")
    expect(frame.get_by_test_id("report-table")).to_contain_text("cudaLaunchKernel")
    assert "p.tb_dlprof.report=api" in watched.page.url
    watched.nothing_went_wrong()
