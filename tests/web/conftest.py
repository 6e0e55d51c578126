"""Real TensorBoards, one with each of its two data loaders, over one small logdir."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.store import event_file

ROOT = Path(__file__).resolve().parents[2]
CYCLES = 12
_ADDRESS = re.compile(r"at http://[^:]+:(\d+)/")


class Server:
    """A running TensorBoard."""

    def __init__(self, port: int, log: list[str]) -> None:
        self.port, self.log = port, log

    def request(self, path: str, method: str = "GET") -> tuple[int, bytes]:
        """Status and body; the path goes out exactly as given."""
        connection = http.client.HTTPConnection("localhost", self.port, timeout=60)
        try:
            connection.putrequest(method, path)
            connection.putheader("Content-Length", "0")
            connection.endheaders()
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def page(self, route: str, **query: Any) -> tuple[int, Any]:
        """Status and JSON of one of the plugin's routes; ``a_run`` stands for the parameter "a.run"."""
        text = urlencode({re.sub(r"^([ab])_", r"\1.", name): value for name, value in query.items()}, quote_via=quote)
        status, body = self.request(f"/data/plugin/tb_dlprof/{route}" + (f"?{text}" if text else ""))
        return status, json.loads(body)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Until TensorBoard has loaded what the condition asks for."""
        stop = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < stop, "".join(self.log)
            time.sleep(0.1)


@pytest.fixture(scope="session")
def start_tensorboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Starts TensorBoards with the plugin as an installed package; ends them with the tests."""
    # The entry point of an installation, without one.
    packages = tmp_path_factory.mktemp("packages")
    info = packages / "tb_dlprof_plugin-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tb_dlprof_plugin\nVersion: 0\n")
    (info / "entry_points.txt").write_text(
        "[tensorboard_plugins]\ntb_dlprof = tb_dlprof_plugin.loader:Loader\n",
    )
    running: list[subprocess.Popen[str]] = []

    def start(logdir: Path, load_fast: bool, extra_path: Path | None = None) -> Server:
        path = [str(p) for p in (extra_path, ROOT, packages) if p]
        process = subprocess.Popen(
            [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--port", "0", "--reload_interval", "1",
             "--load_fast", str(load_fast).lower()],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        running.append(process)
        assert process.stderr is not None
        log: list[str] = []
        for line in process.stderr:
            log.append(line)
            if found := _ADDRESS.search(line):
                threading.Thread(target=lambda: log.extend(process.stderr or ()), daemon=True).start()
                return Server(int(found[1]), log)
        raise AssertionError("".join(log))

    yield start
    for process in running:
        process.terminate()
    for process in running:
        process.wait(timeout=30)


def _write_damaged(folder: Path, profile: Profile) -> None:
    """An event file that is whole, with a profile that is not."""
    event = Event.FromString(event_file._event(profile, 1.0))
    event.summary.value[0].tensor.string_val[0] = b"no profile"
    folder.mkdir()
    (folder / "events.out.tfevents.1.damaged.tb_dlprof").write_bytes(event_file._record(event.SerializeToString()))


@pytest.fixture(scope="session")
def damaged() -> Callable[[Path, Profile], None]:
    """Writes a run whose profile cannot be read."""
    return _write_damaged


def _write_scalars(folder: Path) -> None:
    writer = EventFileWriter(str(folder))
    writer.add_event(Event(step=1, wall_time=1.0, summary=Summary(value=[Summary.Value(tag="loss", simple_value=2.0)])))
    writer.close()


@pytest.fixture(scope="session")
def profiles(training: Callable[..., Any]) -> dict[str, Profile]:
    """What the runs hold: "fp32" twelve cycles (here the last), "ranks" two ranks (here the lower)."""
    fp32, fp16 = training("fp32"), training("fp16")
    return {
        "fp32": fp32.profile(session="s1", cycle=CYCLES - 1),
        "fp16": fp16.profile(session="s1"),
        "deep/ranks": fp16.profile(session="s1", rank=0),
    }


@pytest.fixture(scope="session")
def logdir(
    tmp_path_factory: pytest.TempPathFactory, training: Callable[..., Any], profiles: dict[str, Profile]
) -> Path:
    folder = tmp_path_factory.mktemp("logdir")
    trace = training("fp32")
    for cycle in range(CYCLES - 1):
        event_file.write_profile(folder / "fp32", trace.profile(session="s1", cycle=cycle))
    event_file.write_profile(folder / "fp32", profiles["fp32"])
    event_file.write_profile(folder / "fp16", profiles["fp16"])
    event_file.write_profile(folder / "deep" / "ranks", profiles["deep/ranks"])
    event_file.write_profile(folder / "deep" / "ranks", training("fp16").profile(session="s1", rank=1))
    _write_damaged(folder / "damaged", profiles["fp16"])
    _write_scalars(folder / "scalars")
    return folder


BOTH_LOADERS = pytest.mark.parametrize(
    "server", [True, False], ids=["rust loader", "python loader"], indirect=True, scope="session"
)
"""For a test of what TensorBoard itself reads: the bytes of profiles, which runs, ranks and cycles there are."""


@pytest.fixture(
    scope="session", params=[True, pytest.param(False, marks=pytest.mark.long)], ids=["rust loader", "python loader"]
)
def server(request: pytest.FixtureRequest, start_tensorboard: Callable[..., Server], logdir: Path) -> Server:
    """TensorBoard with every run of `logdir` loaded."""
    started: Server = start_tensorboard(logdir, load_fast=request.param)

    def loaded() -> bool:
        status, index = started.page("runs")
        return status == 200 and sum(len(run["cycles"]) for run in index["runs"]) == CYCLES + 4

    started.wait_for(loaded)
    return started
