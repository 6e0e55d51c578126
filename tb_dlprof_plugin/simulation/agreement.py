"""Error of a replay of the recording against the recording itself."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.host_clock import recorded_clock
from tb_dlprof_plugin.simulation.prepared_step import Replays

MOST_PERCENT = 3.0
"""A replay with a larger error does not model the run well enough to estimate savings. Ours: a saving
of a few percent would be less than the error."""
_MOST_ITERATIONS = 12


@per_selection
def agreement_of(view: ProfileView, selection: Selection) -> float | None:
    """By how many percent the replayed step is longer than the recorded one; None without launches.

    The iterations are replayed as they were recorded, one after the other: with the CPU as slow as it was, after the
    work that the GPU still had when the first began.
    """
    iterations = view.profile.iterations
    numbers = np.arange(selection.first, min(selection.last, selection.first + _MOST_ITERATIONS - 1) + 1)
    again = Replays(view, numbers)
    recorded = float(iterations.duration_ns[numbers].mean())
    if not again.launches or not recorded:
        return None
    behind = float(max(iterations.start_ns[numbers[0]] - iterations.host_start_ns[numbers[0]], 0))
    replayed = again.run(recorded_clock(view, view.selection()), backlog_ns=behind)
    return 100.0 * (replayed.step_ns / recorded - 1.0)
