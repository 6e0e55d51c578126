"""Iterations whose times are unlike those of the others, by statistics that a few of them cannot move.

What "the others" are the majority decides, unless steps were timed without the profiler: then it is the iterations
nearest to those, however few. The profiler adds about the same share to each iteration, so that iterations are compared
with each other, and not with the step without the profiler, which all of them exceed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.profile import Bools, Floats, Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.estimate import step_estimate

STRAY_SHARE = 0.25
STRAY_DEVIATIONS = 5.0
FEWEST_ITERATIONS = 3
"""The rule `bad_iteration_range` says where the three come from."""

STRAY_MEAN_PERCENT = 20.0
"""By which outliers move the mean of the selected iterations; advice calls a saving of that size high."""
_STEADY_SHARE = 0.5
"""Of the selected iterations, which are alike and follow each other: of fewer it is not known that they are the usual
ones, as where every fourth step waits for a batch."""
_NORMAL = 1.4826
"""Standard deviations per median absolute deviation of a normal distribution."""
_CLUSTER_RATIO = 1.5
"""Iterations belong to different clusters where no time lies between the one and 1.5 times as much. Ours: of recorded
runs without a stray iteration, no two neighbours in order of time are further apart than 1.3 times."""
_LEAST_CLUSTER = 2
"""A single short iteration may be one whose beginning was not recorded."""
_USUAL_QUANTILE = 0.9
"""Of the single steps without the profiler: what a tenth of them exceeds happens now and then."""


@dataclass(frozen=True, slots=True)
class IterationSpread:
    """Which of the selected iterations are unlike the others, row by row.

    Attributes:
        duration_ns: of each iteration, profiler included.
        stray: whether it is unlike the others.
        middle_ns: the median of the iterations that the others were compared with.
        true_ns: the step without the profiler, where it decided which iterations those are; else None.
        kept: first and last row, both inclusive, of the longest unbroken run without a stray one.
    """

    duration_ns: Ints
    stray: Bools
    middle_ns: float
    true_ns: float | None
    kept: tuple[int, int]

    @property
    def kept_ns(self) -> float:
        """Mean over the iterations kept."""
        return float(self.duration_ns[self.kept[0] : self.kept[1] + 1].mean())

    @property
    def shift_percent(self) -> float:
        """By how much the mean over all is above that over the iterations kept."""
        return 100 * (float(self.duration_ns.mean()) / max(self.kept_ns, 1.0) - 1)


@per_selection
def iteration_spread(view: ProfileView, selection: Selection) -> IterationSpread:
    """The selected iterations compared with each other, and with the steps timed without the profiler."""
    duration = view.profile.iterations.duration_ns[selection.first : selection.last + 1]
    facts, light = view.profile.facts, view.profile.light_window
    estimate = step_estimate(view, selection)
    if estimate.source not in ("measured", "light"):
        return spread_of(duration)
    singles: Sequence[int] = [*facts.unprofiled_before_ns, *facts.unprofiled_after_ns]
    if not singles and estimate.source == "light":
        singles = np.diff(light.boundary_ns).tolist()
    return spread_of(duration, estimate.ns, singles)


@per_selection
def steady(view: ProfileView, selection: Selection) -> Selection:
    """The selected iterations that stand for a step: all, or those without a few that alone would carry every mean.

    Left out is what is outside the longest run of iterations that are alike, where that has half of them at least and
    the others move the mean by `STRAY_MEAN_PERCENT` or more. Sums and tables are of all selected iterations.
    """
    spread = iteration_spread(view, selection)
    first, last = spread.kept
    enough = max(_STEADY_SHARE * selection.count, FEWEST_ITERATIONS)
    if abs(spread.shift_percent) < STRAY_MEAN_PERCENT or last - first + 1 < enough:
        return selection
    return Selection(selection.first + first, selection.first + last)


def spread_of(duration_ns: Ints, true_ns: float | None = None, true_steps_ns: Sequence[int] = ()) -> IterationSpread:
    """Which iterations differ from the median of their like by more than `STRAY_SHARE` and `STRAY_DEVIATIONS`.

    Their like are all iterations, or, where their times fall into clusters and ``true_ns`` is known, the cluster of at
    least two that is nearest to it. None is stray of fewer than `FEWEST_ITERATIONS`.

    Args:
        duration_ns: of each iteration, profiler included.
        true_ns: the step without the profiler.
        true_steps_ns: single steps without the profiler: an iteration that is long as often as they are is not stray.
    """
    everything = np.ones(len(duration_ns), dtype=np.bool_)
    like = everything
    if true_ns is not None and len(duration_ns) >= FEWEST_ITERATIONS:
        like = _nearest_cluster(duration_ns, true_ns)
    middle = float(np.median(duration_ns[like]))
    distance = np.abs(duration_ns - middle)
    # Hampel (1974), "The influence curve and its role in robust estimation".
    deviation = _NORMAL * float(np.median(distance[like]))
    stray: Bools = distance > max(STRAY_SHARE * middle, STRAY_DEVIATIONS * deviation)
    if true_ns is not None and len(true_steps_ns) >= FEWEST_ITERATIONS:
        usual = float(np.quantile(np.array(true_steps_ns, dtype=np.float64), _USUAL_QUANTILE)) * middle / true_ns
        stray &= (duration_ns < middle) | (duration_ns > (1 + STRAY_SHARE) * usual)
    if len(duration_ns) < FEWEST_ITERATIONS:
        stray = ~everything
    return IterationSpread(duration_ns, stray, middle, None if like.all() else true_ns, longest_run(~stray))


def _nearest_cluster(duration_ns: Ints, true_ns: float) -> Bools:
    """The iterations of the cluster that is nearest to the true step, by ratio; all where there is one cluster."""
    order = np.argsort(duration_ns, kind="stable")
    ordered: Floats = np.maximum(duration_ns[order], 1).astype(np.float64)
    cluster = np.zeros(len(order), dtype=np.int64)
    cluster[order] = np.concatenate(([0], np.cumsum(ordered[1:] > _CLUSTER_RATIO * ordered[:-1])))
    sizes = np.bincount(cluster)
    fit = [row for row in range(len(sizes)) if sizes[row] >= _LEAST_CLUSTER]
    if not fit:
        return np.ones(len(order), dtype=np.bool_)
    distance = [abs(float(np.log(np.median(duration_ns[cluster == row]) / true_ns))) for row in fit]
    nearest: Bools = cluster == fit[int(np.argmin(distance))]
    return nearest


def longest_run(chosen: Bools) -> tuple[int, int]:
    """First and last index, both inclusive, of the longest unbroken run of True; the later of two as long.

    Raises:
        ValueError: nothing is chosen.
    """
    edges = np.flatnonzero(np.diff(chosen.astype(np.int64), prepend=0, append=0))
    starts, stops = edges[::2], edges[1::2]
    if not len(starts):
        raise ValueError("nothing is chosen")
    best = len(starts) - 1 - int(np.argmax((stops - starts)[::-1]))
    return int(starts[best]), int(stops[best]) - 1
