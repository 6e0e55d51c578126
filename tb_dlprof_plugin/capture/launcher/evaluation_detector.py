"""Tells whether a call of the model begins an iteration or an evaluation, and whether an iteration takes too long."""

from __future__ import annotations

import collections
import time

import torch
from torch import nn

ENOUGH_ITERATIONS = 3
"""An evaluation that comes after so many recorded iterations ends the recording, unless the user set its end; else it
is part of no iteration."""
_LONGEST_S = 30.0
_MOST_CALLS_ASIDE = 100
_MOST_CALLS = 1000
"""Calls in one iteration, which must also take longer than `_LONGEST_S`: limits the memory that the recording uses."""

Mode = tuple[bool, bool]
"""Mode of a call: whether the module is in training mode, whether gradients are recorded."""


def mode_of(module: nn.Module) -> Mode:
    """The mode of a call of the module at this moment."""
    return module.training, torch.is_grad_enabled()


class EvaluationDetector:
    """Learns during the warm-up in which mode iterations begin: a call in another mode begins an evaluation."""

    def __init__(self) -> None:
        self._seen: collections.Counter[Mode] = collections.Counter()
        self._usual: Mode | None = None
        self.evaluating = False
        """Whether an evaluation is running."""
        self.gaps = 0
        """Evaluations so far. Each takes an iteration number, because consecutive numbers mean a shared boundary."""
        self._calls = 0
        self._since_s = 0.0

    def learn(self, mode: Mode) -> None:
        """An iteration began in this mode."""
        self._seen[mode] += 1

    def settle(self) -> None:
        """The warm-up is over."""
        self._usual = self._seen.most_common(1)[0][0] if self._seen else None

    def forget(self) -> None:
        """Accept any mode: an optimizer stepped without a call in the usual one."""
        self._usual = None

    def is_evaluation(self, mode: Mode) -> bool:
        """After the warm-up, whether a call in this mode begins no iteration."""
        return self._usual is not None and mode != self._usual

    def is_unlikely(self, mode: Mode) -> bool:
        """In the warm-up, whether most iterations so far began otherwise."""
        most = self._seen.most_common(1)
        return bool(most) and most[0][1] > 1 and mode != most[0][0]

    def begin_iteration(self) -> None:
        """An iteration begins."""
        self.evaluating = False
        self._calls, self._since_s = 0, time.monotonic()

    def begin_evaluation(self) -> None:
        """An evaluation begins."""
        self.evaluating = True
        self.gaps += 1
        self._calls, self._since_s = 0, time.monotonic()

    def count_call(self) -> None:
        """The model is called."""
        self._calls += 1

    @property
    def is_too_long(self) -> bool:
        """Whether the recording must end within this iteration."""
        seconds = time.monotonic() - self._since_s
        if self.evaluating:
            return seconds > _LONGEST_S or self._calls > _MOST_CALLS_ASIDE
        return seconds > _LONGEST_S and self._calls > _MOST_CALLS
