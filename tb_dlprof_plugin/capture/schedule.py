"""Converts the forms in which a user may pass the profiler's schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.profiler import ProfilerAction
from torch.profiler import schedule as torch_schedule

Schedule = Callable[[int], ProfilerAction]

DEFAULT = {"wait": 10, "warmup": 2, "active": 10, "repeat": 1}
"""Ten steps to wait (the first allocates and loads kernels, five are timed without the profiler, four are for the light
window), two to warm up, ten to record, once."""

RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
_LONGEST_LOOK_AHEAD = 100_000


def make_schedule(given: Any) -> Schedule:
    """A schedule from a callable, from a dict of `torch.profiler.schedule`'s arguments, or from a tuple of them in the
    order wait, warmup, active, repeat.

    Raises:
        ValueError: it has none of these forms, or torch refuses it.
    """
    if callable(given):
        return given  # type: ignore[no-any-return]
    try:
        if not isinstance(given, dict):
            given = dict(zip(("wait", "warmup", "active", "repeat"), given, strict=False))
        return torch_schedule(**given)
    except (AssertionError, TypeError) as error:
        raise ValueError(str(error)) from None


def steps_needed(schedule: Schedule) -> int | None:
    """How many steps a loop must have for the first one to be recorded; None if that is beyond the look-ahead."""
    return next((n + 1 for n in range(_LONGEST_LOOK_AHEAD) if schedule(n) in RECORDING), None)
