"""How near a replay of what was recorded comes to what was recorded."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.host_clock import recorded_clock
from tb_dlprof_plugin.simulation.prepared_step import Replays

MOST_PERCENT = 3.0
"""A replay that is further off than this knows too little of a run to say what would shorten its steps. Ours: a saving
of a few percent would be less than the error."""
_MOST_ITERATIONS = 12


@per_selection
def agreement_of(view: ProfileView, selection: Selection) -> float | None:
    """By how many percent the replayed step is longer than the recorded one; None without launches.

    The iterations are replayed as they were recorded, one behind the other: with the CPU as slow as it was, and behind
    the work that the GPU still had when the first began.
    """
    iterations = view.profile.iterations
    numbers = np.arange(selection.first, min(selection.last, selection.first + _MOST_ITERATIONS - 1) + 1)
    again = Replays(view, numbers)
    recorded = float(iterations.duration_ns[numbers].mean())
    if not again.launches or not recorded:
        return None
    behind = float(max(iterations.start_ns[numbers[0]] - iterations.host_start_ns[numbers[0]], 0))
    replayed = again.run(recorded_clock(view, view.selection()), behind_ns=behind)
    return 100.0 * (replayed.step_ns / recorded - 1.0)
