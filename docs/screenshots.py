"""Takes the pictures in docs/images: every page over recorded runs, in a real TensorBoard and Chromium.

Summary is there in both themes.

    python docs/screenshots.py                # all pages
    python docs/screenshots.py overview ops   # some

The runs, the size of the window and the scale are fixed, so that a picture changes only with the page. It needs the
`dev` extra, the browser bundle and a Chromium; all pictures together must stay below 2.5 MB.
"""

from __future__ import annotations

import io
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.store.event_file import write_profile

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1440, 960
LIMIT_BYTES = 2_500_000
START_SECONDS = 90
RUN = "resnet50/amp-fp16"
PAGES = {
    "overview": "vgg16/fp32",
    "ops": RUN,
    "modules": RUN,
    "kernels": RUN,
    "timeline": "lenet/amp-fp16",
    "tensor_cores": RUN,
    "roofline": RUN,
    "compiled": "compiled",
    "memory": "memory",
    "plan": "gpt",
    "energy": "gpt",
    "advice": "vgg16/fp32",
    "reports": RUN,
    "compare": "",
    "runs": "",
    "distributed": "two_ranks",
}
"""The run that each page shows."""
PAIR = "p.tb_dlprof.a.run=resnet50/fp32&p.tb_dlprof.b.run=resnet50/amp-fp16"
SETTLED = "document.querySelector('main h1') && !document.querySelector('[aria-busy=\"true\"], .skeleton, progress')"


def runs(logdir: Path) -> int:
    """The recorded runs, with memory, of two ranks, with energy and of torch.compile, in ``logdir``; returns how many
    profiles the index has."""
    recorded = ROOT / "demo" / "recorded"
    events = sorted(recorded.rglob("events.out.tfevents.*"))
    for event in events:
        target = logdir / event.relative_to(recorded)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(event, target)
    write_profile(logdir / "memory", analyze_trace(ROOT / "tests" / "traces" / "with_memory.pt.trace.json.gz"))
    shutil.copytree(ROOT / "tests" / "data" / "ranks" / "recorded" / "ddp_slow_gpu", logdir / "two_ranks")
    shutil.copytree(ROOT / "tests" / "data" / "energy" / "recorded" / "gpt" / "fp32", logdir / "gpt")
    shutil.copytree(ROOT / "tests" / "data" / "compiled" / "hook" / "gpt.default", logdir / "compiled")
    return len(events) + 5


@contextmanager
def tensorboard(logdir: Path, count: int) -> Iterator[str]:
    """The address of a TensorBoard that lists all ``count`` runs."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "tensorboard.main",
        "--logdir",
        str(logdir),
        "--port",
        str(port),
        "--load_fast",
        "false",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://localhost:{port}/"
    try:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{address}data/plugin/tb_dlprof/runs", timeout=30) as answer:
                    if len(json.load(answer)["runs"]) >= count:
                        break
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(0.3)
        else:
            sys.exit(f"TensorBoard did not list {count} runs within {START_SECONDS} s.")
        yield address
    finally:
        process.terminate()
        process.wait(timeout=20)


def take(page: Page, address: str, name: str, theme: str) -> Path:
    """One picture of the window, as a WebP file."""
    run = f"&p.tb_dlprof.run={PAGES[name]}" if PAGES[name] else ""
    page.goto("about:blank")
    page.goto(
        f"{address}?darkMode={'true' if theme == 'dark' else 'false'}#tb_dlprof&p.tb_dlprof.page={name}{run}&{PAIR}"
    )
    element = page.wait_for_selector("iframe[src*='tb_dlprof']", state="attached")
    frame = element.content_frame() if element else None
    assert frame is not None, "no page of ours in this TensorBoard"
    frame.wait_for_selector(f"html[data-theme={theme}]", state="attached")
    frame.wait_for_function(SETTLED, timeout=60_000)
    page.wait_for_timeout(800)
    target = IMAGES / f"{name}-{theme}.webp"
    Image.open(io.BytesIO(page.screenshot())).save(target, "WEBP", quality=76, method=6)
    return target


def main(names: list[str]) -> int:
    """Takes them; returns the exit status."""
    unknown = [name for name in names if name not in PAGES]
    if unknown:
        print(f"No such page: {', '.join(unknown)}. There are {', '.join(PAGES)}.", file=sys.stderr)
        return 2
    chromium = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
    IMAGES.mkdir(parents=True, exist_ok=True)
    with (
        TemporaryDirectory() as folder,
        tensorboard(Path(folder), runs(Path(folder))) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        for name in names or PAGES:
            for theme in ("light", "dark") if name == "overview" else ("light",):
                print(take(page, address, name, theme).relative_to(ROOT))
        browser.close()
    size = sum(path.stat().st_size for path in IMAGES.iterdir())
    print(f"{size / 1e6:.2f} MB in all")
    return 0 if size < LIMIT_BYTES else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
