"""The demo's notebook runs top to bottom in a real JupyterLab, and its cells show the page with its runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect
from support.jupyter import jupyter_lab
from support.tensorboard import ROOT

import tb_dlprof_plugin
from tb_dlprof_plugin.pages.compare import compare_page
from tb_dlprof_plugin.pages.compare_metrics import CompareInput
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

pytestmark = pytest.mark.long
"""`tests/e2e/test_colab.py` and `tests/demo/test_notebook.py` run the cells in less time."""

NAME = "colab.ipynb"
_START_MS, _RUN_MS = 60_000, 150_000


@dataclass(frozen=True)
class Played:
    """The notebook after its last cell: the browser's page, the file as Jupyter saved it, what it recorded."""

    page: Page
    cells: list[dict[str, Any]]
    logdir: Path
    errors: list[str]


@pytest.fixture(scope="module")
def played(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Opens the notebook in JupyterLab, runs all cells from the menu and saves."""
    root = tmp_path_factory.mktemp("jupyter")
    logdir = root / "runs of a test"
    settings = {
        "TB_DLPROF_NOTEBOOK_QUICK": "1",
        "TB_DLPROF_NOTEBOOK_LOGDIR": str(logdir),
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }
    with jupyter_lab(root, **settings) as jupyter:
        shutil.copy(ROOT / "demo" / NAME, jupyter.folder)
        context = browser.new_context(viewport={"width": 1440, "height": 1000})
        page, errors = context.new_page(), []
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(jupyter.address(NAME))
        idle = page.get_by_text("Python 3 (ipykernel) | Idle")
        expect(idle).to_be_visible(timeout=_START_MS)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        expect(page.locator(".jp-InputPrompt", has_text="[*]").first).to_be_visible()
        expect(page.locator(".jp-InputPrompt", has_text="[*]")).to_have_count(0, timeout=_RUN_MS)
        page.keyboard.press("Control+s")
        expect(page.locator(".jp-mod-dirty")).to_have_count(0)
        cells = json.loads((jupyter.folder / NAME).read_text())["cells"]
        yield Played(page, [cell for cell in cells if cell["cell_type"] == "code"], logdir, errors)
        context.close()


def frame_of(played: Played, run: str) -> ProfileView:
    (stored,) = tb_dlprof_plugin.read_profiles(played.logdir / run)
    return ProfileView(stored.profile)


def shown_by_tensorboard(played: Played) -> FrameLocator:
    """The plugin's page in TensorBoard's in the cell."""
    outer = played.page.frame_locator("iframe[id^=tensorboard-frame]")
    return outer.frame_locator("iframe")


def test_every_cell_runs(played: Played) -> None:
    said = [(cell["source"], cell["outputs"]) for cell in played.cells]
    assert [cell["execution_count"] for cell in played.cells] == list(range(1, len(played.cells) + 1)), said
    assert [output for cell in played.cells for output in cell["outputs"] if output["output_type"] == "error"] == []
    written = [path.parent.name for path in played.logdir.rglob("events.out.tfevents.*")]
    assert sorted(written) == ["amp", "fp32"]


def _headline_of_pair(played: Played) -> str:
    sides = [
        CompareInput(recorded, RunRef(run, "", 0, 0), recorded.selection())
        for run in ("fp32", "amp")
        for recorded in [frame_of(played, run)]
    ]
    return compare_page(*sides).headline


def test_the_cell_of_tensorboard_opens_on_the_two_runs(played: Played) -> None:
    frame = shown_by_tensorboard(played)
    expect(frame.get_by_test_id("headline")).to_have_text(_headline_of_pair(played), timeout=_START_MS)
    assert played.errors == []


@pytest.mark.long
def test_the_pages_of_the_cell_can_be_walked(played: Played) -> None:
    frame = shown_by_tensorboard(played)
    frame.get_by_test_id("place-explore").click()
    expect(frame.get_by_text("conv2d", exact=False).first).to_be_visible(timeout=_START_MS)
    assert played.errors == []


def test_show_puts_the_page_alone_into_a_cell(played: Played) -> None:
    frame = played.page.frame_locator("iframe[id^=tb-dlprof]")
    expect(frame.get_by_test_id("headline")).to_have_text(_headline_of_pair(played), timeout=_START_MS)
    assert played.errors == []
