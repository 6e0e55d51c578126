"""The launches of a run in the order of their calls, as the forecast processes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.profile import Floats, Ints
from tb_dlprof_plugin.profile_view import ProfileView, per_view


@dataclass(frozen=True)
class Launched:
    """Rows by iteration and CPU time: ``launch`` is a row of `Profile.launches`, ``call`` of `Profile.calls`."""

    iteration: Ints
    launch: Ints
    call: Ints


@per_view
def launched(view: ProfileView) -> Launched:
    """All launches whose call was recorded, in all iterations."""
    launches, calls = view.profile.launches, view.profile.calls
    rows = np.flatnonzero((launches.call >= 0) & (view.launch_iteration >= 0))
    call, iteration = launches.call[rows], view.launch_iteration[rows]
    order = np.lexsort((launches.start_ns[rows], calls.start_ns[call], iteration))
    return Launched(iteration[order], rows[order], call[order])


def recorded_ns(view: ProfileView, work: Launched) -> Floats:
    """Recorded GPU time of each row."""
    return view.profile.launches.duration_ns[work.launch].astype(np.float64)
