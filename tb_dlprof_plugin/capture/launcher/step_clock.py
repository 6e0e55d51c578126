"""Counts the iterations of a training by the steps of its optimizers, and tells an observer of each that ends."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from torch.optim import Optimizer

_OUT_OF_USE = 256
"""Steps of other optimizers after which the one that ended the iterations counts as no longer used."""


class StepBoundary:
    """Of optimizers that step in turn, the one that steps least often, and of several such the last: a
    generator's, after several steps of the discriminator's; the second of two for dense and sparse parameters."""

    def __init__(self) -> None:
        self._steps: dict[int, int] = {}
        self._others = 0

    @property
    def only(self) -> bool:
        """Whether one optimizer alone has stepped."""
        return len(self._steps) == 1

    def count(self, steps: int) -> None:
        """Add steps of the only optimizer that ended iterations and were not passed to `ends`."""
        if steps:
            (mine,) = self._steps
            self._steps[mine] += steps

    def ends(self, optimizer: object) -> bool:
        """Whether this step of the optimizer ends an iteration."""
        steps, mine = self._steps, id(optimizer)
        steps[mine] = steps.get(mine, 0) + 1
        if len(steps) == 1:
            return True
        # Of two optimizers that alternate, one is a step ahead within a round.
        least = min(steps.values()) + 1
        last = next(one for one in reversed(steps) if steps[one] <= least)
        if last == mine:
            self._others = 0
            return True
        self._others += 1
        if self._others > _OUT_OF_USE:
            steps.clear()
        return False


class StepClock:
    """The iterations of one training.

    Args:
        on_step: called when an iteration has ended, with the number of the one that follows.

    Attributes:
        number: iterations that ended; that of the iteration that runs. Its owner may set it.
    """

    def __init__(self, on_step: Callable[[int], None]) -> None:
        self.number = 0
        self._on_step = on_step
        self._boundary = StepBoundary()
        self._optimizers: dict[int, weakref.ref[Optimizer]] = {}
        # The steps of this optimizer up to this number are only counted; since this number they have been.
        self._last: int | None = None
        self._rests_until = self._rests_since = 0

    @property
    def optimizers(self) -> list[Optimizer]:
        """Those that have stepped and still live."""
        return [optimizer for known in self._optimizers.values() if (optimizer := known()) is not None]

    def step(self, optimizer: Optimizer) -> None:
        """An optimizer has stepped."""
        # Most steps of a training end here, at the cost of a fraction of a microsecond.
        if self.number < self._rests_until and id(optimizer) == self._last:
            self.number += 1
            return
        self.wake()
        self._last = id(optimizer)
        known = self._optimizers.get(id(optimizer))
        if known is None or known() is not optimizer:
            self._optimizers[id(optimizer)] = weakref.ref(optimizer)
        if self._boundary.ends(optimizer):
            self.number += 1
            self._on_step(self.number)

    def rest(self, steps: int) -> None:
        """Only count the next steps of the optimizer that has stepped last, until another one steps."""
        if self._boundary.only:
            self._rests_since, self._rests_until = self.number, self.number + steps

    def wake(self) -> None:
        """Tell of the next step again."""
        if self._rests_until:
            self._boundary.count(self.number - self._rests_since)
            self._rests_until = 0
