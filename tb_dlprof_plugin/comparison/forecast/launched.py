"""The launches of a run in the order of their calls, as the forecast goes through them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.frame import Frame, Selection, per_selection
from tb_dlprof_plugin.storage.model import Floats, Ints


@dataclass(frozen=True)
class Launched:
    """Rows by iteration and CPU time: ``launch`` is a row of `Profile.launches`, ``call`` of `Profile.calls`."""

    iteration: Ints
    launch: Ints
    call: Ints


@per_selection
def launched(frame: Frame, _: Selection) -> Launched:
    """All launches whose call was recorded, in all iterations."""
    launches, calls = frame.profile.launches, frame.profile.calls
    rows = np.flatnonzero((launches.call >= 0) & (frame.launch_iteration >= 0))
    call, iteration = launches.call[rows], frame.launch_iteration[rows]
    order = np.lexsort((launches.start_ns[rows], calls.start_ns[call], iteration))
    return Launched(iteration[order], rows[order], call[order])


def recorded_ns(frame: Frame, work: Launched) -> Floats:
    """Recorded GPU time of each row."""
    return frame.profile.launches.duration_ns[work.launch].astype(np.float64)
