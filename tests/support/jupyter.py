"""A real JupyterLab on a free port, with configuration, caches and temporary files of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from support.tensorboard import ROOT

_START_SECONDS = 90.0
_TOKEN = "of-the-test"


@dataclass(frozen=True)
class Jupyter:
    """A running JupyterLab; notebooks lie in ``folder``."""

    port: int
    folder: Path

    def address(self, notebook: str) -> str:
        """Where a notebook of the folder opens."""
        return f"http://127.0.0.1:{self.port}/lab/tree/{notebook}?token={_TOKEN}&reset"


@contextmanager
def jupyter_lab(root: Path, **environment: str) -> Iterator[Jupyter]:
    """JupyterLab below ``root``; its kernels import this tree, find `tensorboard` and reach no package index.

    It ends with all that its kernels started.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder, own = root / "notebooks", root / "own"
    folder.mkdir()
    own.mkdir()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip", "127.0.0.1"]
    command += ["--port", str(port), "--ServerApp.port_retries=0", f"--IdentityProvider.token={_TOKEN}"]
    command += [f"--ServerApp.root_dir={folder}", "--LabApp.extension_manager=readonly"]
    # It would ask for news and newer versions.
    command += ["--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    homes = ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "TMPDIR")
    _write_modules(own / "modules")
    programs = os.pathsep.join((str(_tensorboard(own)), str(Path(sys.executable).parent), os.environ["PATH"]))
    env = {
        **os.environ,
        **dict.fromkeys(homes, str(own)),
        "PATH": programs,
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(own / "modules"))),
        "PIP_NO_INDEX": "1",
        **environment,
    }
    with (root / "jupyter.log").open("wb") as log:
        server = subprocess.Popen(command, env=env, cwd=folder, stdout=log, stderr=log)
    try:
        _wait(server, port, root / "jupyter.log")
        yield Jupyter(port, folder)
    finally:
        server.terminate()
        server.wait(timeout=30)
        # TensorBoard notes each of its servers here; those of a notebook outlive the kernel.
        for info in (own / ".tensorboard-info").glob("pid-*.info"):
            with suppress(ProcessLookupError):
                os.kill(json.loads(info.read_text())["pid"], signal.SIGTERM)


def _write_modules(modules: Path) -> None:
    """Stands in for two installed packages.

    jsonschema compiles grammars of addresses for seconds in each process where it finds their package; notebooks have
    none. TensorBoard opens the tab of whichever plugin's package it finds first, which here is not the other profiler.
    """
    (modules / "torch_tb_profiler").mkdir(parents=True)
    (modules / "rfc3987_syntax.py").write_text("raise ImportError\n")
    (modules / "torch_tb_profiler" / "__init__.py").write_text("")
    no_plugin = "from tensorboard.plugins.base_plugin import TBLoader as TorchProfilerPlugin\n"
    (modules / "torch_tb_profiler" / "plugin.py").write_text(no_plugin)


def _tensorboard(own: Path) -> Path:
    """A directory with a `tensorboard` that imports this tree, wherever the package is installed from.

    `%tensorboard` takes PYTHONPATH from the environment of the servers that it starts.
    """
    program = own / "bin" / "tensorboard"
    program.parent.mkdir()
    path = os.pathsep.join((str(ROOT), str(own / "modules")))
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" -m tensorboard.main "$@"\n')
    program.chmod(0o755)
    return program.parent


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        assert server.poll() is None, f"JupyterLab ended with {server.returncode}: {log.read_text()[-2000:]}"
        with suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api?token={_TOKEN}", timeout=10).close()
            return
        time.sleep(0.2)
    raise AssertionError(f"JupyterLab did not answer within {_START_SECONDS} s: {log.read_text()[-2000:]}")
