"""Remedies that are switched on in a running process of the script, for the blocks in which it is their turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from tb_dlprof_plugin.trial.protocol import Block, Ready
from tb_dlprof_plugin.trial.variant import Variant, VariantError

T = TypeVar("T")

CHECKED = 8
"""Steps whose losses and gradients are compared, from the same state with the same batches."""

_CUDA_ERROR = "CUDA error"
"""After which a process is no longer what it was: a capture that failed stays with torch's random generator, and the
next remedy would be blamed."""


class Host(Protocol):
    """A running training; ``starts`` counts its processes."""

    starts: int

    @property
    def alive(self) -> bool:
        """Whether it has a process."""
        ...

    def run(self, steps: int, timeout_s: float, switched: Sequence[str] = ()) -> Block:
        """Time steps with these remedies on. Raises VariantError."""
        ...

    def check(self, switched: Sequence[str], seed: int, steps: int, timeout_s: float) -> Ready:
        """Compare steps from the same state with these remedies on. Raises VariantError."""
        ...

    def end(self) -> None:
        """End it. Never raises."""
        ...


class Switched:
    """As `trial.variant.Variant`, of a process that others share.

    Args:
        host: the process.
        remedies: names of those that are on.
        samples: samples per step relative to the baseline's.
        checked: steps that are compared.
    """

    def __init__(self, host: Host, remedies: Sequence[str] = (), samples: float = 1.0, checked: int = CHECKED) -> None:
        self.host, self.remedies, self.samples, self._checked = host, tuple(remedies), samples, checked
        self.ready: list[Ready] = []
        self._timeout_s, self._start = 60.0, 0

    @property
    def alive(self) -> bool:
        """Whether its remedies ran in the host's present process."""
        return self.host.alive and self._start == self.host.starts

    def start(self, timeout_s: float, budget_s: float = 0.0) -> list[Ready]:
        """Check its remedies. Raises VariantError: they fail."""
        self.launch(timeout_s)
        return self.arrived()

    def launch(self, timeout_s: float, budget_s: float = 0.0) -> None:
        """Have the next call of `arrived` take at most so long."""
        self._timeout_s = timeout_s

    def arrived(self) -> list[Ready]:
        """What the check says. Raises VariantError: the remedies fail."""
        if not self.ready or self._start != self.host.starts:
            began = time.monotonic()
            ready = self._guarded(lambda: self.host.check(self.remedies, 0, self._checked, self._timeout_s))
            self._raise(ready.failed)
            ready.since_start_s = time.monotonic() - began
            self.ready, self._start = [ready], self.host.starts
        return self.ready

    def run(self, steps: int, timeout_s: float) -> Block:
        """Time steps. Raises VariantError: the remedies fail."""
        block = self._guarded(lambda: self.host.run(steps, timeout_s, self.remedies))
        self._raise(block.failed)
        self._start = self.host.starts
        # Of what the host keeps for all that share it, the peak has a part.
        block.peak_bytes = None
        return block

    def end(self) -> None:
        """The host goes on."""

    def _raise(self, failed: str) -> None:
        if _CUDA_ERROR in failed:
            self.host.end()
        if failed:
            raise VariantError(failed)

    def _guarded(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except VariantError:
            # Its script has ended, or does not answer: the next turn starts another process.
            self.host.end()
            raise


OfScript: TypeAlias = Variant | Switched
"""A script in a process of its own, or with remedies switched on in one that others share."""
