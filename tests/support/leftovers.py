"""Processes that outlive the tests that started them."""

from __future__ import annotations

import os
import time
from pathlib import Path

MARK = "TB_DLPROF_TESTS"
"""Environment variable of every process that the tests start: the number of the process that runs the tests."""
_GRACE_S = 20.0
_OF_PYTHON = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Helpers that Python's multiprocessing keeps until the process that started them ends."""


def leftovers() -> list[str]:
    """Command lines of the processes that are still there after some seconds in which they may end. Linux only."""
    end = time.monotonic() + _GRACE_S
    while (found := _running()) and time.monotonic() < end:
        time.sleep(0.2)
    return found


def _running() -> list[str]:
    parents = {int(path.name): _parent(path) for path in Path("/proc").glob("[0-9]*")}
    mark = f"{MARK}={os.getpid()}".encode()
    found = []
    for process in parents:
        command = _read(process, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
        # A process that was started in a session of its own is no child any more, but has the environment.
        ours = _descends(process, parents) or mark in _read(process, "environ").split(b"\0")
        if ours and process != os.getpid() and command and not any(name in command for name in _OF_PYTHON):
            found.append(f"{process}: {command[:200]}")
    return found


def _descends(process: int, parents: dict[int, int]) -> bool:
    while process > 1:
        process = parents.get(process, 0)
        if process == os.getpid():
            return True
    return False


def _parent(path: Path) -> int:
    """0 where the process has ended in the meantime."""
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _read(process: int, name: str) -> bytes:
    """Empty for a process that has ended or is another user's."""
    try:
        return Path(f"/proc/{process}/{name}").read_bytes()
    except OSError:
        return b""
