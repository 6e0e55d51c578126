"""A real TensorBoard under both of its loaders, and a real Chromium that watches for errors and for requests that leave."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "demo" / "recorded"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
_START_SECONDS = 90.0


@dataclass
class Server:
    """A running TensorBoard; ``url`` ends with a slash."""

    url: str
    process: subprocess.Popen[bytes]

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


def start_tensorboard(logdir: Path, load_fast: str, runs: int) -> Server:
    """TensorBoard on a free port; returns when it lists at least ``runs`` profiles."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--load_fast", load_fast, "--reload_interval", "1"]
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


@pytest.fixture(scope="module", params=["true", "false"], ids=["load_fast", "load_slow"])
def load_fast(request: pytest.FixtureRequest) -> str:
    """TensorBoard's two loaders: the Rust data server and the Python one."""
    return str(request.param)


@pytest.fixture(scope="module")
def serve(load_fast: str) -> Iterator[Callable[[Path, int], Server]]:
    """Starts TensorBoards that end with the module."""
    servers: list[Server] = []

    def start(logdir: Path, runs: int) -> Server:
        servers.append(start_tensorboard(logdir, load_fast, runs))
        return servers[-1]

    yield start
    for server in servers:
        server.process.terminate()
    for server in servers:
        server.process.wait(timeout=20)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, as the distribution installs it."""
    path = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    assert path is not None, "no Chromium: install it (on Debian: apt-get install -y chromium)"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        yield running
        running.close()


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    """A fresh page whose console errors and foreign requests are kept."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    result = Watched(page)
    page.on("console", lambda message: result.errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: result.errors.append(str(error)))
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith(("http://127.0.0.1:", "data:", "blob:", "about:"))
            else result.foreign.append(request.url)
        ),
    )
    yield result
    context.close()
