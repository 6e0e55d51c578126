"""Starts the script of ``tb-dlprof run`` and waits for its end.

The script stays in the terminal's foreground group and inherits the standard streams, so that input, output and Ctrl-C
work as without ``tb-dlprof``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tb_dlprof_plugin.capture.launcher.protocol import INJECTED, VARIABLE, read_statuses
from tb_dlprof_plugin.cli.run.signals import HeldSignals
from tb_dlprof_plugin.model.visible import VisibleMessage

_POLL_S = 0.2
_GRACE_S = 10.0
"""Between SIGTERM and SIGKILL."""
_KILLS: signal.Signals = getattr(signal, "SIGKILL", signal.SIGTERM)
"""Windows has no SIGKILL: there SIGTERM ends a process at once."""
_KINETO_SILENT = "9"


class ScriptError(VisibleMessage):
    """The script cannot be started. The message says what to do."""


def command_line(words: Sequence[str]) -> list[str]:
    """The command to execute: a Python file by this Python, anything else unchanged.

    Raises:
        ScriptError: there is neither such a file nor such a command.
    """
    name = words[0]
    path = Path(name)
    if path.is_dir() and (path / "__main__.py").is_file():
        return [sys.executable, *words]
    if path.is_file() and (path.suffix in (".py", ".pyz") or not os.access(path, os.X_OK)):
        return [sys.executable, *words]
    if shutil.which(name):
        return list(words)
    # Of a virtual environment that is not activated.
    sibling = Path(sys.executable).parent / name
    if path.name == name and os.access(sibling, os.X_OK) and sibling.is_file():
        return [str(sibling), *words[1:]]
    if path.is_dir():
        raise ScriptError(f"{name} is a directory; name the script in it.")
    where = "" if path.is_absolute() else f" in {Path.cwd()}"
    raise ScriptError(f"{name} was not found{where}; name a Python file, or a command after --.")


class Script:
    """The running script.

    Raises:
        ScriptError: it could not be started.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._folder = folder
        self.stopped = False
        """Whether it was ended by `stop`."""
        self._kill_at_s: float | None = None
        self._signals = HeldSignals()
        self._signals.hold()
        try:
            self._process = subprocess.Popen(command, env=environment(folder), preexec_fn=self._signals.free_in_child)
        except (OSError, subprocess.SubprocessError) as error:
            self._signals.let_go()
            why = getattr(error, "strerror", None) or error
            raise ScriptError(f"{command[0]} cannot be started: {why}.") from None

    def wait(self, meanwhile: Callable[[], None]) -> int:
        """Its exit status, negative for the signal that ended it. ``meanwhile`` is called regularly."""
        try:
            while (status := self._process.poll()) is None:
                signo = self._signals.next_one(_POLL_S)
                if signo is not None:
                    self._process.send_signal(signo)
                # If anything fails there, the script must not be left without its parent.
                with contextlib.suppress(Exception):
                    meanwhile()
                if self._kill_at_s is not None and time.monotonic() > self._kill_at_s:
                    self._kill()
            return status
        finally:
            self._signals.let_go()

    def stop(self) -> None:
        """End it: SIGTERM, then SIGKILL. Returns immediately."""
        if not self.stopped:
            self.stopped = True
            self._kill_at_s = time.monotonic() + _GRACE_S
            self._process.terminate()

    def _kill(self) -> None:
        self._kill_at_s = None
        # A launcher that is killed leaves its workers behind.
        for process in read_statuses(self._folder):
            if not process.ended and process.pid != self._process.pid:
                with contextlib.suppress(OSError):
                    os.kill(process.pid, _KILLS)
        self._process.kill()


def end_like(status: int) -> int:
    """The exit status to end with; where a signal ended the script, the same signal ends this process right here."""
    if status >= 0:
        return status
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        # The script has written its core file, if any; no second one.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    with contextlib.suppress(OSError, ValueError):
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status


def environment(folder: Path) -> dict[str, str]:
    """Of a script whose iterations are counted, for the request in ``folder``."""
    env = dict(os.environ)
    env[VARIABLE] = str(folder)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(INJECTED), env.get("PYTHONPATH"))))
    # Kineto would write lines of its own to the script's standard error.
    env.setdefault("KINETO_LOG_LEVEL", _KINETO_SILENT)
    return env
