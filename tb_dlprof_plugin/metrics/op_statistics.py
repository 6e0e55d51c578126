"""Times of each op over its instances: sums, least and most of CPU time, GPU time, CPU overhead and GPU idle time.

The definitions are DLProf's (User Guide 1.8, sections 8.4, 8.5 and 10.3). An instance is one call of an op. Times are
accumulated: summed over instances. The GPU time of an instance is the union of what it launched (`op_gpu_time`). CPU
overhead is the time within a call outside the CUDA calls in it. GPU idle time is that of `op_idle`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import Figure, figure
from tb_dlprof_plugin.metrics.op_gpu_time import own_gpu_ns
from tb_dlprof_plugin.metrics.op_idle import idle_pieces
from tb_dlprof_plugin.metrics.unattributed_ops import AllOps, all_ops, selected_activities
from tb_dlprof_plugin.model.grouping import sorted_values
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints
from tb_dlprof_plugin.model.tree import outermost
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@dataclass(frozen=True, slots=True)
class OpStatistics:
    """One row per row of `AllOps`; ``instances`` and ``kernel_calls`` are numbers.

    The CPU time of GPU work outside every op is that of the CUDA call that launched it; unknown where none was
    recorded.
    """

    instances: Ints
    kernel_calls: Ints
    cpu: Figure
    gpu: Figure
    overhead: Figure
    idle: Figure


@dataclass(frozen=True, slots=True)
class _Instances:
    """Instances of the selection, and to which of them calls and activities belong (-1: to none)."""

    row: Ints
    of_range: Ints
    of_activity: Ints


@per_selection
def op_statistics(view: ProfileView, selection: Selection) -> OpStatistics:
    """The statistics of every op over the selected iterations."""
    profile, every = view.profile, all_ops(view)
    calls = profile.calls
    ranges = np.flatnonzero(view.selected_calls(selection) & (every.of_call >= 0))
    activities = selected_activities(view, selection)
    outside = every.of_launch[activities] >= every.groups
    found = _instances(view, every, ranges, activities, outside)

    def of(parts: list[tuple[Ints, Ints, Ints]], known: Bools) -> Figure:
        return _figure(found.row, len(every), parts, known)

    duration, api = calls.duration_ns[ranges], _cuda_calls_ns(view)[ranges]
    everywhere = np.ones(len(found.row), dtype=np.bool_)
    of_ranges = (every.of_call[ranges], found.of_range)
    of_outside = (every.of_launch[activities[outside]], found.of_activity[outside])
    call = every.api_call[activities[outside]]
    launch_ns = take_or(calls.duration_ns, call, 0)
    timed = everywhere.copy()
    timed[of_outside[1]] = call >= 0
    idle = idle_pieces(view, selection)
    idle_ns = np.zeros(len(calls) + 1, dtype=np.int64)
    np.add.at(idle_ns, idle.call, idle.duration_ns)
    idle_calls = sorted_values(idle.call)
    place = np.full(len(calls) + 1, -1, dtype=np.int64)
    place[ranges] = found.of_range
    return OpStatistics(
        instances=np.bincount(found.row, minlength=len(every)).astype(np.int64),
        kernel_calls=np.bincount(every.of_launch[activities], minlength=len(every)).astype(np.int64),
        cpu=of([(*of_ranges, duration), (*of_outside, launch_ns)], timed),
        gpu=of([(every.of_launch[activities], found.of_activity, own_gpu_ns(view)[activities])], everywhere),
        overhead=of([(*of_ranges, np.maximum(duration - api, 0)), (*of_outside, launch_ns * 0)], timed),
        idle=of([(every.of_call[idle_calls], place[idle_calls], idle_ns[idle_calls])], everywhere),
    )


def _instances(view: ProfileView, every: AllOps, ranges: Ints, activities: Ints, outside: Bools) -> _Instances:
    """Each call is an instance, and so is each activity outside every op.

    The second and later backward nodes of one forward op continue the instance before them. What has none before it in
    the selection belongs to the first one after.
    """
    profile = view.profile
    calls, launches = profile.calls, profile.launches
    counted = ~profile.ops.continuation[calls.op[ranges]]
    heads = ranges[counted]
    of_range = np.full(len(ranges), -1, dtype=np.int64)
    of_range[counted] = np.arange(len(heads), dtype=np.int64)
    nearest = _Nearest(every.of_call[heads], calls.start_ns[heads])
    rest = ranges[~counted]
    of_range[~counted] = nearest.at(every.of_call[rest], calls.start_ns[rest])

    of_call = np.full(len(calls), -1, dtype=np.int64)
    of_call[ranges] = of_range
    inside = activities[~outside]
    top = view.call_top[launches.call[inside]]
    of_inside = of_call[top]
    # The op began before the selected iterations and launched work in them.
    lost = of_inside < 0
    of_inside[lost] = nearest.at(every.of_launch[inside[lost]], calls.start_ns[top[lost]])
    of_activity = np.full(len(activities), -1, dtype=np.int64)
    of_activity[~outside] = of_inside
    of_activity[outside] = len(heads) + np.arange(int(outside.sum()), dtype=np.int64)
    return _Instances(
        row=np.concatenate((every.of_call[heads], every.of_launch[activities[outside]])),
        of_range=of_range,
        of_activity=of_activity,
    )


class _Nearest:
    """Finds by row and time the last instance that began no later, else the first of the row; -1 where it has none."""

    def __init__(self, row: Ints, start_ns: Ints) -> None:
        self._times = sorted_values(start_ns)
        self._order = np.lexsort((start_ns, row))
        self._row = row[self._order]
        self._keys = self._key(self._row, start_ns[self._order])

    def at(self, row: Ints, time_ns: Ints) -> Ints:
        """The instance for each row and time."""
        if not len(self._order):
            return np.full(len(row), -1, dtype=np.int64)
        before = np.searchsorted(self._keys, self._key(row, time_ns), side="right") - 1
        # In the row above, there is none before: the next one is the row's first, if it has any.
        at = np.where((before >= 0) & (self._row[np.maximum(before, 0)] == row), before, before + 1)
        at = np.minimum(at, len(self._row) - 1)
        return np.where(self._row[at] == row, self._order[at], -1)

    def _key(self, row: Ints, time_ns: Ints) -> Ints:
        return row * (len(self._times) + 1) + np.searchsorted(self._times, time_ns, side="right")


def _figure(row: Ints, rows: int, parts: list[tuple[Ints, Ints, Ints]], known: Bools) -> Figure:
    """A figure from parts of (row, instance or -1, time)."""
    total = np.zeros(rows, dtype=np.int64)
    of_instance = np.zeros(len(row), dtype=np.int64)
    for of_row, instance, time_ns in parts:
        np.add.at(total, of_row, time_ns)
        has = instance >= 0
        np.add.at(of_instance, instance[has], time_ns[has])
    return replace(figure(row[known], of_instance[known], rows), total=total)


def _cuda_calls_ns(view: ProfileView) -> Ints:
    """Per outermost call the time of the CUDA calls in it, itself included."""
    profile = view.profile
    calls = profile.calls
    runtime = (profile.ops.kind == CallKind.RUNTIME)[calls.op]
    rows = np.flatnonzero(runtime & (outermost(runtime, view.call_parent) == np.arange(len(calls))))
    owner = np.where(view.call_top[rows] >= 0, view.call_top[rows], rows)
    result = np.zeros(len(calls), dtype=np.int64)
    np.add.at(result, owner, calls.duration_ns[rows])
    return result
