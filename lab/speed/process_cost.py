"""What a command costs as a whole process: wall time, CPU time and peak memory, its children included.

Time and memory are measured in different runs. A timed run is not watched. In a watched run the proportional set size
(PSS: private memory, and shared pages divided by how many share them) of all processes of the tree is read from
``/proc`` up to every 20 ms and summed; the peak is never below the kernel's own high-water mark of the largest process
(``ru_maxrss`` of ``wait4``), which is all there is on systems without ``/proc``. That mark starts at the size of the
process that measures, so measure from a small one.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_INTERVAL_S = 0.02
_KILOBYTE = 1024
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else _KILOBYTE


class CommandFailed(Exception):
    """The command did not end with 0; the message holds the end of what it said."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that ended well."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    output: str


def run(command: Sequence[str | Path], env: Mapping[str, str] | None = None, *, watch: bool = False) -> Ended:
    """Runs a command to its end.

    Raises:
        CommandFailed: it ended with another status than 0.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=env
        )
        watcher = _Watcher(process.pid) if watch else None
        if watcher:
            watcher.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if watcher:
            watcher.ended.set()
            watcher.join()
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            said = (output.read() + errors.read())[-2000:].decode(errors="replace")
            raise CommandFailed(f"{' '.join(map(str, command))} ended with {process.returncode}:\n{said}")
        peak = max(usage.ru_maxrss * _MAXRSS_UNIT, watcher.peak if watcher else 0)
        return Ended(seconds, usage.ru_utime + usage.ru_stime, peak, output.read().decode(errors="replace"))


class _Watcher(threading.Thread):
    """Follows the memory of a process and its descendants."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.peak = 0
        self.ended = threading.Event()

    def run(self) -> None:
        pause = _INTERVAL_S
        while not self.ended.wait(pause):
            began = time.perf_counter()
            self.peak = max(self.peak, sum(_pss(pid) for pid in tree(self.pid)))
            # The kernel walks the process's pages for it, and the process waits: let it have nine tenths of the time.
            pause = max(_INTERVAL_S, 9 * (time.perf_counter() - began))


def tree(pid: int) -> list[int]:
    """The process and its descendants."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                found += map(int, Path(f"/proc/{parent}/task/{task}/children").read_text().split())
    return found


def _pss(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * _KILOBYTE
    return 0
