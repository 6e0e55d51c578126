"""The gate at the end of a training step, at which a process of ``tb-dlprof try`` waits for its turn."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator
from typing import Any

from tb_dlprof_plugin.trial.inside.switching import Switcher, wait
from tb_dlprof_plugin.trial.protocol import Ready, decode, encode, lines


class Gate:
    """Of one process: connects once, then makes the steps that it is asked for.

    Args:
        address: path of the controller's Unix socket.
        switcher: times and compares steps.
    """

    def __init__(self, address: str, switcher: Switcher) -> None:
        self._address, self._switcher = address, switcher
        self._socket: socket.socket | None = None
        self._buffer = bytearray()
        self._work: Generator[None, None, tuple[str, Any]] | None = None

    @property
    def open(self) -> bool:
        """Whether the process has arrived once."""
        return self._socket is not None

    def arrive(self, ready: Ready) -> None:
        """Say what the first steps were like, and wait for the first turn."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(self._address)
        wait()
        self._send(encode("ready", ready))
        self.step()

    def step(self) -> None:
        """A step has ended: answer and wait where it was the last that was asked for."""
        while True:
            if self._work is None:
                self._work = self._asked()
            try:
                next(self._work)
                return
            except StopIteration as done:
                self._work = None
                self._send(encode(*done.value))

    def _asked(self) -> Generator[None, None, tuple[str, Any]]:
        """Wait for the next turn."""
        while True:
            for line in lines(self._buffer):
                kind, asked = decode(line)
                if kind == "run":
                    return self._switcher.block(asked["remedies"], max(1, int(asked["steps"])))
                if kind == "check":
                    return self._switcher.check(asked["remedies"], int(asked["seed"]), max(1, int(asked["steps"])))
            assert self._socket is not None
            received = self._socket.recv(65536)
            if not received:
                leave()
            self._buffer += received

    def _send(self, line: bytes) -> None:
        assert self._socket is not None
        try:
            self._socket.sendall(line)
        except OSError:
            leave()


def leave() -> None:
    """End this process at once: the command is gone, and nothing of it is to be saved."""
    os._exit(0)
