"""Measures how fast the page is in Chromium, compared with torch-tb-profiler's on the same trace, and the bundle's
size; and how long it takes from one place of the page to the next.

First paint is from the navigation until the tab's headline figures are painted, with an empty browser cache, for the
plugin's own page and within TensorBoard; once with a server that has answered before, and once from its start.
torch-tb-profiler loads its charts from the web: a stand-in that draws nothing takes their place, so its figures are
those of its data and table alone. The best of the repetitions counts: whatever else runs on the machine only adds.

    python -m lab.browser --repeats 5
"""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import statistics
import tempfile
from importlib import metadata, resources
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from .first_page import FIRST_PAGE, LIMIT_BYTES
from .paint import first_paint
from .places import place_changes
from .serving import OURS, PEER, chromium_path, listed_runs, make_logdir, tensorboard
from .tables import ACTIONS, follow

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "tests" / "traces" / "resnet50_fp32.pt.trace.json.gz"
RECORDED = ROOT / "demo" / "recorded"
PLACES_OF = "resnet50/fp32"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, default=TRACE)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    print(f"{_processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {options.trace.name}")
    _print_bundle()
    path = chromium_path()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        logdirs = {plugin: Path(folder) / plugin for plugin in (OURS, PEER)}
        for plugin, logdir in logdirs.items():
            make_logdir(options.trace, logdir, plugin)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        print(f"Chromium {browser.version}, torch-tb-profiler {metadata.version('torch-tb-profiler')}")
        _print_tables(browser, logdirs[OURS], options.rows, options.repeats)
        _print_places(browser, options.repeats)
        _print_paints(browser, logdirs, options.repeats)
        browser.close()
    print(f"load afterwards {os.getloadavg()[0]:.1f}")


def _print_bundle() -> None:
    files = sorted(path for path in (ROOT / "tb_dlprof_plugin" / "static").rglob("*.js"))
    sizes = {path.name: len(gzip.compress(path.read_bytes())) for path in files}
    first = sum(size for name, size in sizes.items() if name.startswith(FIRST_PAGE))
    limit = f"{'within' if sum(sizes.values()) <= LIMIT_BYTES else 'ABOVE'} {LIMIT_BYTES // 1000} kB"
    print(f"first page, gzip: {first / 1000:.0f} kB")
    print(f"  all pages: {sum(sizes.values()) / 1000:.0f} kB; {limit}")
    theirs = sum(len(gzip.compress((_peer_files() / name).read_bytes())) for name in ("index.js", "index.html"))
    print(f"  torch-tb-profiler's page: {theirs / 1000:.0f} kB, without its charts; ratio {first / theirs:.2f}")


def _peer_files() -> Path:
    return Path(str(resources.files("torch_tb_profiler"))) / "static"


def _print_tables(browser: Browser, logdir: Path, rows: int, repeats: int) -> None:
    with tensorboard(logdir, OURS) as (address, _):
        columns, followed = follow(browser, address, rows, repeats)
    print(f"\n{rows:,} rows of {columns} columns, ms until painted (best, median) and of the main thread (best):")
    for label, query in dict.fromkeys(ACTIONS):
        mine = [one for one in followed if (one.label, one.query) == (label, query)]
        walls = sorted(one.wall_ms for one in mine)
        what = f"sort by {label}" if query is None else f"{label}: {query!r} typed"
        print(f"  {what:32} {walls[0]:4.0f} {walls[len(walls) // 2]:5.0f} {min(one.cpu_ms for one in mine):5.0f}")


def _print_places(browser: Browser, repeats: int) -> None:
    with tensorboard(RECORDED, OURS) as (address, _):
        listed_runs(address, len(list(RECORDED.glob("*/*"))))
        alone = f"{address}/data/plugin_entry.html?name={OURS}"
        changes = place_changes(browser, alone, PLACES_OF, repeats)
    print(f"\nfrom one place of {PLACES_OF} to the next, shown before, ms until painted (best, median):")
    for place, times in changes.items():
        print(f"  {place:32} {min(times):4.0f} {statistics.median(times):5.0f}")


def _print_paints(browser: Browser, logdirs: dict[str, Path], repeats: int) -> None:
    times: dict[str, dict[str, list[float]]] = {}
    # The two take turns, so that a busy machine burdens both.
    for _ in range(repeats):
        for plugin, logdir in logdirs.items():
            with tensorboard(logdir, plugin) as (address, offered):
                cold = first_paint(browser, address, plugin, alone=True)
                measured = {
                    "server warm, own page": first_paint(browser, address, plugin, alone=True),
                    "server warm, in TensorBoard": first_paint(browser, address, plugin, alone=False),
                    "server's first answer, own page": cold,
                    "from TensorBoard's start": offered + cold,
                }
            for what, seconds in measured.items():
                times.setdefault(what, {}).setdefault(plugin, []).append(seconds)
    print("\nfirst paint of the overview's figures, s (best): ours, torch-tb-profiler's, ratio")
    for what, both in times.items():
        ours, theirs = min(both[OURS]), min(both[PEER])
        print(f"  {what:32} {ours:6.2f} {theirs:6.2f} {ours / theirs:6.2f}")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
