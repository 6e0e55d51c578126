"""Runs a command of ``tb-dlprof try``, and ends all that it has started when it ends or when ``try`` does.

A process of its own between ``try`` and the script: whatever loses its parent becomes its child (a subreaper of Linux,
https://man7.org/linux/man-pages/man2/PR_SET_CHILD_SUBREAPER.2const.html), so that programs that are no Python and
have sessions of their own are found. It waits for the end of its standard input, which comes when ``try`` has gone,
even if that was killed. Of the standard library alone, in a Python without site packages: it starts in milliseconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tb_dlprof_plugin.trial.landlock import restriction
from tb_dlprof_plugin.trial.overlay import View, remove_folder
from tb_dlprof_plugin.trial.process_tree import end_below

_DIE_WITH_PARENT, _ADOPT_ORPHANS = 1, 36
"""PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER."""
NOT_STARTED = 127
"""Exit status where there is no such command, as a shell's."""
NOT_ISOLATED = 126
"""Exit status where the kernel refuses the isolation."""
_START = "import sys; sys.path.append(sys.argv[1]); from tb_dlprof_plugin.trial.supervisor import main; main()"
_ROOT = str(Path(__file__).resolve().parents[2])


@dataclass(frozen=True)
class _Task:
    command: list[str]
    scratch: str
    folder: str
    layers: str
    writable: list[str] | None


def supervised(
    command: Sequence[str], scratch: str, folder: str, layers: str = "", writable: Sequence[str] | None = None
) -> list[str]:
    """The command that runs ``command`` under supervision; its standard input has to be a pipe.

    Args:
        command: that starts the script.
        scratch: folder that is removed where ``try`` ends without having done so.
        folder: working folder of the command.
        layers: where an overlay keeps what the command writes outside of ``scratch``; "": there is no overlay.
        writable: folders that Landlock lets it write; None: all.
    """
    task = _Task(list(command), scratch, folder, layers, None if writable is None else list(writable))
    # Neither variables nor packages of the user's are for this process, and it writes nothing.
    return [sys.executable, "-I", "-S", "-B", "-c", _START, _ROOT, json.dumps(asdict(task))]


def main() -> None:
    """Run the command of the task in the arguments, and end as it ends."""
    task = _Task(**json.loads(sys.argv[2]))
    restrict = None if task.writable is None else restriction(task.writable)
    _process_control(_ADOPT_ORPHANS, 1)

    def prepare() -> None:
        _process_control(_DIE_WITH_PARENT, signal.SIGKILL)
        try:
            os.chdir(task.folder)
            if task.layers:
                View(task.layers, (task.scratch,)).enter()
            if restrict is not None:
                restrict()
            elif task.writable is not None:
                raise OSError(errno.ENOSYS, "Landlock")
        except OSError as error:
            os.write(2, f"the script cannot be isolated: {error}\n".encode(errors="replace"))
            os._exit(NOT_ISOLATED)

    try:
        script = subprocess.Popen(task.command, stdin=subprocess.DEVNULL, preexec_fn=prepare)
    except (OSError, subprocess.SubprocessError) as error:
        os.write(2, f"{task.command[0]} cannot be started: {error}\n".encode(errors="replace"))
        os._exit(NOT_STARTED)
    gone = threading.Event()
    waiting = threading.Thread(target=_end_with_command, args=(task.scratch, gone), daemon=True)
    waiting.start()
    status = _status_of(script.pid)
    end_below(os.getpid())
    if gone.is_set():
        waiting.join()
    _end_as(status)


def _end_with_command(scratch: str, gone: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    gone.set()
    end_below(os.getpid())
    remove_folder(scratch)
    os._exit(0)


def _status_of(script: int) -> int:
    """Wait for the script, and for the orphans that end before it."""
    while True:
        pid, status = os.wait()
        if pid == script:
            return os.waitstatus_to_exitcode(status)


def _end_as(status: int) -> None:
    if status < 0:
        # By the same signal, without another core file.
        with contextlib.suppress(ImportError, OSError, ValueError):
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _process_control(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
