"""Which optimizer's step ends an iteration, where there are several."""

from __future__ import annotations

_OUT_OF_USE = 256
"""Steps of others after which an optimizer that ended the iterations is taken to be no longer used."""


class IterationEnd:
    """Of optimizers that step in turn it is the one that steps least often, and of those the one that came last: a
    generator's, after several steps of the discriminator's; the second of two for dense and sparse parameters."""

    def __init__(self) -> None:
        self._steps: dict[int, int] = {}
        self._others = 0

    @property
    def only(self) -> bool:
        """Whether one optimizer alone has stepped."""
        return len(self._steps) == 1

    def count(self, steps: int) -> None:
        """So many steps of the only optimizer ended iterations without being asked for."""
        if steps:
            (mine,) = self._steps
            self._steps[mine] += steps

    def ends(self, optimizer: object) -> bool:
        """Whether this step of the optimizer ends an iteration."""
        steps, mine = self._steps, id(optimizer)
        steps[mine] = steps.get(mine, 0) + 1
        if len(steps) == 1:
            return True
        # Within one round, one of two that take turns is a step ahead of the other.
        least = min(steps.values()) + 1
        last = next(one for one in reversed(steps) if steps[one] <= least)
        if last == mine:
            self._others = 0
            return True
        self._others += 1
        if self._others > _OUT_OF_USE:
            steps.clear()
        return False
