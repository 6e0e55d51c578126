"""Runs programs in forked children of one process that has imported torch: an import costs seconds, a fork none.

    python -m support.program_server

reads a line of JSON for each program, and answers with the exit status.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.script_runs import ROOT, Done, environment

_LONGEST_S = 60
TIMED_OUT = 1000
"""Status of a program that does not end."""


class ProgramServer:
    """The process, from `start` to `stop`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @classmethod
    @contextlib.contextmanager
    def running(cls) -> Iterator[ProgramServer]:
        """A server until the block ends."""
        path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
        with subprocess.Popen(
            [sys.executable, "-m", "support.program_server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment(KINETO_LOG_LEVEL="5") | {"PYTHONPATH": path},
        ) as process:  # fmt: skip
            yield cls(process)
            assert process.stdin is not None
            process.stdin.close()

    def run(self, source: str, folder: Path, **variables: str) -> Done:
        """Run a program in this working folder, with global variables; its output goes to files next to the folder.

        The status of a program that a signal ended is negative.
        """
        script, out, err = (folder.with_name(f"{folder.name}{suffix}") for suffix in (".py", ".out", ".err"))
        script.write_text(source)
        task = {"script": str(script), "folder": str(folder), "out": str(out), "err": str(err), "variables": variables}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        return Done(status, out.read_text(), err.read_text(errors="replace"))


def _serve() -> None:
    # The first profiler imports it. No profiler may run here: torch's has a thread that a child would wait for.
    import torch._inductor

    import tb_dlprof_plugin

    for name in ("profile", "trace_handler"):
        getattr(tb_dlprof_plugin, name)
    torch.set_num_threads(1)
    # A child that ends would look through all objects, and so copy them.
    gc.freeze()
    for line in sys.stdin:
        task = json.loads(line)
        child = os.fork()
        if not child:
            _run(task)
            return
        print(_wait(child), flush=True)


def _wait(child: int) -> int:
    end = time.monotonic() + _LONGEST_S
    while time.monotonic() < end:
        known, status = os.waitpid(child, os.WNOHANG)
        if known:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    # With the processes that the program started.
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return TIMED_OUT


def _run(task: dict[str, Any]) -> None:
    """In the child, which then ends as any interpreter does."""
    os.setpgid(0, 0)
    os.chdir(task["folder"])
    for stream, target in ((1, task["out"]), (2, task["err"])):
        os.dup2(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = [task["script"]]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    vars(main).update(__file__=task["script"], **task["variables"])
    exec(compile(Path(task["script"]).read_text(), task["script"], "exec"), vars(main))


if __name__ == "__main__":
    _serve()
