"""A real TensorBoard on a free port, or `tb-dlprof view`, and a page that keeps what went wrong on it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import FrameLocator, Page, expect

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "demo" / "recorded"
_START_SECONDS = 90.0
BY_VIEW = os.environ.get("TB_DLPROF_TESTED_SERVER") == "view"
"""Whether the tests in a browser read the pages from `tb-dlprof view`; `make test-all` runs them under both."""
PAGE_MS = 30_000
"""How long a page may take: the machine has other work."""


OF_TENSORBOARD = pytest.mark.skipif(BY_VIEW, reason="it is about TensorBoard around our page")


@dataclass
class Server:
    """A running TensorBoard; ``url`` ends with a slash."""

    url: str
    process: subprocess.Popen[bytes]

    @property
    def page_alone(self) -> str:
        """Our page without TensorBoard's around it, which takes most of the time to load; it has the same address
        below "#tb_dlprof" and the same security policy."""
        return f"{self.url}data/plugin_entry.html?name=tb_dlprof"

    def get(self, path: str) -> object:
        """The JSON of one of the plugin's routes, such as "overview?run=a"."""
        with urllib.request.urlopen(f"{self.url}data/plugin/tb_dlprof/{path}", timeout=60) as answer:
            return json.load(answer)


@dataclass
class Watched:
    """A page and what went wrong on it."""

    page: Page
    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def open(self, server: Server, page: str, **state: str) -> Page:
        """Opens our page alone; returns it once it has its headline."""
        self.page.goto("about:blank")
        self.page.goto(server.page_alone + address(page, **state))
        expect(self.page.get_by_test_id("headline")).to_be_visible(timeout=PAGE_MS)
        return self.page

    def open_in_tensorboard(self, server: Server, page: str, **state: str) -> FrameLocator | Page:
        """Opens our page in TensorBoard's; returns its frame once it has its headline."""
        self.page.goto("about:blank")
        self.page.goto(server.url + address(page, **state))
        frame = frame_in(self.page)
        expect(frame.get_by_test_id("headline")).to_be_visible(timeout=PAGE_MS)
        return frame

    def nothing_went_wrong(self) -> None:
        """No console error, and no request left this machine."""
        assert (self.errors, self.foreign) == ([], [])


def frame_in(page: Page) -> FrameLocator | Page:
    """Where our page is at the server's address: a frame of TensorBoard's page, or that page itself."""
    return page if BY_VIEW else page.frame_locator("iframe")


def address(page: str, **state: str) -> str:
    """What stands behind the address of TensorBoard or of the page alone: a page and the state of it."""
    return "#tb_dlprof" + "".join(f"&p.tb_dlprof.{key}={value}" for key, value in {"page": page, **state}.items())


def figure(where: FrameLocator | Page, test_id: str) -> float:
    """The exact number behind a figure on the page."""
    text = where.get_by_test_id(test_id).get_attribute("data-value")
    assert text is not None, f"{test_id} shows no number"
    return float(text)


def holding(text: str) -> re.Pattern[str]:
    """What `expect(page).to_have_url()` waits for: our frame tells TensorBoard its state in messages."""
    return re.compile(re.escape(text))


def start_server(logdir: Path, load_fast: str, runs: int, reload_s: int = 1) -> Server:
    """The server of this run of the tests, as `start_tensorboard` starts one."""
    if not BY_VIEW:
        return start_tensorboard(logdir, load_fast, runs, reload_s)
    port = _free_port()
    command = [sys.executable, "-m", "tb_dlprof_plugin.cli.main", "view", str(logdir), "--no-browser"]
    return _listing(logdir, [*command, "--port", str(port)], port, runs)


def start_tensorboard(logdir: Path, load_fast: str, runs: int, reload_s: int = 1) -> Server:
    """TensorBoard on a free port; returns when it lists at least ``runs`` profiles.

    It reads the logdir again every ``reload_s`` seconds.
    """
    port = _free_port()
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--load_fast", load_fast, "--reload_interval", str(reload_s)]
    return _listing(logdir, command, port, runs)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listing(logdir: Path, command: list[str], port: int, runs: int) -> Server:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = Server(f"http://127.0.0.1:{port}/", process)
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, f"{command[2]} ended with {process.returncode}"
        try:
            index = server.get("runs")
            assert isinstance(index, dict)
            if len(index["runs"]) >= runs:
                return server
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.2)
    process.kill()
    raise AssertionError(f"{command[2]} did not list {runs} runs of {logdir} within {_START_SECONDS} s")
