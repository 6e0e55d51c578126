"""Counts the actions and seconds in which ten questions of a user are answered on the page, from Summary.

A real TensorBoard on ``demo/recorded`` in Chromium, our page alone in a window of 1440 by 836 pixels, what
TensorBoard's bar leaves of 1440 by 900. Seconds are from before the first action until the answer, whose text is
checked, is in the window; they include what it takes to send an action to the browser.

    python -m lab.browser.ten_tasks --repeats 3
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from .serving import OURS, chromium_path, listed_runs, tensorboard
from .user_tasks import USER_TASKS, Action, UserTask, open_summary, perform

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
WINDOW = {"width": 1440, "height": 836}
MOST_ACTIONS = 3


def main() -> None:
    """Measures and prints; ends with an error where a task takes more clicks than `MOST_ACTIONS`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    most = 0
    print(f"load {os.getloadavg()[0]:.1f}")
    print(f"{'':64} {'clicks':>6} {'s':>5}   {'keys':>4} {'s':>5}")
    with tensorboard(RECORDED, OURS) as (address, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport=WINDOW, reduced_motion="reduce")  # type: ignore[arg-type]
        listed_runs(address, len(list(RECORDED.glob("*/*"))))
        alone = f"{address}/data/plugin_entry.html?name={OURS}"
        for task in USER_TASKS:
            clicks, clicking = _median(page, alone, task, task.clicks, options.repeats)
            keys, pressing = _median(page, alone, task, task.keys, options.repeats)
            most = max(most, clicks)
            print(f"{task.question:64} {clicks:6} {clicking:5.2f}   {keys:4} {pressing:5.2f}")
        browser.close()
    print(f"most clicks: {most}; load afterwards {os.getloadavg()[0]:.1f}")
    if most > MOST_ACTIONS:
        raise SystemExit(f"A task takes more than {MOST_ACTIONS} clicks.")


def _median(page: Page, address: str, task: UserTask, actions: tuple[Action, ...], repeats: int) -> tuple[int, float]:
    """Actions, and the median of their seconds."""
    seconds, count = [], 0
    for _ in range(repeats):
        open_summary(page, address, task.run)
        begin = time.perf_counter()
        count = perform(page, task, actions)
        seconds.append(time.perf_counter() - begin)
    return count, statistics.median(seconds)


if __name__ == "__main__":
    main()
