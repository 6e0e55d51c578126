"""Which iterations are recorded, from the options of ``tb-dlprof run`` and the earliest possible iteration."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tb_dlprof_plugin.capture.cycle import LEAST_TIMED, LIGHT_AND_WARMUP
from tb_dlprof_plugin.capture.launcher.protocol import RunRequest
from tb_dlprof_plugin.capture.schedule import DEFAULT

WARMUP = DEFAULT["warmup"]
_SKIPPED = DEFAULT["wait"] + WARMUP
_TIMED = 8
"""Iterations before the warm-up whose time is taken: on a GPU that costs some microseconds each."""
_TIMED_AT_MARKS = 32
_NEAR_S = 10.0
_CLOCK_EVERY = 8
_IDLE_AT_ONCE = 1_000
_RECORDED = 10
_MOST_RECORDED = 200
"""Where only seconds are given: more iterations add no information, and an event takes about 1 kB of memory."""
_LONG_S = 60.0
"""Iterations so long that their default number takes more than this are recorded for this long."""


@dataclass(slots=True)
class RecordingWindow:
    """From iteration ``first`` to ``last``, both inclusive, but not before a time, and not for longer than a time.

    Attributes:
        skipped: iterations before the first one, by default.
        recorded: iterations to record, by default.
        light: whether there can be a light window.
    """

    request: RunRequest
    skipped: int = _SKIPPED
    recorded: int = _RECORDED
    light: bool = False
    first: int = 0
    last: int = 0
    _begun_s: float | None = None
    _asked_s: float = 0.0
    _rests_since: int = 0

    def __post_init__(self) -> None:
        request = self.request
        if request.first is not None:
            self.first = request.first
        else:
            self.first = self.skipped if request.last is None else min(self.skipped, request.last)
        self._set_last()

    @property
    def explicit(self) -> bool:
        """Whether the user set its end."""
        return self.request.last is not None or self.request.duration_s is not None

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
        if iteration + self.lead + _TIMED < self.first:
            return False
        return time.time() + _NEAR_S >= self.request.began_s + self.request.delay_s

    def idle(self, iteration: int) -> int:
        """Iterations after this one that only need to be counted: none of them is `near`."""
        now = time.time()
        asked_s, self._asked_s = self._asked_s, now
        if now + _NEAR_S < self.request.began_s + self.request.delay_s:
            # The delay is in seconds: with so many iterations per second, the clock is checked once per that many.
            return _CLOCK_EVERY if now - asked_s < 1.0 else 0
        if self.request.between_marks:
            return 0 if self.near(iteration + 1) else _IDLE_AT_ONCE
        return min(max(0, self.first - self.lead - _TIMED - iteration - 1), _IDLE_AT_ONCE)

    def due(self, iteration: int) -> bool:
        """Whether the light window, or else the warm-up, begins with this iteration."""
        return iteration + self.lead >= self.first and time.time() >= self.request.began_s + self.request.delay_s

    def open(self, iteration: int) -> None:
        """The light window, or else the warm-up, begins with this iteration, which may be later than requested."""
        self.first = max(self.first, iteration + self.lead)
        self._set_last()

    def open_now(self, iteration: int) -> None:
        """The recording begins within this iteration, without a warm-up."""
        self.first, self.recorded = iteration, _MOST_RECORDED
        self._set_last()

    def begin(self) -> None:
        """The recording begins now."""
        self._begun_s = time.monotonic()

    @property
    def missed(self) -> bool:
        """Whether the last iteration to record comes before the first one that can be."""
        return self.last < self.first

    def over(self, iteration: int) -> bool:
        """Whether this iteration, which begins now, is no longer to be recorded."""
        if iteration > self.last or self._begun_s is None:
            return True
        seconds = time.monotonic() - self._begun_s
        if self.request.duration_s is not None:
            return seconds >= self.request.duration_s
        return not self.explicit and seconds > _LONG_S

    def rest(self, iteration: int) -> None:
        """A recording has ended with this iteration, and another one may come."""
        self._rests_since = iteration

    def seconds(self) -> float:
        """Since the recording began."""
        return 0.0 if self._begun_s is None else time.monotonic() - self._begun_s

    def _set_last(self) -> None:
        if self.request.last is not None:
            self.last = self.request.last
        else:
            wanted = self.recorded if self.request.duration_s is None else _MOST_RECORDED
            self.last = self.first + wanted - 1
