"""Decides which optimizer's step ends an iteration, if there are several."""

from __future__ import annotations

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
