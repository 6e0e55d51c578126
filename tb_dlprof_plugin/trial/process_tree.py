"""Freezes, continues and ends a process with all that it has started, as ``/proc`` knows them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from tb_dlprof_plugin.trial.process_state import runs

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


def freeze_below(pid: int) -> None:
    """Stop all below the process, which itself goes on."""
    send(descendants(pid)[1:], signal.SIGSTOP)


def thaw_below(pid: int) -> None:
    """Continue them."""
    send(descendants(pid)[:0:-1], signal.SIGCONT)


def end_below(pid: int, wait_s: float = 5.0) -> None:
    """Kill all below the process; returns when they are gone."""
    deadline = time.monotonic() + wait_s
    while True:
        left = [one for one in descendants(pid)[1:] if runs(one)]
        if not left or time.monotonic() > deadline:
            return
        # Stopped first: what is killed one by one could start others meanwhile.
        send(left, signal.SIGSTOP)
        send(left, signal.SIGKILL)
        time.sleep(0.01)


def end(process: subprocess.Popen[bytes], wait_s: float = 10.0) -> None:
    """Kill the process, which leads a process group, with all below it; returns when they are gone.

    The process is the last: while it lives, what loses its parent becomes its child, where it adopts orphans.
    """
    end_below(process.pid)
    with contextlib.suppress(OSError):
        process.kill()
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(wait_s)
    if process.stdin is not None:
        process.stdin.close()
