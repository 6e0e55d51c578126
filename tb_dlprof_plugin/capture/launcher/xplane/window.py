"""Which iterations of a script are recorded, from the options of ``tb-dlprof run``."""

from __future__ import annotations

import time

from tb_dlprof_plugin.capture.launcher.protocol import RunRequest

FIRST, RECORDED = 12, 10
"""By default, as for PyTorch: from iteration 12 on, ten."""
_LEAST_FIRST = 1
"""Which function the step's is is known with its second call."""
_MOST_RECORDED = 200
"""Where only seconds are given: more iterations add no information."""
_LONG_S = 60.0
"""Iterations so long that their default number takes more than this are recorded for this long."""


class Window:
    """From iteration ``first`` to ``last``, both inclusive, but not before a time, and not for longer than a time."""

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self.first = self.last = 0
        self._set(FIRST if request.last is None else min(FIRST, request.last))
        if request.first is not None:
            self._set(request.first)
        self._began_s: float | None = None

    def due(self, iteration: int) -> bool:
        """Whether the profiler starts before this iteration, one before the first that counts."""
        return iteration + 1 >= self.first and time.time() >= self._request.began_s + self._request.delay_s

    def open(self, iteration: int) -> bool:
        """The profiler has started before this iteration; False where that is too late for what was asked for."""
        self._set(max(self.first, iteration + (1 if iteration > 1 or self.first > iteration else 0)))
        return self.first <= self.last

    def begin(self) -> None:
        """The first iteration that counts begins."""
        self._began_s = time.monotonic()

    def over(self, iteration: int) -> bool:
        """Whether this iteration, which begins now, is no longer to be recorded."""
        if iteration > self.last:
            return True
        if self._began_s is None:
            return False
        seconds = time.monotonic() - self._began_s
        if self._request.duration_s is not None:
            return seconds >= self._request.duration_s
        return self._request.last is None and seconds > _LONG_S

    def _set(self, first: int) -> None:
        self.first = max(_LEAST_FIRST, first)
        wanted = RECORDED if self._request.duration_s is None else _MOST_RECORDED
        self.last = self._request.last if self._request.last is not None else self.first + wanted - 1
