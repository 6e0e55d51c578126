"""A trace file in, a TensorBoard that shows it in our tab and in torch-tb-profiler's out."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OURS, PEER = "tb_dlprof", "pytorch_profiler"
_TIMEOUT_S = 120
_POLL_S = 0.02
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium_path() -> str:
    """Where the distribution installed Chromium."""
    path = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        raise SystemExit("No Chromium: install it (on Debian: apt-get install -y chromium).")
    return path


def make_logdir(trace: Path, logdir: Path, plugin: str) -> None:
    """One run for one of the two tabs: our event file of the trace, or the trace under a name that the other reads."""
    run = logdir / "run"
    run.mkdir(parents=True)
    if plugin == PEER:
        ending = ".pt.trace.json.gz" if trace.name.endswith(".gz") else ".pt.trace.json"
        shutil.copyfile(trace, run / f"worker0.1700000000000{ending}")
        return
    command = [str(Path(sys.executable).with_name("tb-dlprof")), "import", str(trace), "--logdir", str(logdir)]
    subprocess.run([*command, "--run", "run", "--force"], check=True, capture_output=True)


@contextmanager
def tensorboard(logdir: Path, plugin: str, fast: bool = False) -> Iterator[tuple[str, float]]:
    """Its address, and the seconds from its start until it offered the tab of ``plugin``.

    With ``fast`` it reads by its fast loader where there is one, as it does by default.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--host", "127.0.0.1"]
    started = time.perf_counter()
    server = subprocess.Popen(
        [*command, "--port", str(port), "--load_fast", "auto" if fast else "false", "--reload_interval", "1"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not _offered(address, plugin):
            if server.poll() is not None or time.perf_counter() - started > _TIMEOUT_S:
                sys.exit(f"TensorBoard did not offer {plugin} within {_TIMEOUT_S} s.")
            time.sleep(_POLL_S)
        yield address, time.perf_counter() - started
    finally:
        server.terminate()
        server.wait()


def listed_runs(address: str, runs: int) -> None:
    """Returns once our tab lists that many runs; each rank of a job counts."""
    until = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < until:
        with urllib.request.urlopen(f"{address}/data/plugin/{OURS}/runs", timeout=_TIMEOUT_S) as answer:
            if json.load(answer)["total"] >= runs:
                return
        time.sleep(_POLL_S)
    sys.exit(f"TensorBoard did not list {runs} runs within {_TIMEOUT_S} s.")


def _offered(address: str, plugin: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/data/plugins_listing", timeout=10) as answer:
            return bool(json.load(answer).get(plugin, {}).get("enabled"))
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
