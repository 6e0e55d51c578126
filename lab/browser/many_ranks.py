"""How the page Distributed opens and moves with 2 to 10,000 ranks, with half of them missing, and with one.

    python -m lab.browser.many_ranks RUN --out DIRECTORY [--ranks 1 2 64 4096 10000]

RUN is a run of two ranks such as tests/data/ranks/recorded/ddp_slow_gpu, of which `lab.ranks.many_facts` makes
the jobs; they stay in DIRECTORY for the next time. A real TensorBoard, which has read all of them by its fast loader,
serves them to a real Chromium. Printed are, for each job: seconds until the page is painted, the first time and again;
the size of the answer; the longest piece of the main thread while it opens; and the median and longest time between
frames while the table of ranks is scrolled, while the pointer moves over the heat map, and the time until the table is
sorted.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import statistics
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Response, sync_playwright

from ..ranks.many_facts import write_job  # type: ignore[import-not-found]  # mypy knows it as ranks.many_facts
from .serving import OURS, chromium_path, listed_runs, tensorboard

_STEPS, _STRAGGLER = 0, 37
_WATCH = """
window.longTasks = [];
new PerformanceObserver((list) => list.getEntries().forEach((each) => longTasks.push(each.duration)))
  .observe({ entryTypes: ["longtask"] });
"""
_MOVED = """
async ([selector, kind, frames]) => {
  const target = document.querySelector(selector);
  if (target === null) return [];
  target.scrollIntoView({ block: "center" });
  const box = target.getBoundingClientRect();
  const times = [];
  let last = null;
  for (let step = 0; step < frames; step++) {
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    if (last !== null) times.push(now - last);
    last = now;
    if (kind === "scroll") target.scrollTop = (target.scrollHeight * step) / frames;
    else {
      const at = { clientX: box.left + (box.width * step) / frames, clientY: box.top + (box.height * step) / frames };
      target.dispatchEvent(new MouseEvent("mousemove", { bubbles: true, ...at }));
    }
  }
  return times;
}
"""
_SORTED = """
async () => {
  const header = document.querySelector("[data-testid=ranks-table] thead th:nth-child(3) button");
  const started = performance.now();
  header.click();
  await new Promise((painted) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = painted;
    channel.port2.postMessage(null);
  }));
  return performance.now() - started;
}
"""


def main() -> None:
    """Prints a line for each job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 64, 4096, 10_000])
    given = parser.parse_args()
    for ranks in given.ranks:
        _write(given.run, given.out / "whole" / f"ranks{ranks}", ranks)
    half = given.out / "half" / f"ranks{max(given.ranks)}"
    if not half.exists():
        half.mkdir(parents=True)
        whole = given.out / "whole" / half.name
        for path in itertools.islice(sorted(whole.iterdir()), 0, None, 2):
            (half / path.name).hardlink_to(path)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox", "--disable-gpu"])
        for folder in (given.out / "whole", half.parent):
            jobs = sorted(folder.iterdir(), key=lambda job: int(job.name[5:]))
            with tensorboard(folder, OURS, fast=True) as (address, _):
                listed_runs(address, sum(len(list(job.iterdir())) for job in jobs))
                for job in jobs:
                    for time in ("first", "again"):
                        print(f"{folder.name} {job.name}, {time}: {_opened(browser, address, job.name)}", flush=True)
        browser.close()


def _write(run: Path, job: Path, ranks: int) -> None:
    if job.exists():
        return
    part = job.with_name(f".{job.name}")
    shutil.rmtree(part, ignore_errors=True)
    write_job(run, part, ranks, _STEPS, 0, _STRAGGLER % ranks)
    part.rename(job)


def _opened(browser: Browser, address: str, run: str) -> str:
    """The figures of one job, in a browser that has seen nothing yet."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        page = context.new_page()
        page.add_init_script(_WATCH)
        sizes: list[int] = []
        page.on("response", lambda answer: _note_size(answer, sizes))
        alone = f"{address}/data/plugin_entry.html?name={OURS}"
        page.goto(f"{alone}#tb_dlprof&p.tb_dlprof.run={run}&p.tb_dlprof.page=distributed")
        page.get_by_test_id("rank-accounts").wait_for(timeout=120_000)
        seconds = page.evaluate("performance.now()") / 1000
        page.wait_for_load_state("networkidle")
        longest = page.evaluate("Math.max(0, ...longTasks)")
        page.wait_for_timeout(300)
        return f"{seconds:.1f} s, {max(sizes, default=0) / 1000:.0f} kB, longest task {longest:.0f} ms, {_moved(page)}"
    finally:
        context.close()


def _note_size(answer: Response, sizes: list[int]) -> None:
    if "/distributed" in answer.url:
        sizes.append(len(answer.body()))


def _moved(page: Page) -> str:
    moved = {
        "table": ("[data-testid=ranks-table] .table-box", "scroll"),
        "heat map": (".heat-cells", "move"),
    }
    found = []
    for name, (selector, kind) in moved.items():
        times: list[Any] = page.evaluate(_MOVED, [selector, kind, 120])
        if times:
            found.append(f"{name} {statistics.median(times):.0f}/{max(times):.0f} ms a frame")
    found.append(f"sorted in {page.evaluate(_SORTED):.0f} ms")
    return ", ".join(found)


if __name__ == "__main__":
    main()
