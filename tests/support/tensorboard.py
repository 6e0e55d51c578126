"""A real TensorBoard on a free port, and a page that keeps what went wrong on it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import FrameLocator, Page, expect

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "demo" / "recorded"
_START_SECONDS = 90.0
PAGE_MS = 30_000
"""How long a page may take: the machine has other work."""


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

    def open_in_tensorboard(self, server: Server, page: str, **state: str) -> FrameLocator:
        """Opens our page in TensorBoard's; returns its frame once it has its headline."""
        self.page.goto("about:blank")
        self.page.goto(server.url + address(page, **state))
        frame = self.page.frame_locator("iframe")
        expect(frame.get_by_test_id("headline")).to_be_visible(timeout=PAGE_MS)
        return frame

    def nothing_went_wrong(self) -> None:
        """No console error, and no request left this machine."""
        assert (self.errors, self.foreign) == ([], [])


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


def start_tensorboard(logdir: Path, load_fast: str, runs: int, reload_s: int = 1) -> Server:
    """TensorBoard on a free port; returns when it lists at least ``runs`` profiles.

    It reads the logdir again every ``reload_s`` seconds.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--load_fast", load_fast, "--reload_interval", str(reload_s)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = Server(f"http://127.0.0.1:{port}/", process)
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, f"tensorboard ended with {process.returncode}"
        try:
            index = server.get("runs")
            assert isinstance(index, dict)
            if len(index["runs"]) >= runs:
                return server
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.2)
    process.kill()
    raise AssertionError(f"tensorboard did not list {runs} runs of {logdir} within {_START_SECONDS} s")
