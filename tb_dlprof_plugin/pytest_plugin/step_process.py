"""A process that runs a test's step, of the working tree or of the base, when it is its turn."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tb_dlprof_plugin.model.visible import visible
from tb_dlprof_plugin.pytest_plugin.serving import VARIABLE, StepFacts, StepRequest
from tb_dlprof_plugin.trial.process_tree import descendants, end, send
from tb_dlprof_plugin.trial.protocol import Block, decode, lines
from tb_dlprof_plugin.trial.variant import VariantError

_POLL_S = 0.1
_LEAVES_S = 5.0
_LONGEST_LINE = 300
_PYTEST = (
    "import sys; sys.path[:] = [one for one in sys.path if one]; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
)
"""As the command `pytest` does it: the current folder is not on the path."""


@dataclass(frozen=True)
class Side:
    """What both processes of one side are started with.

    Attributes:
        name: "the working tree" or the base's.
        folder: pytest's root directory there.
        path: goes before the packages of this Python.
        test: the test's node id.
        call: the number of the call of `not_slower` in it.
        root: of the repository's working tree.
        test_file: of the working tree.
        import_mode: of pytest.
    """

    name: str
    folder: Path
    path: Sequence[Path]
    test: str
    call: int
    root: Path
    test_file: Path
    import_mode: str


class StepProcess:
    """Between two turns it is frozen with all that it has started."""

    samples: float = 1.0

    def __init__(self, side: Side) -> None:
        self._side = side
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._log: IO[bytes] | None = None
        self._buffer = bytearray()
        self._facts: StepFacts | None = None

    @property
    def facts(self) -> StepFacts:
        """What the process said of itself."""
        assert self._facts is not None
        return self._facts

    @property
    def host(self) -> StepProcess:
        """Itself: it shares its process with none."""
        return self

    @property
    def alive(self) -> bool:
        """Whether it has a process."""
        return self._process is not None

    def start(self, timeout_s: float) -> StepFacts:
        """Start a new process, and wait for its step.

        Raises:
            VariantError: the test fails before, or takes longer.
        """
        self.launch()
        return self.arrived(timeout_s)

    def launch(self) -> None:
        """Start a new process, and do not wait for it."""
        self.end()
        side = self._side
        self._channel, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        request = StepRequest(theirs.fileno(), side.call, str(side.root), str(side.test_file))
        env = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
        env[VARIABLE] = request.to_json()
        # Else pytest cuts the reason why a test fails.
        env["COLUMNS"] = "1000"
        env["PYTHONPATH"] = os.pathsep.join(map(str, side.path))
        options = ["-o", "addopts=", f"--import-mode={side.import_mode}", "-p", "no:cacheprovider", "-p", "no:xdist"]
        shown = ["-q", "--tb=no", "-rfEs", "--rootdir=."]
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PYTEST, "-p", "tb_dlprof_plugin.pytest_plugin", *options, *shown, side.test],
                cwd=side.folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=[theirs.fileno()],
                # A group of its own in this session: the kernel ends it, frozen or not, where this process is killed.
                preexec_fn=os.setpgrp,
            )

    def arrived(self, timeout_s: float) -> StepFacts:
        """What it says once its step is there. Raises VariantError."""
        found = self._message(timeout_s)
        self._signal(signal.SIGSTOP)
        assert isinstance(found, dict)
        self._facts = StepFacts(**found)
        return self._facts

    def run(self, steps: int, timeout_s: float) -> Block:
        """Run steps. Raises VariantError."""
        if self._process is None:
            self.start(timeout_s)
        assert self._channel is not None
        self._signal(signal.SIGCONT)
        with contextlib.suppress(OSError):
            self._channel.sendall(f'{{"kind": "run", "steps": {steps}}}\n'.encode())
        found = self._message(timeout_s)
        self._signal(signal.SIGSTOP)
        assert isinstance(found, Block)
        return found

    def end(self) -> None:
        """Let the test end, and kill what does not. Never raises."""
        process, self._process = self._process, None
        if process is not None:
            send(descendants(process.pid), signal.SIGCONT)
        if self._channel is not None:
            self._channel.close()
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LEAVES_S)
            end(process)
        if self._log is not None:
            self._log.close()
        self._channel = self._log = None
        self._buffer.clear()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            send(descendants(self._process.pid), number)

    def _message(self, timeout_s: float) -> object:
        assert self._channel is not None
        deadline = time.monotonic() + timeout_s
        self._channel.settimeout(_POLL_S)
        while True:
            for line in lines(self._buffer):
                return decode(line)[1]
            try:
                received = self._channel.recv(65536)
            except TimeoutError:
                if time.monotonic() > deadline:
                    self.end()
                    raise VariantError(f"on {self._side.name} it takes longer than {timeout_s:.0f} s") from None
                continue
            except OSError:
                received = b""
            if not received:
                raise VariantError(f"on {self._side.name} {self._why_ended()}")
            self._buffer += received

    def _why_ended(self) -> str:
        assert self._process is not None
        assert self._log is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LEAVES_S)
        self._log.seek(0)
        printed = [line.strip() for line in self._log.read().decode(errors="replace").splitlines() if line.strip()]
        kinds = ("FAILED ", "ERROR", "SKIPPED ", "E ")
        said = [line for line in printed if line.startswith(kinds)] or printed
        self.end()
        last = visible(said[0])[:_LONGEST_LINE] if said else "without a message"
        return f"the test ends before its step is there: {last}"
