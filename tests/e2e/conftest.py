"""TensorBoards under both loaders, and a Chromium that watches for errors and foreign requests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright
from support.tensorboard import Server, Watched, start_tensorboard

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


BOTH_LOADERS = pytest.mark.parametrize("load_fast", ["true", "false"], ids=["load_fast", "load_slow"], scope="module")
"""For a test that `make test`, too, runs under each of TensorBoard's loaders."""


@pytest.fixture(
    scope="module", params=["false", pytest.param("true", marks=pytest.mark.long)], ids=["load_slow", "load_fast"]
)
def load_fast(request: pytest.FixtureRequest) -> str:
    """TensorBoard's two loaders: the Rust data server and the Python one.

    They differ in how event files are read, which `tests/web` examines under both; pages need one of them.
    """
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
def chromium() -> str:
    """The path of Chromium, as the distribution installs it."""
    path = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    assert path is not None, "no Chromium: install it (on Debian: apt-get install -y chromium)"
    return path


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    """A running Chromium. Its contexts are private ones, which deny storage to frames of other sites."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        yield running
        running.close()


@pytest.fixture
def storing(browser: Browser, chromium: str, tmp_path: Path) -> Iterator[BrowserContext]:
    """A context that is not private and gives storage to frames of other sites, too."""
    profile = tmp_path / "profile"
    (profile / "Default").mkdir(parents=True)
    allowed = {"profile": {"block_third_party_cookies": False, "cookie_controls_mode": 0}}
    (profile / "Default" / "Preferences").write_text(json.dumps(allowed))
    context = browser.browser_type.launch_persistent_context(str(profile), executable_path=chromium, args=_FLAGS)
    yield context
    context.close()


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
