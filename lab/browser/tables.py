"""Sorting and filtering a table of 100,000 rows on the Reports page.

The page and the table are the real ones; only the answer of the server is made larger, from the rows of the recording's
report of all kernels in order: times vary, every op has a name of its own.
"""

from __future__ import annotations

import json
import random
import urllib.request
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Browser, CDPSession, Frame, Page

_MEASURE = """
async ([label, query]) => {
  const table = document.querySelector('[data-testid=report-table]');
  const head = [...table.querySelectorAll('th')].find((th) => th.querySelector('.sort').firstChild.data === label);
  const filter = head.querySelector('.filter');
  const started = performance.now();
  if (query === null) head.querySelector('.sort').click();
  else {
    filter.value = query;
    filter.dispatchEvent(new Event('input', { bubbles: true }));
  }
  await new Promise((painted) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = painted;
    channel.port2.postMessage(null);
  }));
  return performance.now() - started;
}
"""
ACTIONS: tuple[tuple[str, str | None], ...] = (
    ("GPU Time", None),
    ("GPU Time", None),
    ("Op Name", None),
    ("Op Name", None),
    ("Long Kernel Name", None),
    ("Op Name", "c"),
    ("Op Name", "conv"),
    ("Op Name", "conv2 7"),
    ("Op Name", ""),
    ("GPU Time", "12"),
    ("GPU Time", ">10us"),
    ("GPU Time", ""),
)
"""A column, and what is typed above it; None is a click on its heading."""


@dataclass(frozen=True)
class Followed:
    """One action in ms: until the frame after it was painted, and the processor time of the page's main thread."""

    label: str
    query: str | None
    wall_ms: float
    cpu_ms: float


def follow(browser: Browser, address: str, rows: int, repeats: int) -> tuple[int, list[Followed]]:
    """Columns of the table, and each of `ACTIONS` ``repeats`` times."""
    query = "report?run=run&name=iteration"
    with urllib.request.urlopen(f"{address}/data/plugin/tb_dlprof/{query}") as answer:
        report = json.load(answer)
    body = json.dumps(_larger(report, rows))
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.route("**/tb_dlprof/report?*", lambda route: route.fulfill(content_type="application/json", body=body))
    page.goto(f"{address}/#tb_dlprof&p.tb_dlprof.page=reports&p.tb_dlprof.report=iteration")
    frame = _table(page)
    frame.locator("[data-testid=filter-toggle]").click()
    # Columns are indexed while the page is idle, as they are while a user looks for the column to sort by.
    page.wait_for_timeout(4_000)
    clock = context.new_cdp_session(page)
    clock.send("Performance.enable", {"timeDomain": "threadTicks"})
    followed = []
    for _ in range(repeats):
        for label, typed in ACTIONS:
            before = _processor(clock)
            wall = frame.evaluate(_MEASURE, [label, typed])
            followed.append(Followed(label, typed, wall, _processor(clock) - before))
    context.close()
    return len(report["columns"]), followed


def _larger(report: dict[str, Any], rows: int) -> dict[str, Any]:
    chance = random.Random(0)
    keys = [column["key"] for column in report["columns"]]
    times = [place for place, column in enumerate(report["columns"]) if column["unit"] == "ns"]
    iteration, op = keys.index("iteration"), keys.index("op_name")
    made = []
    for index in range(rows):
        row = list(report["rows"][index % len(report["rows"])])
        for place in times:
            if row[place] is not None:
                row[place] = round(row[place] * chance.uniform(0.9, 1.1))
        row[iteration] = index // 700
        row[op] = f"{row[op]} {index * 7919 % 99991}"
        made.append(row)
    return {**report, "rows": made, "total_rows": rows}


def _table(page: Page) -> Frame:
    page.wait_for_selector("iframe")
    for _ in range(600):
        for frame in page.frames[1:]:
            if frame.query_selector("[data-testid=report-table] tbody td"):
                return frame
        page.wait_for_timeout(100)
    raise TimeoutError("The Reports page showed no table.")


def _processor(clock: CDPSession) -> float:
    metrics = clock.send("Performance.getMetrics")["metrics"]
    seconds: float = next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")
    return 1000 * seconds
