"""Tells whether the machine's speed changed during the recording, from the same work at different times.

Kernels that every iteration launches in the same number and configuration take the same time each, unless the GPU's
clock changes or another process uses the GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.grouping import numbered
from tb_dlprof_plugin.model.profile import Bools, Floats
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.timed_steps import middle_half

_FEWEST = 3
"""Iterations or steps: of two, a difference is not a trend."""


@dataclass(frozen=True, slots=True)
class ClockDrift:
    """Changes of speed in percent, positive where what came later took longer; None if unknown.

    Attributes:
        kernels: of the same kernels, from the first to the last selected iteration.
        light: of the same kernels, from the light window to the full recording.
        unprofiled: of the steps without the profiler, from those before the recording to those after it.
    """

    kernels: float | None
    light: float | None
    unprofiled: float | None


@per_selection
def clock_drift(view: ProfileView, selection: Selection) -> ClockDrift:
    """The drift over the selected iterations, and around them."""
    facts = view.profile.facts
    return ClockDrift(
        _of_kernels(view, selection),
        _of_light_window(view),
        _of_steps(facts.unprofiled_before_ns, facts.unprofiled_after_ns),
    )


def _of_kernels(view: ProfileView, selection: Selection) -> float | None:
    """The trend of the kernels' median change: that of half of their time, which a few kernels cannot move."""
    count = selection.count
    launches = view.profile.launches
    rows = np.flatnonzero(_computes(view) & view.selected_launches(selection))
    if count < _FEWEST or not len(rows):
        return None
    kind = numbered(launches.kernel[rows], launches.config[rows])
    shape = (int(kind.max()) + 1, count)
    cell = kind * count + view.launch_iteration[rows] - selection.first
    calls = np.bincount(cell, minlength=shape[0] * count).reshape(shape)
    time = np.bincount(cell, weights=launches.duration_ns[rows], minlength=shape[0] * count).reshape(shape)
    alike = (calls.min(axis=1) == calls.max(axis=1)) & (time.min(axis=1) > 0)
    if not alike.any():
        return None
    usual = np.median(time[alike], axis=1)
    change = np.array([weighted_median(column, usual) for column in (time[alike] / usual[:, None]).T])
    first, second = np.triu_indices(count, 1)
    # Theil (1950) and Sen (1968): the median slope, which single iterations cannot move.
    slope = float(np.median((change[second] - change[first]) / (second - first)))
    return 100 * slope * (count - 1)


def _of_light_window(view: ProfileView) -> float | None:
    light, launches = view.profile.light_window.launches, view.profile.launches
    matched = np.flatnonzero(light.launch >= 0)
    full = light.launch[matched]
    both = _computes(view)[full] & (light.duration_ns[matched] > 0)
    if not both.any():
        return None
    before = light.duration_ns[matched][both].astype(np.float64)
    return 100 * (weighted_median(launches.duration_ns[full][both] / before, before) - 1)


def _of_steps(before_ns: Sequence[int], after_ns: Sequence[int]) -> float | None:
    if min(len(before_ns), len(after_ns)) < _FEWEST:
        return None
    before, after = (
        float(middle_half(np.sort(np.array(group, dtype=np.float64))).mean()) for group in (before_ns, after_ns)
    )
    return 100 * (after / before - 1) if before else None


def _computes(view: ProfileView) -> Bools:
    """Which launches are kernels that wait for no other rank: copies take what the bus is left with."""
    return view.launch_is_kernel & ~view.launch_is_collective


def weighted_median(values: Floats, weights: Floats) -> float:
    """The value at which half of the weight is reached."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])
