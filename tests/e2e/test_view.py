"""`tb-dlprof view` in a browser: the pages without a TensorBoard, and a run that is recorded meanwhile."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.tensorboard import PAGE_MS, RECORDED, Server, Watched, address


@pytest.fixture
def viewed(tmp_path: Path) -> Iterator[Server]:
    shutil.copytree(RECORDED / "lenet" / "fp32", tmp_path / "fp32")
    command = [sys.executable, "-m", "tb_dlprof_plugin.cli.main", "view", str(tmp_path), "--no-browser", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    url = next(word for word in process.stdout.readline().decode().split() if word.startswith("http://"))
    yield Server(url, process)
    process.terminate()
    process.communicate(timeout=30)


def test_pages_open_at_tensorboards_addresses_and_follow_new_runs(
    viewed: Server, watched: Watched, tmp_path: Path
) -> None:
    page = watched.page
    for name in ("overview", "ops", "timeline"):
        page.goto("about:blank")
        page.goto(viewed.url + address(name, run="fp32"))
        expect(page.get_by_test_id("headline")).to_be_visible(timeout=PAGE_MS)
        assert page.url.startswith(viewed.url + "#tb_dlprof")
    shutil.copytree(RECORDED / "lenet" / "amp-fp16", tmp_path / "amp")
    page.wait_for_timeout(2_500)  # As old as a listing may be.
    watched.open(viewed, "compare")
    expect(page.get_by_test_id("compare-speedup")).to_be_visible(timeout=PAGE_MS)
    watched.nothing_went_wrong()
