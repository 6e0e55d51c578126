"""The duration of single steps without the profiler.

Takes a time at each step boundary without waiting: on a GPU an event in its stream, read when the GPU has passed it;
else the CPU's clock.
"""

from __future__ import annotations

import time
from collections import deque
from itertools import pairwise
from typing import Any

import torch

from tb_dlprof_plugin.capture.warn import probe

_MOST_MARKS = 520
_events: list[torch.cuda.Event] = []
"""All that were made. A process that is forked, such as a loader's worker, has no CUDA: to collect an event that became
garbage before the fork would abort it. So no event ever becomes garbage."""
_unused: dict[int, list[torch.cuda.Event]] = {}
"""Those of `_events` that can be recorded again, by GPU."""


class StepTimer:
    """Marks the boundaries of timed steps."""

    def __init__(self) -> None:
        # None: the interval between the marks around it is not a timed step.
        self._marks: deque[Any] = deque()
        self._steps = 0

    def begin(self) -> None:
        """A timed step begins, and none ended just now."""
        self._append(None)
        self._append(probe(_now))

    def mark(self) -> None:
        """A timed step ended; the next one begins."""
        self._append(probe(_now))
        self._steps += 1

    def new_cycle(self) -> None:
        """Forget all steps."""
        while self._marks:
            _give_back(self._marks.popleft())
        self._steps = 0

    @property
    def steps(self) -> int:
        """Number of timed steps so far."""
        return self._steps

    def settled(self) -> bool:
        """Whether the GPU has passed the last mark."""
        return not self._marks or _passed(self._marks[-1])

    def durations_ns(self) -> list[int]:
        """Of the steps that the GPU has passed, in order."""
        pairs = [(a, b) for a, b in pairwise(self._marks) if a is not None and b is not None]
        # Events of two GPUs have no time between them.
        found = [probe(lambda a=a, b=b: _between_ns(a, b)) for a, b in pairs]  # type: ignore[misc]
        return [round(duration) for duration in found if duration is not None]

    def _append(self, mark: Any) -> None:
        self._marks.append(mark)
        if len(self._marks) > _MOST_MARKS:
            _give_back(self._marks.popleft())


def _now() -> Any:
    if not torch.cuda.is_initialized():
        return time.perf_counter_ns()
    if torch.cuda.is_current_stream_capturing():
        # An event would become a part of the user's graph.
        return None
    unused = _unused.get(torch.cuda.current_device())
    if unused:
        event = unused.pop()
    else:
        event = torch.cuda.Event(enable_timing=True)
        _events.append(event)
    event.record()
    return event


def _give_back(mark: Any) -> None:
    if isinstance(mark, torch.cuda.Event):
        _unused.setdefault(mark.device.index, []).append(mark)


def _passed(mark: Any) -> bool:
    return mark is None or isinstance(mark, int) or bool(mark.query())


def _between_ns(a: Any, b: Any) -> float | None:
    """None if the GPU was first used in between, or has not reached the mark."""
    if isinstance(a, int) and isinstance(b, int):
        return b - a
    if isinstance(a, int) or isinstance(b, int) or not _passed(b):
        return None
    return float(a.elapsed_time(b)) * 1e6
