"""Which iterations of a script are recorded, from the options of ``tb-dlprof run``. Of the standard library alone."""

from __future__ import annotations

import time
from collections.abc import Callable

from tb_dlprof_plugin.capture.launcher.protocol import RunRequest

FIRST, RECORDED = 12, 10
"""By default: ten iterations from 12 on."""
MOST_RECORDED = 200
"""Where only seconds are given: more iterations add no information, and an event takes about 1 kB of memory."""
_LONG_S = 60.0
"""Iterations so long that their default number takes more than this are recorded for this long."""


class IterationWindow:
    """From iteration ``first`` to ``last``, both inclusive, but not for longer than a time.

    Args:
        request: the options.
        skipped: iterations before the first one, by default.
        recorded: iterations to record, by default.
        least: the lowest number that the first one can have.
        clock: seconds.
    """

    def __init__(
        self,
        request: RunRequest,
        skipped: int = FIRST,
        recorded: int = RECORDED,
        least: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.request, self.recorded = request, recorded
        self._least, self._clock = least, clock
        self._begun_s: float | None = None
        self.first = self.last = 0
        default = skipped if request.last is None else min(skipped, request.last)
        self.begin_at(default if request.first is None else request.first)

    @property
    def explicit(self) -> bool:
        """Whether the user set its end."""
        return self.request.last is not None or self.request.duration_s is not None

    @property
    def missed(self) -> bool:
        """Whether the last iteration to record comes before the first one that can be."""
        return self.last < self.first

    def why_missed(self, iteration: int) -> str:
        """Of a window that was opened too late, with this iteration: a sentence for the user."""
        return (
            f"iteration {iteration} had begun when the delay was over, --iter-stop is {self.last}: give a shorter "
            "--delay or a later --iter-stop"
        )

    def begin_at(self, first: int) -> None:
        """Record from this iteration on."""
        self.first = max(self._least, first)
        wanted = self.recorded if self.request.duration_s is None else MOST_RECORDED
        self.last = self.request.last if self.request.last is not None else self.first + wanted - 1

    def delay_is_over(self, ahead_s: float = 0.0) -> bool:
        """Whether the script runs for as long as ``--delay`` says, or will within these seconds."""
        return time.time() + ahead_s >= self.request.began_s + self.request.delay_s

    def begin(self) -> None:
        """The recording begins now."""
        self._begun_s = self._clock()

    def over(self, iteration: int) -> bool:
        """Whether this iteration, which begins now, is no longer to be recorded."""
        if iteration > self.last:
            return True
        if self._begun_s is None:
            return False
        seconds = self._clock() - self._begun_s
        if self.request.duration_s is not None:
            return seconds >= self.request.duration_s
        return not self.explicit and seconds > _LONG_S
