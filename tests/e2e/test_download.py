"""What can be downloaded: each kind of drawing as a picture and as values, a table as CSV and JSON."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from support.marks import short_of
from support.tensorboard import PAGE_MS, Server, Watched

_PAIR = "p.tb_dlprof.a.run=lenet/fp32&p.tb_dlprof.b.run=lenet/amp-bf16"
_FP32 = "p.tb_dlprof.run=lenet/fp32"
_KINDS = {
    "overview": (_FP32, ["What a step consists of", "Resource usage", "Iterations", "Parts of the step"]),
    "modules": (_FP32, ["Time by module"]),
    "roofline": (_FP32, ["Rate of each op under the GPU's roofs"]),
    "memory": ("p.tb_dlprof.run=memory", ["Allocated memory by category"]),
    "advice": (_FP32, ["What mixed precision would gain"]),
    "compare": (_PAIR, ["Where the difference comes from", "Forecast and measured", "Kernel time by family"]),
    "runs": ("", ["Step time by run"]),
    "runs ": ("p.tb_dlprof.runs=sweep&p.tb_dlprof.over=precision", ["Step time over precision"]),
}
"""Pages, and the drawings of them that stand for their kind: rings, stacked bars, rectangles, points, areas, intervals,
steps, pairs of bars, bars, groups of bars."""
_LOOK = """
async (base64) => {
  const image = new Image();
  image.src = `data:image/png;base64,${base64}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const background = Math.max(...counts.values());
  return { width: image.width, height: image.height, drawn: 1 - background / pixels.length, colours: counts.size };
}
"""


@pytest.fixture(scope="module")
def server(shared: Callable[[str], Server]) -> Server:
    """Models in two precisions each, and a run with memory."""
    return shared("few")


@pytest.fixture(scope="module")
def blank(context: BrowserContext) -> Iterator[Page]:
    """A page that looks at pictures."""
    page = context.new_page()
    yield page
    page.close()


def _open(watched: Watched, server: Server, page: str, rest: str) -> Page:
    address = f"#tb_dlprof&p.tb_dlprof.page={page.strip()}&{rest}"
    watched.page.goto(f"{server.page_alone}{address}")
    if page in ("overview", "compare"):
        watched.page.get_by_test_id(f"{page}-more").locator("> summary").click(timeout=PAGE_MS)
    return watched.page


def _saved(page: Page, name: str, button: str) -> tuple[str, bytes]:
    """The file that a button of a drawing's menu saves: its name and content. The menu is left open."""
    group = page.locator(f'.download-group[aria-label="{name}"]')
    with page.expect_download() as download:
        group.get_by_test_id(button).click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


@pytest.mark.parametrize("page", short_of(_KINDS, {"overview"}))
def test_a_drawing_is_saved_as_a_picture_and_as_its_values(
    server: Server, watched: Watched, blank: Page, page: str
) -> None:
    rest, names = _KINDS[page]
    frame = _open(watched, server, page, rest)
    for name in names:
        drawing = frame.locator(f'[data-drawing="{name}"]')
        expect(drawing).to_be_visible(timeout=PAGE_MS)
        for chart in drawing.locator(".chart").all():
            expect(chart.locator("> svg")).to_be_visible(timeout=PAGE_MS)
        menu = frame.locator(".card", has=drawing).get_by_test_id("download")
        menu.click()
        file, picture = _saved(frame, name, "save-png")
        assert file.startswith("dlprof-")
        assert file.endswith(".png")
        look = blank.evaluate(_LOOK, base64.b64encode(picture).decode())
        width = drawing.evaluate("(element) => element.clientWidth")
        assert look["width"] == 2 * (width + 32)
        assert look["height"] > 150
        assert look["drawn"] > 0.01, "a blank picture"
        assert look["colours"] > 20

        _, values = _saved(frame, name, "save-json")
        rows: list[dict[str, Any]] = json.loads(values)
        _, table = _saved(frame, name, "save-csv")
        head, *cells = csv.reader(io.StringIO(table.decode("utf-8-sig")))
        assert len(rows) == len(cells) > 0
        assert len(rows[0]) == len(head)
        frame.locator(f'.download-group[aria-label="{name}"]').get_by_test_id("show-table").click()
        shown = drawing.get_by_test_id("drawing-table")
        expect(shown.locator("thead th")).to_have_count(len(head))
    watched.nothing_went_wrong()


def _steps(answer: dict[str, Any]) -> int:
    """How many iterations its sums are of."""
    return int(answer["range"]["last"] - answer["range"]["first"] + 1)


@pytest.mark.long
def test_values_are_those_of_the_view_in_nanoseconds(server: Server, watched: Watched) -> None:
    frame = _open(watched, server, "overview", _FP32)
    frame.locator(".card", has=frame.locator('[data-drawing="Parts of the step"]')).get_by_test_id("download").click()
    _, values = _saved(frame, "Parts of the step", "save-json")
    overview = server.get("overview?run=lenet/fp32")
    assert isinstance(overview, dict)
    assert json.loads(values) == [
        {
            "part": part["label"],
            "share_percent": part["percent"],
            "time_per_step_ns": part["value_ns"] / _steps(overview),
        }
        for part in overview["parts"]
    ]


def test_a_table_is_saved_as_it_is_filtered_and_sorted(server: Server, watched: Watched) -> None:
    frame = _open(watched, server, "ops", _FP32)
    table = frame.get_by_test_id("ops-table")
    table.get_by_test_id("filter-toggle").click(timeout=PAGE_MS)
    table.get_by_label("Filter by Pass").select_option("backward", timeout=PAGE_MS)
    table.get_by_role("button", name="GPU time").click()
    with watched.page.expect_download() as download:
        table.get_by_test_id("json-download").click()
    rows = json.loads(Path(download.value.path()).read_text())
    times = [row["gpu_per_step_ns"] for row in rows]
    assert {row["role"] for row in rows} == {"backward"}
    assert len(times) > 3
    assert times == sorted(times, reverse=times[0] > times[-1])
    answer = server.get("ops?run=lenet/fp32")
    assert isinstance(answer, dict)
    backward = [row for row in answer["rows"] if row["direction"] == "backward"]
    assert sorted(times) == sorted(row["gpu_ns"] / _steps(answer) for row in backward)


@pytest.mark.long
def test_a_report_longer_than_an_answer_arrives_as_a_whole(server: Server, watched: Watched) -> None:
    answer = server.get("report?run=resnet50/fp32&name=iteration")
    assert isinstance(answer, dict)
    first, total = len(answer["rows"]), answer["total_rows"]
    frame = _open(watched, server, "reports", "p.tb_dlprof.run=resnet50/fp32&p.tb_dlprof.report=iteration")
    expect(frame.get_by_test_id("report-table").get_by_role("status")).to_have_text(f"{total:,} rows", timeout=PAGE_MS)
    assert first < total, "the report fits into one answer: take a longer one"
    watched.nothing_went_wrong()
