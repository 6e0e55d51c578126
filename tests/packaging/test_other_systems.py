"""Viewing and analysing where the modules that only Unix has are missing, as on Windows.

They are blocked in a Python of this system: what else differs on Windows, such as paths and locks of files, is not
tried here, but by the workflow `tests`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNIX_ALONE = ["fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix_spawn", "spwd", "nis"]
BLOCKED = f"""
import importlib, importlib.abc, signal, sys, runpy

class OfUnix(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in {UNIX_ALONE!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, OfUnix())
for name in {UNIX_ALONE!r}:
    sys.modules.pop(name, None)
for name in ("SIGKILL", "SIGHUP", "SIGQUIT", "SIGSTOP", "SIGCONT", "SIGUSR1", "SIGALRM", "SIGPIPE"):
    delattr(signal, name)
"""
RUN = ROOT / "demo" / "recorded" / "lenet" / "fp32"


def _python(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _command(*arguments: str) -> str:
    return _python("sys.argv[0] = 'tb-dlprof'\nfrom tb_dlprof_plugin.cli.main import main\nmain()", *arguments)


def test_what_is_blocked_is_missing() -> None:
    code = "try:\n    import fcntl\nexcept ImportError:\n    print('missing', hasattr(signal, 'SIGKILL'))"
    assert _python(code) == "missing False\n"


@pytest.mark.slow
def test_every_module_imports() -> None:
    paths = sorted((ROOT / "tb_dlprof_plugin").rglob("*.py"))
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    # What starts with the script of the user, and runs when it is imported.
    wanted = [name for name in modules if "inject" not in name and not name.endswith("__main__")]
    # The package mcp asks for the system's name, which is that of a Unix here.
    for name in ("agent_tools.mcp_server", "run_widget"):
        wanted.remove(f"tb_dlprof_plugin.{name}")
    assert len(wanted) > 500
    _python(_IMPORT_ALL, *wanted)


_IMPORT_ALL = """
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in ("jax", "tensorflow", "keras"):
            raise
"""


@pytest.mark.parametrize("command", ["summary", "ops", "advise"])
def test_a_command_answers_about_a_run(command: str) -> None:
    assert json.loads(_command(command, str(RUN), "--format", "json"))


def test_a_trace_is_imported_and_exported(tmp_path: Path) -> None:
    trace = ROOT / "tests" / "traces" / "cpu_training.pt.trace.json.gz"
    _command("import", str(trace), "--logdir", str(tmp_path / "runs"), "--run", "one")
    assert json.loads(_command("summary", str(tmp_path / "runs" / "one"), "--format", "json"))
    _command("export", str(tmp_path / "runs" / "one"), "--html", str(tmp_path / "one.html"))
    assert (tmp_path / "one.html").stat().st_size > 100_000
