"""Which inferences of a measurement are its warm-up: clocks rise and caches fill, so the first ones take longer."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.timeline import Ints, StepMarks, TraceNote

DIFFERENCE = 0.05
"""Share by which the first inferences take longer than the steady ones: trtexec's own measurements of one engine differ
by 1 to 2 % from part to part, and warm-ups take 10 to 40 % longer."""
_TOGETHER = 10
"""Inferences whose median counts: single ones may be slow for other reasons."""
_MOST_SHARE = 0.5
"""Of the inferences. What changes later is no warm-up."""


def warm_up_count(duration_ns: Ints) -> int:
    """How many of the first inferences take longer than those of the second half do at the median; 0 of fewer than 40.

    The warm-up ends with the first inference from which on ten have a median within `DIFFERENCE` of the steady one.
    """
    count = len(duration_ns)
    if count < 4 * _TOGETHER:
        return 0
    steady = float(np.median(duration_ns[count // 2 :]))
    medians = np.median(np.lib.stride_tricks.sliding_window_view(duration_ns, _TOGETHER), axis=1)
    usual = np.flatnonzero(medians <= (1 + DIFFERENCE) * steady)
    first = int(usual[0]) if len(usual) else 0
    if not first or first > _MOST_SHARE * count:
        return 0
    # The window may begin with some of the warm-up's last ones.
    while first < count and duration_ns[first] > (1 + DIFFERENCE) * steady:
        first += 1
    return first


def steady_part(duration_ns: Ints, most: int) -> slice:
    """The ``most`` consecutive inferences whose median is nearest to that of all; all of fewer."""
    count = len(duration_ns)
    if count <= most:
        return slice(0, count)
    starts = np.arange(0, count - most + 1, max(1, most // 4))
    medians = np.array([np.median(duration_ns[start : start + most]) for start in starts.tolist()])
    start = int(starts[int(np.abs(medians - np.median(duration_ns)).argmin())])
    return slice(start, start + most)


def warm_up_note(duration_ns: Ints, count: int) -> TraceNote:
    """What is left out, and how much longer it took at the median than what follows."""
    longer = 100 * (float(np.median(duration_ns[:count])) / max(1.0, float(np.median(duration_ns[count:]))) - 1)
    text = f"The first {count} inferences are the warm-up, and are left out: they take {longer:.0f} % longer."
    return TraceNote("warm_up", text, count)


def without_warm_up(steps: StepMarks) -> tuple[StepMarks, list[TraceNote]]:
    """The steps behind the warm-up, and a note on it; for steps of which only the CPU's call is known."""
    between_ns = np.diff(steps.start_ns)
    count = warm_up_count(between_ns)
    if not count:
        return steps, []
    columns = (steps.number[count:], steps.start_ns[count:], steps.stop_ns[count:])
    return StepMarks(*columns, steps.found_by), [warm_up_note(between_ns, count)]
