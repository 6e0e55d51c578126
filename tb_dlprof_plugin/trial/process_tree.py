"""Freezes, continues and ends a process with all that it has started, as ``/proc`` knows them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

_PROC = Path("/proc")


def descendants(pid: int) -> list[int]:
    """The process and all below it, parents first; the process alone where there is no ``/proc``."""
    children: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir(_PROC):
            if entry.name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    # The name, in parentheses, may hold anything.
                    parent = int(
                        (_PROC / entry.name / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
                    )
                    children.setdefault(parent, []).append(int(entry.name))
    found, left = [], [pid]
    while left:
        one = left.pop()
        found.append(one)
        left += children.get(one, [])
    return found


def send(pids: list[int], number: signal.Signals) -> None:
    """A signal to each of them that still runs."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def freeze(pid: int) -> None:
    """Stop the process and all below it."""
    send(descendants(pid), signal.SIGSTOP)


def thaw(pid: int) -> None:
    """Continue them."""
    send(descendants(pid)[::-1], signal.SIGCONT)


def end(pid: int, wait_s: float = 5.0) -> None:
    """Kill the process and all below it, and its process group; returns when they are gone, but for ``pid`` itself,
    which its parent has to wait for."""
    deadline = time.monotonic() + wait_s
    while True:
        found = descendants(pid)
        # Stopped first: what is killed one by one could start others meanwhile.
        send(found, signal.SIGSTOP)
        send(found, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        left = [one for one in found if one != pid and _runs(one)]
        if not left or time.monotonic() > deadline:
            return
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False
