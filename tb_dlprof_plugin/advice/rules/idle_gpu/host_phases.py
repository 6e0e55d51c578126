"""When the CPU launches one thing after another, and when it does something else for a while."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.grouping import sorted_values
from tb_dlprof_plugin.model.intervals import Intervals, covered, union
from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.host_clock import recorded_clock
from tb_dlprof_plugin.simulation.pauses import pauses, times_of_role


@dataclass(frozen=True, slots=True)
class Launching:
    """Times of the CPU in the selected iterations (ns), each disjoint and in order.

    ``launching`` and ``pauses`` together are the iterations without what the DataLoader takes. ``needed_ns`` is the
    CPU's own time per iteration, waits for the GPU left out, and ``launching_ns`` the part of it in ``launching``.
    """

    launching: Intervals
    pauses: Intervals
    needed_ns: float
    launching_ns: float


@per_selection
def launching(view: ProfileView, selection: Selection) -> Launching:
    """How the CPU spent the selected iterations."""
    iterations, clock = view.profile.iterations, recorded_clock(view, view.selection())
    chosen = slice(selection.first, selection.last + 1)
    windows = union(iterations.host_start_ns[chosen], iterations.host_stop_ns[chosen])
    loading = times_of_role(view, Role.DATALOADER)
    paused = without(intersection(pauses(view, view.selection()), windows), loading)
    working = without(without(windows, loading), paused)
    count = selection.count
    return Launching(
        launching=working,
        pauses=paused,
        needed_ns=float((clock.at(windows[1]) - clock.at(windows[0])).sum()) / count,
        launching_ns=float((clock.at(working[1]) - clock.at(working[0])).sum()) / count,
    )


def intersection(one: Intervals, other: Intervals) -> Intervals:
    """What both cover."""
    edges = sorted_values(np.concatenate([*one, *other]))
    starts, stops = edges[:-1], edges[1:]
    both = (covered(one, starts, stops) > 0) & (covered(other, starts, stops) > 0)
    return union(starts[both], stops[both])


def without(one: Intervals, other: Intervals) -> Intervals:
    """What the first covers and the second does not."""
    edges = sorted_values(np.concatenate([*one, *other]))
    starts, stops = edges[:-1], edges[1:]
    left = (covered(one, starts, stops) > 0) & (covered(other, starts, stops) == 0)
    return union(starts[left], stops[left])
