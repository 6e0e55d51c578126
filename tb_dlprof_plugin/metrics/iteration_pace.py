"""Whether the CPU or the GPU sets the pace of each recorded iteration.

Two shares decide. How long the GPU had nothing to do because its next work was launched late: what a faster CPU could
save at most. How long the CPU could have gone on but waited for the GPU or was ahead of it: what a faster GPU could
save at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tb_dlprof_plugin.metrics.bottleneck import host_needs_ns
from tb_dlprof_plugin.metrics.idle_gaps import GapKind, idle_gaps
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

STARVED_SHARE = 0.05
"""Of an iteration, from which the CPU delays the GPU. Ours: no limit is published. Recorded iterations with a GPU
that always has work queued stay below 4 %; those in which it runs out of work begin at 8 %."""
SLACK_SHARE = 0.1
"""Of an iteration, from which the GPU delays the CPU as well. Ours: a scalar that is read once per step costs up to
8 % in recorded runs that otherwise launch as fast as they can."""


class Pace(IntEnum):
    """The side that sets the pace."""

    UNKNOWN = 0
    GPU = 1
    CPU = 2
    MIXED = 3


@dataclass(frozen=True, slots=True)
class IterationPace:
    """Columns of shape (iterations, GPUs); ``slack_ns`` and ``busiest`` have one row per iteration.

    Attributes:
        window_ns: the iteration's duration.
        busy_ns: time in which the GPU ran something.
        idle_ns: the rest.
        starved_ns: idle time that ended with work launched after the GPU had nothing more to do.
        unknown_ns: idle time of which that is not known.
        slack_ns: the part of the duration that the CPU does not need: it waits in CUDA calls, or is ahead of the GPU.
        pace: the `Pace`.
        busiest: index of the GPU that was idle least: its pace is the iteration's.
    """

    window_ns: Ints
    busy_ns: Ints
    idle_ns: Ints
    starved_ns: Ints
    unknown_ns: Ints
    slack_ns: Ints
    pace: Ints
    busiest: Ints

    @property
    def of_iteration(self) -> Ints:
        """The `Pace` of each iteration: that of its busiest GPU."""
        if not self.pace.shape[1]:
            return np.zeros(len(self.pace), dtype=np.int64)
        return self.pace[np.arange(len(self.pace)), self.busiest]


@per_selection
def iteration_pace(view: ProfileView, selection: Selection) -> IterationPace:
    """The pace of the selected iterations, per GPU that the process used."""
    gaps = idle_gaps(view, selection)
    window, busy = gaps.window_ns, gaps.busy_ns
    first = selection.first
    shape = window.shape

    def idle_of(kind: GapKind) -> Ints:
        rows = gaps.kind == kind
        result = np.zeros(shape, dtype=np.int64)
        np.add.at(result, (gaps.iteration[rows] - first, gaps.gpu[rows]), gaps.duration_ns[rows])
        return result

    starved, unknown = idle_of(GapKind.HOST_WAIT), idle_of(GapKind.UNKNOWN)
    duration = view.profile.iterations.duration_ns[first : selection.last + 1]
    needs = host_needs_ns(view)[first : selection.last + 1]
    # A first iteration whose beginning the GPU spent on earlier work is shorter than what the CPU did in it.
    slack = np.maximum(duration - needs, 0)
    late = starved >= STARVED_SHARE * window
    waits = (slack >= SLACK_SHARE * duration)[:, None]
    pace = np.select(
        [window <= 0, late & waits, late, unknown >= STARVED_SHARE * window],
        [int(Pace.UNKNOWN), int(Pace.MIXED), int(Pace.CPU), int(Pace.UNKNOWN)],
        int(Pace.GPU),
    ).astype(np.int64)
    return IterationPace(
        window_ns=window,
        busy_ns=busy,
        idle_ns=window - busy,
        starved_ns=starved,
        unknown_ns=unknown,
        slack_ns=slack,
        pace=pace,
        busiest=np.argmax(busy, axis=1) if shape[1] else np.zeros(len(duration), dtype=np.int64),
    )
