"""The gate at the end of a training step, at which a process of ``tb-dlprof try`` waits for its turn."""

from __future__ import annotations

import os
import socket
import time

import torch

from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.trial.inside.hooks import copy_of
from tb_dlprof_plugin.trial.protocol import Block, Ready, decode, encode, lines

_synchronize = copy_of(torch.cuda.synchronize)
"""As it is before a remedy replaces it."""


class Gate:
    """Of one process: connects once, then runs blocks of steps.

    Args:
        address: path of the controller's Unix socket.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._buffer = bytearray()
        self._left = 0
        self._steps = 0
        self._began_s = 0.0

    @property
    def open(self) -> bool:
        """Whether the process has arrived once."""
        return self._socket is not None

    def arrive(self, ready: Ready) -> None:
        """Say what the first steps were like, and wait for the first turn."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(self._address)
        _idle()
        self._send(encode("ready", ready))
        self._wait()

    def step(self) -> None:
        """A step has ended: answer and wait where it was the last of the block."""
        self._left -= 1
        if self._left > 0:
            return
        _idle()
        seconds = time.perf_counter() - self._began_s
        peak = probe(torch.cuda.max_memory_allocated) if torch.cuda.is_initialized() else None
        self._send(encode("block", Block(self._steps, seconds, peak)))
        self._wait()

    def _wait(self) -> None:
        steps = None
        while steps is None:
            for line in lines(self._buffer):
                kind, message = decode(line)
                if kind == "run":
                    steps = max(1, int(message["steps"]))
            if steps is None:
                assert self._socket is not None
                received = self._socket.recv(65536)
                if not received:
                    leave()
                self._buffer += received
        self._steps = self._left = steps
        self._began_s = time.perf_counter()

    def _send(self, line: bytes) -> None:
        assert self._socket is not None
        try:
            self._socket.sendall(line)
        except OSError:
            leave()


def leave() -> None:
    """End this process at once: the command is gone, and nothing of it is to be saved."""
    os._exit(0)


def _idle() -> None:
    if torch.cuda.is_initialized():
        _synchronize()
