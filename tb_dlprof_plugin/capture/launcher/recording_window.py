"""When a training's recording and what comes before it begin: the timed iterations, the light window, the warm-up."""

from __future__ import annotations

import time
from typing import Any

from tb_dlprof_plugin.capture.cycle import LEAST_TIMED, LIGHT_AND_WARMUP
from tb_dlprof_plugin.capture.launcher.iteration_window import MOST_RECORDED, IterationWindow
from tb_dlprof_plugin.capture.launcher.protocol import RunRequest
from tb_dlprof_plugin.capture.schedule import DEFAULT

WARMUP = DEFAULT["warmup"]
_TIMED = 8
"""Iterations before the warm-up whose time is taken: on a GPU that costs some microseconds each."""
_TIMED_AT_MARKS = 32
_NEAR_S = 10.0
_CLOCK_EVERY = 8
_IDLE_AT_ONCE = 1_000


class RecordingWindow(IterationWindow):
    """An `IterationWindow` that begins after a delay, with a light window and a warm-up before it.

    Attributes:
        light: whether there can be a light window.
    """

    def __init__(self, request: RunRequest, skipped: int = DEFAULT["wait"] + WARMUP, **options: Any) -> None:
        super().__init__(request, skipped, **options)
        self.light = False
        self._asked_s = 0.0
        self._rests_since = 0

    @property
    def warmup(self) -> int:
        """Iterations for which the profiler is on and its data discarded."""
        return min(WARMUP, self.first)

    @property
    def lead(self) -> int:
        """Iterations of the light window and of the warm-up; without enough timed ones before it, it comes later."""
        room = self.first - self.warmup >= 1 + LEAST_TIMED + LIGHT_AND_WARMUP
        return self.warmup + (LIGHT_AND_WARMUP if self.light and room else 0)

    def near(self, iteration: int) -> bool:
        """Whether the light window or the warm-up begins within the next iterations, or may do so within seconds. With
        the script's cudaProfilerStart/Stop, the first iterations after the start and after the end of each
        recording."""
        if self.request.between_marks:
            return iteration <= self._rests_since + _TIMED_AT_MARKS
        return iteration + self.lead + _TIMED >= self.first and self.delay_is_over(_NEAR_S)

    def idle(self, iteration: int) -> int:
        """Iterations after this one that only need to be counted: none of them is `near`."""
        now = time.time()
        asked_s, self._asked_s = self._asked_s, now
        if not self.delay_is_over(_NEAR_S):
            # The delay is in seconds: with so many iterations per second, the clock is checked once per that many.
            return _CLOCK_EVERY if now - asked_s < 1.0 else 0
        if self.request.between_marks:
            return 0 if self.near(iteration + 1) else _IDLE_AT_ONCE
        return min(max(0, self.first - self.lead - _TIMED - iteration - 1), _IDLE_AT_ONCE)

    def due(self, iteration: int) -> bool:
        """Whether the light window, or else the warm-up, begins with this iteration."""
        return iteration + self.lead >= self.first and self.delay_is_over()

    def open(self, iteration: int) -> None:
        """The light window, or else the warm-up, begins with this iteration, which may be later than requested."""
        self.begin_at(max(self.first, iteration + self.lead))

    def open_now(self, iteration: int) -> None:
        """The recording begins within this iteration, without a warm-up."""
        self.recorded = MOST_RECORDED
        self.begin_at(iteration)

    def rest(self, iteration: int) -> None:
        """A recording has ended with this iteration, and another one may come."""
        self._rests_since = iteration
