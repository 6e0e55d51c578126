"""Takes docs/images/tour.webp, the moving picture of the README: a few pages over recorded runs in a real TensorBoard.

    python docs/tour.py

The runs are those of `screenshots.py`, so that the picture changes only with the pages. It needs the `dev` extra, the
browser bundle and a Chromium, and must stay below 2 MB.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Frame, Page, sync_playwright
from screenshots import IMAGES, PAIR, SETTLED, runs, tensorboard

WINDOW = {"width": 1440, "height": 860}
WIDTH, CAPTION_HEIGHT = 1080, 44
LIMIT_BYTES = 2_000_000
STILL_MS, MOVING_MS = 3000, 140
QUALITY = 50


@dataclass(frozen=True, slots=True)
class Scene:
    """A page of a run, with what moves on it: notches of the mouse wheel, in all and at once.

    ``zoom`` turns the wheel over the middle of the drawing with Control held, which zooms the timeline; otherwise the
    page is scrolled.
    """

    caption: str
    page: str
    run: str = ""
    wheel: tuple[int, ...] = ()
    zoom: bool = False


SCENES = (
    Scene("Where does the step go?  VGG-16 in FP32 on an H200", "overview", "vgg16/fp32"),
    Scene("What should I change, and what would it save?", "advice", "vgg16/fp32", wheel=(300,) * 2),
    Scene("What runs when, and why is the GPU idle?", "timeline", "lenet/fp32", wheel=(-340,) * 5, zoom=True),
    Scene("Which layer, which kernel, on Tensor Cores?", "tensor_cores", "resnet50/amp-fp16"),
    Scene("FP32 compared with mixed precision: what became faster, and is it noise?", "compare", wheel=(330,) * 2),
)


def frames(page: Page, address: str, scene: Scene) -> Iterator[tuple[Image.Image, int]]:
    """The pictures of a scene, each with how long it is shown, in milliseconds."""
    frame = _open(page, address, scene)
    yield _picture(page, scene), STILL_MS
    page.mouse.move(WINDOW["width"] / 2, WINDOW["height"] * 0.62)
    for number, notch in enumerate(scene.wheel):
        if scene.zoom:
            page.keyboard.down("Control")
        page.mouse.wheel(0, notch)
        if scene.zoom:
            page.keyboard.up("Control")
        page.wait_for_timeout(350)
        frame.wait_for_function(SETTLED, timeout=60_000)
        last = number == len(scene.wheel) - 1
        yield _picture(page, scene), STILL_MS // 2 if last or not scene.zoom else MOVING_MS


def _open(page: Page, address: str, scene: Scene) -> Frame:
    run = f"&p.tb_dlprof.run={scene.run}" if scene.run else ""
    page.goto("about:blank")
    page.goto(f"{address}?darkMode=false#tb_dlprof&p.tb_dlprof.page={scene.page}{run}&{PAIR}")
    element = page.wait_for_selector("iframe[src*='tb_dlprof']", state="attached")
    frame = element.content_frame() if element else None
    assert frame is not None, "no page of ours in this TensorBoard"
    frame.wait_for_function(SETTLED, timeout=60_000)
    page.wait_for_timeout(1000)
    return frame


def _picture(page: Page, scene: Scene) -> Image.Image:
    """The window, with the scene's caption below it."""
    window = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    window = window.resize((WIDTH, round(window.height * WIDTH / window.width)), Image.Resampling.LANCZOS)
    picture = Image.new("RGB", (WIDTH, window.height + CAPTION_HEIGHT), "#1f2430")
    picture.paste(window, (0, 0))
    ImageDraw.Draw(picture).text(
        (18, window.height + CAPTION_HEIGHT / 2), scene.caption, "#ffffff", ImageFont.load_default(20), anchor="lm"
    )
    return picture


def save(pictures: list[tuple[Image.Image, int]], target: Path) -> int:
    """Writes the moving picture; returns its size in bytes."""
    first, *others = [picture for picture, _ in pictures]
    durations = [duration for _, duration in pictures]
    first.save(
        target, "WEBP", save_all=True, append_images=others, duration=durations, loop=0, quality=QUALITY, method=6
    )
    return target.stat().st_size


def main() -> int:
    """Takes it; returns the exit status."""
    chromium = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
    pictures: list[tuple[Image.Image, int]] = []
    with (
        TemporaryDirectory() as folder,
        tensorboard(Path(folder), runs(Path(folder))) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=WINDOW)
        for scene in SCENES:
            pictures += frames(page, address, scene)
        browser.close()
    size = save(pictures, IMAGES / "tour.webp")
    print(f"docs/images/tour.webp: {len(pictures)} pictures, {size / 1000:,.0f} kB")
    return 0 if size < LIMIT_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
