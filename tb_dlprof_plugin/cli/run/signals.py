"""Forwards signals that reach this process to the script of ``tb-dlprof run``.

Ctrl-C reaches the whole foreground group of a terminal, the script too; a signal sent to this process alone has to be
forwarded. Linux distinguishes the two; elsewhere SIGINT counts as coming from a terminal.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from typing import Any

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_FROM_TERMINAL = 0x80  # SI_KERNEL


class HeldSignals:
    """From `hold` to `let_go` signals are only queued for `next_one`.

    On systems without signal masks for this (macOS, Windows) handlers collect them.
    """

    def __init__(self) -> None:
        self._signals = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
        self._can_block = hasattr(signal, "sigtimedwait")
        self._before: Any = None
        self._caught: list[int] = []

    def hold(self) -> None:
        """Begin."""
        if self._can_block:
            self._before = signal.pthread_sigmask(signal.SIG_BLOCK, [*self._signals, signal.SIGCHLD])
        else:
            self._before = {one: signal.signal(one, self._keep) for one in self._signals}

    @property
    def free_in_child(self) -> Callable[[], None] | None:
        """Runs in the child process before the script: a mask is inherited, handlers are not."""
        if not self._can_block:
            return None
        before = self._before

        def free() -> None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

        return free

    def next_one(self, timeout_s: float) -> int | None:
        """A signal to forward; None after the timeout, after the end of a child, or if the script has the signal
        already."""
        if self._can_block:
            caught = signal.sigtimedwait([*self._signals, signal.SIGCHLD], timeout_s)
            if caught is None or caught.si_signo == signal.SIGCHLD or caught.si_code == _FROM_TERMINAL:
                return None
            return caught.si_signo
        time.sleep(timeout_s)
        return self._caught.pop(0) if self._caught else None

    def let_go(self) -> None:
        """Stop. Queued signals are dropped: the script has ended."""
        if self._can_block:
            while signal.sigtimedwait([*self._signals, signal.SIGCHLD], 0) is not None:
                pass
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
            return
        for one, handler in self._before.items():
            with contextlib.suppress(TypeError):  # a handler that was not set from Python
                signal.signal(one, handler)

    def _keep(self, number: int, view: Any) -> None:
        if number != signal.SIGINT:
            self._caught.append(number)
