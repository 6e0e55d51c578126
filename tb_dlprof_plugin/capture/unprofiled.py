"""The step time without the profiler: of the steps that the schedule waits for, before it warms up.

A mark at each step's boundary, and nothing waits for it: on a GPU an event in its stream, read when the trace is
there and the events are long past; else the CPU's clock. The first such step is left out: it allocates and loads.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch

from tb_dlprof_plugin.storage.facts import RunFacts

LEAST_STEPS = 3
"""With fewer there is no figure: single steps vary."""
_MOST_MARKS = 64


class UnprofiledSteps:
    """Marks the boundaries of steps that are not profiled; `fill` puts their median into the facts."""

    def __init__(self) -> None:
        self._marks: list[Any] = []

    def mark(self) -> None:
        """A step that was not profiled ended. The first mark ends the first such step, which is left out by that."""
        if len(self._marks) > _MOST_MARKS:
            del self._marks[0]
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self._marks.append(event)
        else:
            self._marks.append(time.perf_counter_ns())

    def new_cycle(self) -> None:
        """Forget the steps before the trace that was just written."""
        self._marks = []

    def fill(self, facts: RunFacts) -> None:
        """Median and number of the steps between the marks, where there are enough."""
        durations = [_between_ns(a, b) for a, b in zip(self._marks, self._marks[1:], strict=False)]
        known = [duration for duration in durations if duration is not None]
        if len(known) >= LEAST_STEPS:
            facts.unprofiled_step_ns = round(statistics.median(known))
            facts.unprofiled_steps = len(known)


def _between_ns(a: Any, b: Any) -> float | None:
    """None where the GPU came into use in between."""
    if isinstance(a, int) and isinstance(b, int):
        return b - a
    if isinstance(a, int) or isinstance(b, int):
        return None
    b.synchronize()
    return float(a.elapsed_time(b)) * 1e6
