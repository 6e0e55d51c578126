"""TensorBoards under both loaders, and a Chromium that watches for errors and foreign requests.

Most tests read one of three TensorBoards that a worker starts once, `SHARED`, and open a page in one context of the
browser: starting and loading took most of their time. A test that writes to its logdir has a TensorBoard of its own.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from support.stored_profiles import trial_result
from support.tensorboard import BY_VIEW, PAGE_MS, RECORDED, ROOT, Server, Watched, start_server

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.store.event_file import write_profile

# Five seconds, as Playwright waits by itself, are few for a machine with other work.
expect.set_options(timeout=PAGE_MS)

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


collect_ignore = ["test_colab.py", "test_notebook.py", "test_pytorch_tab.py"] if BY_VIEW else []
"""What is about TensorBoard alone."""
TRACES = ROOT / "tests" / "traces"
MEMORY_TRACE = ROOT / "tests" / "metrics" / "recorded" / "resnet18_memory_h200.pt.trace.json.gz"
FEW = (
    "vgg16/fp32", "vgg16/amp-fp16", "vgg16/amp-bf16", "resnet50/fp32", "resnet50/amp-fp16", "lenet/fp32",
    "lenet/amp-fp16", "lenet/amp-bf16",
)  # fmt: skip
"""The recorded runs of the shared TensorBoard "few"."""
FROM_TRACES = {"cpu": "cpu_training", "memory": "all_options", "gpus": "data_parallel"}
"""Its runs that come from a trace: one on the CPU with a trial, one with memory and module names, one on two GPUs."""
UNMARKED = "unmarked"
"""Its twelfth run: six forward passes on the CPU whose steps nothing marks. With one more run, pickers would be lists
to search."""

BOTH_LOADERS = pytest.mark.parametrize(
    "load_fast",
    ["true", pytest.param("false", marks=pytest.mark.long)],
    ids=["load_fast", "load_slow"],
    scope="module",
)
"""For a test that `make landing` runs under TensorBoard's usual loader, of which other browser tests have the other."""


@pytest.fixture(
    scope="module", params=["false", pytest.param("true", marks=pytest.mark.long)], ids=["load_slow", "load_fast"]
)
def load_fast(request: pytest.FixtureRequest) -> str:
    """TensorBoard's two loaders: the Rust data server and the Python one.

    They differ in how event files are read, which `tests/web` examines under both; pages need one of them.
    """
    return str(request.param)


def _end(servers: list[Server]) -> None:
    for server in servers:
        server.process.terminate()
    for server in servers:
        server.process.wait(timeout=20)


@pytest.fixture(scope="module")
def serve(load_fast: str) -> Iterator[Callable[[Path, int], Server]]:
    """Starts TensorBoards that end with the module."""
    servers: list[Server] = []

    def start(logdir: Path, runs: int) -> Server:
        servers.append(start_server(logdir, load_fast, runs))
        return servers[-1]

    yield start
    _end(servers)


@pytest.fixture(scope="session")
def few_runs(tmp_path_factory: pytest.TempPathFactory, new_trace: Callable[..., Any]) -> Path:
    """The logdir of "few": twelve runs."""
    root = tmp_path_factory.mktemp("few")
    for run in FEW:
        shutil.copytree(RECORDED / run, root / run)
    for name, trace in FROM_TRACES.items():
        profile = analyze_trace(TRACES / f"{trace}.pt.trace.json.gz")
        write_profile(root / name, replace(profile, trial=trial_result() if name == "cpu" else None))
    passes = new_trace()
    for index in range(6):
        passes.op("aten::linear", 100 * index, 40)
        passes.op("aten::relu", 100 * index + 50, 20)
    write_profile(root / UNMARKED, passes.profile())
    return root


@pytest.fixture(scope="session")
def many_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logdir of "many": all runs of the demo, one with memory and energy, a job of two ranks, one of a trace."""
    root = tmp_path_factory.mktemp("many")
    shutil.copytree(RECORDED, root, dirs_exist_ok=True)
    for name, folder in {"gpt": "energy/recorded/gpt/fp32", "two_ranks": "ranks/recorded/ddp_slow_host"}.items():
        shutil.copytree(ROOT / "tests" / "data" / folder, root / name)
    write_profile(root / "resnet18", analyze_trace(MEMORY_TRACE))
    return root


@pytest.fixture(scope="session")
def shared(
    few_runs: Path, many_runs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str, str], Server]]:
    """A TensorBoard by its name and loader, started when it is first asked for. Tests must not write to its logdir."""
    runs_in_many = len({event.parent for event in many_runs.rglob("events.out.tfevents.*")})
    logdirs = {"few": (few_runs, 12), "many": (many_runs, runs_in_many), "none": (tmp_path_factory.mktemp("none"), 0)}
    running: dict[tuple[str, str], Server] = {}

    def server(name: str, load_fast: str = "false") -> Server:
        if (name, load_fast) not in running:
            logdir, runs = logdirs[name]
            running[name, load_fast] = start_server(logdir, load_fast, runs, reload_s=60)
        return running[name, load_fast]

    yield server
    _end(list(running.values()))


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


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """The context of pages that need none of their own: another one costs more than most tests.

    Nothing moves in it, since every frame of an animation is drawn by the CPU.
    """
    opened = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    yield opened
    opened.close()


@pytest.fixture
def watched(context: BrowserContext) -> Iterator[Watched]:
    """A fresh page whose console errors and foreign requests are kept. What it has stored goes with it."""
    page = context.new_page()
    result = Watched(page)
    page.on("console", lambda message: result.errors.append(message.text) if _is_error(message) else None)
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
    _forget(page)
    page.close()


def _is_error(message: ConsoleMessage) -> bool:
    """A page of ours that is opened without TensorBoard around it has no icon, which the browser then asks for."""
    return message.type == "error" and not message.location["url"].endswith("/favicon.ico")


def _forget(page: Page) -> None:
    """Removes what the page's site has stored for other pages of the context; the browser's cache stays."""
    site = urlsplit(page.url)
    if site.scheme == "http":
        what = {"origin": f"{site.scheme}://{site.netloc}", "storageTypes": "cookies,local_storage,indexeddb"}
        page.context.new_cdp_session(page).send("Storage.clearDataForOrigin", what)
