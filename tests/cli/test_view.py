"""`tb-dlprof view`: serves where tensorboard is not installed, opens a browser, and leaves nothing behind."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LENET = ROOT / "demo" / "recorded" / "lenet"
TRACE = ROOT / "tests" / "traces" / "cpu_plain.pt.trace.json.gz"
WITHOUT_TENSORBOARD = """
import importlib.abc, sys

class NoTensorBoard(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"tensorboard", "tensorboard_data_server"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoTensorBoard())
from tb_dlprof_plugin.cli.main import main
main()
"""


@dataclass
class Viewed:
    """The command while it runs, and what it printed first."""

    process: subprocess.Popen[str]
    line: str

    def get(self, path: str) -> tuple[int, bytes]:
        port = re.search(r"http://127\.0\.0\.1:(\d+)/", self.line)
        assert port is not None, self.line
        connection = http.client.HTTPConnection("127.0.0.1", int(port[1]), timeout=60)
        connection.request("GET", path)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def page(self, route: str) -> Any:
        status, body = self.get(f"/data/plugin/tb_dlprof/{route}")
        assert status == 200, body
        return json.loads(body)

    def end(self, how: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Status and everything that was printed after the first line."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out + err


@pytest.fixture
def view(tmp_path: Path) -> Iterator[Callable[..., Viewed]]:
    """Starts the command in a Python that has no tensorboard; temporary files go to ``tmp_path / "temporary"``."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object, **variables: str) -> Viewed:
        process = subprocess.Popen(
            [sys.executable, "-c", WITHOUT_TENSORBOARD, "view", *map(str, arguments), "--port", "0"],
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), **variables},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            # A shell's job in the background ignores SIGINT, and what it starts inherits that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        started.append(process)
        assert process.stdout is not None
        return Viewed(process, process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_log_directory_is_served_without_tensorboard(view: Callable[..., Viewed]) -> None:
    viewed = view(LENET, "--no-browser")
    assert str(LENET) in viewed.line
    status, page = viewed.get("/")
    assert (status, b'import("./index.js")' in page) == (200, True)
    assert viewed.get("/data/plugin/tb_dlprof/index.js")[0] == 200
    runs = [run["run"] for run in viewed.page("runs")["runs"]]
    assert "fp32" in runs
    for route in ("overview?run=fp32", "advice?run=fp32", "many_runs", "compare?a.run=fp32&b.run=amp-fp16"):
        viewed.page(route)
    assert viewed.end() == (0, "")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_recording_is_imported_to_a_place_that_is_removed(
    view: Callable[..., Viewed], tmp_path: Path, how: signal.Signals
) -> None:
    viewed = view(TRACE, "--no-browser")
    (run,) = viewed.page("runs")["runs"]
    assert run["run"] == "cpu_plain"
    (runs,) = (tmp_path / "temporary").iterdir()
    assert viewed.page("overview?run=cpu_plain")["ref"]["run"] == "cpu_plain"
    status, said = viewed.end(how)
    assert (status, "Traceback" in said) == (0, False)
    assert not runs.exists()


def test_a_run_and_an_event_file_are_shown_alone(view: Callable[..., Viewed]) -> None:
    (file,) = (LENET / "fp32").glob("*.tb_dlprof")
    for source in (LENET / "fp32", file):
        assert [run["run"] for run in view(source, "--no-browser").page("runs")["runs"]] == ["."]


def test_the_browser_opens_at_the_address(view: Callable[..., Viewed], tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    viewed = view(LENET, BROWSER=f"{browser} %s")
    stop = time.monotonic() + 30
    while not opened.exists():
        assert time.monotonic() < stop
        time.sleep(0.05)
    assert opened.read_text().strip() in viewed.line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing"], "missing does not exist"),
        ([str(ROOT / "README.md")], "README.md"),
        ([str(LENET), "--host", "192.0.2.1"], "192.0.2.1, port 0, cannot be listened on"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(view: Callable[..., Viewed], arguments: list[str], said: str) -> None:
    viewed = view(*arguments, "--no-browser")
    out, err = viewed.process.communicate(timeout=60)
    assert (viewed.process.returncode, viewed.line + out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
