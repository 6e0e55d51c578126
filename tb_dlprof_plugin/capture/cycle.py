"""Decides what is measured in each step of a cycle, from the profiler's schedule alone.

A cycle has three parts: steps without the profiler, which are timed, a light window of steps recorded with GPU
activities alone, and the full window. All ranks of a distributed training make the same plan.
"""

from __future__ import annotations

import enum

from torch.profiler import ProfilerAction

from tb_dlprof_plugin.capture.light_window import light_is_possible
from tb_dlprof_plugin.capture.schedule import Schedule

LIGHT_STEPS = 3
LIGHT_AND_WARMUP = LIGHT_STEPS + 1
LEAST_TIMED = 3
"""With fewer timed steps on one side of the full window their spread is unknown."""
MOST_TIMED = 512
"""Steps on one side of the full window: at 1 ms each, enough to cover the CPU's speed over half a second."""
LOOK_AHEAD = 16
"""Steps. A longer stretch without the profiler is treated as endless."""


class StepKind(enum.Enum):
    """What is measured in a step."""

    REST = "nothing"
    TIMED = "its duration, without the profiler"
    LIGHT_WARMUP = "nothing; the light window's profiler warms up"
    LIGHT = "GPU activities and CUDA calls alone"
    FULL = "all, or the full window's profiler warms up"


def kind_outside(since: int, until: int | None, *, leading: bool, light_after: bool, light: bool) -> StepKind:
    """What is measured in a step of a stretch without the full window's profiler.

    A step directly after a profiler's end is left out, and the first of all steps, which allocates and loads.

    Args:
        since: steps of the stretch before this one.
        until: steps from this one to the full window's warm-up; None where it is farther away than `LOOK_AHEAD`.
        leading: no full window comes before the stretch.
        light_after: the full window before it still lacks its light window.
        light: light windows can be recorded at all.
    """
    length = None if until is None else since + until
    lead = [StepKind.REST] if leading else [StepKind.REST] * 2
    if light and light_after and not leading and (length is None or length > LIGHT_AND_WARMUP):
        lead = [StepKind.REST, StepKind.LIGHT_WARMUP, *[StepKind.LIGHT] * LIGHT_STEPS, StepKind.REST]
    if since < len(lead):
        return lead[since]
    if until is None:
        return StepKind.TIMED if since < len(lead) + MOST_TIMED else StepKind.REST
    if light and since + until >= len(lead) + LEAST_TIMED + LIGHT_AND_WARMUP and until <= LIGHT_AND_WARMUP:
        return StepKind.LIGHT_WARMUP if until == LIGHT_AND_WARMUP else StepKind.LIGHT
    return StepKind.TIMED


class StepKinds:
    """What is measured in the steps of one training, queried at the beginning of each.

    Attributes:
        since: steps without the full window's profiler before the current one; -1 within the window.
        light: whether a light window would say more than the full one.
    """

    def __init__(self, light: bool, since: int = 0) -> None:
        self.since, self.light = since, light
        self._ahead = LookAhead()

    def full(self) -> StepKind:
        """The full window's profiler warms up or records in the step that begins."""
        self.since = -1
        return StepKind.FULL

    def outside(self, schedule: Schedule, step: int, *, leading: bool, light_after: bool) -> StepKind:
        """The full window's profiler is off in the step that begins. Other arguments are those of `kind_outside`.

        Args:
            schedule: the full window's profiler's; the same in all calls.
            step: number of the step that begins.
        """
        self.since += 1
        return kind_outside(
            self.since,
            self._ahead.steps_until_full(schedule, step),
            leading=leading,
            light_after=light_after,
            light=self.light and light_is_possible(),
        )


class LookAhead:
    """Distance to the next full window; calls the schedule once per step."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._until: int | None = None

    def steps_until_full(self, schedule: Schedule, step: int) -> int | None:
        """Steps from this one to the next that the schedule profiles; None if that is beyond the look-ahead or unknown.

        Args:
            schedule: the same in all calls.
            step: if it does not follow the step of the last call, the schedule is queried again.
        """
        if not can_be_asked(schedule):
            return None
        if self._step != step - 1 or self._until == 0:
            self._until = _first_full(schedule, step, 0)
        elif self._until is None:
            self._until = _first_full(schedule, step, LOOK_AHEAD)
        else:
            self._until -= 1
        self._step = step
        return self._until


def _first_full(schedule: Schedule, step: int, nearest: int) -> int | None:
    """Steps to the first profiled step, ``nearest`` to `LOOK_AHEAD` steps from this one."""
    ahead = range(nearest, LOOK_AHEAD + 1)
    return next((n for n in ahead if schedule(step + n) is not ProfilerAction.NONE), None)


def can_be_asked(schedule: Schedule) -> bool:
    """Whether querying future steps has no side effect: Lightning's schedules count their calls."""
    return getattr(schedule, "__module__", "") == "torch.profiler.profiler"
