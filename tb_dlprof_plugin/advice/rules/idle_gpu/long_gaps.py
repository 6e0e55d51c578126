"""Single long times within a step in which a GPU has nothing to run, and what the CPU does in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.rules.idle_gpu.host_phases import launching
from tb_dlprof_plugin.metrics.cpu_activity import ACTIVITIES
from tb_dlprof_plugin.metrics.idle_gaps import idle_gaps
from tb_dlprof_plugin.metrics.iteration_pace import iteration_pace
from tb_dlprof_plugin.model.intervals import Intervals, covered, union
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

LONG_GAP_PERCENT = 10.0
"""Of the step: a single gap this long is not caused by launching. Nsight Systems ("GPU gaps") takes 500 ms, which is
the length of many whole steps."""


@dataclass(frozen=True, slots=True)
class LongGaps:
    """One row per gap of the GPU that each iteration waits for, in order of time.

    Attributes:
        iteration: index of the iteration.
        start_ns: when the GPU had nothing more to run.
        duration_ns: until it had.
        activity: index into `ACTIVITIES` of what the CPU did for most of it.
        next: row of `Profile.launches` of the work that ended it, -1 for none in the iteration.
        pauses: the CPU's pauses in and before all of them: what the GPU waited for.
    """

    iteration: Ints
    start_ns: Ints
    duration_ns: Ints
    activity: Ints
    next: Ints
    pauses: Intervals

    def __len__(self) -> int:
        return len(self.iteration)

    @property
    def whole(self) -> Intervals:
        """The gaps themselves."""
        return union(self.start_ns, self.start_ns + self.duration_ns)


@per_selection
def long_gaps(view: ProfileView, selection: Selection) -> LongGaps:
    """Gaps of a notable share of their step, in most of which the CPU launches nothing and loads no data."""
    gaps, pauses = idle_gaps(view, selection), launching(view, selection).pauses
    busiest = iteration_pace(view, selection).busiest
    step = float(np.median(view.profile.iterations.duration_ns[selection.first : selection.last + 1]))
    stop = gaps.start_ns + gaps.duration_ns
    pausing = covered(pauses, gaps.start_ns, stop)
    long = (100 * gaps.duration_ns >= LONG_GAP_PERCENT * step) & (2 * pausing > gaps.duration_ns)
    long &= gaps.gpu == busiest[gaps.iteration - selection.first] if len(gaps) else False
    activity = gaps.activity_ns.argmax(axis=1) if len(gaps) else np.zeros(0, dtype=np.int64)
    long &= activity != ACTIVITIES.index("dataloader")
    rows = np.flatnonzero(long)
    rows = rows[np.argsort(gaps.start_ns[rows], kind="stable")]
    return LongGaps(
        iteration=gaps.iteration[rows],
        start_ns=gaps.start_ns[rows],
        duration_ns=gaps.duration_ns[rows],
        activity=activity[rows],
        next=gaps.next[rows],
        pauses=_touched(pauses, (gaps.start_ns[rows], stop[rows])),
    )


def _touched(pauses: Intervals, gaps: Intervals) -> Intervals:
    """The pauses of which a part lies in a gap."""
    inside = covered(union(*gaps), *pauses) > 0 if len(gaps[0]) else np.zeros(len(pauses[0]), dtype=np.bool_)
    return pauses[0][inside], pauses[1][inside]
