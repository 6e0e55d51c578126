"""The CPU's time without its waits for the GPU, as recorded and as without the profiler.

A clock is a piecewise linear map. Its slope is 0 where the CPU waits, 1 where it runs as recorded, and less where the
profiler slows it down: between launches by a factor (`recorder_cost`), in pauses by the events in them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.grouping import sorted_values
from tb_dlprof_plugin.model.intervals import Intervals, covered, merge, union_of
from tb_dlprof_plugin.model.profile import Bools, CallKind, Floats, Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.call_names import calls_named
from tb_dlprof_plugin.simulation.pauses import loading_times, pauses
from tb_dlprof_plugin.simulation.waits import waiting_times

EVENT_NS = 2_500.0
"""What recording one op, range or CUDA call costs: the CPU-paced runs of lab/precision_pairs took 6 to 8 us an
op, a third of it the recorder's."""
_RECORDERS_OWN = ("Activity Buffer Request", "Buffer Flush", "Instrumentation", "Resource")
"""CUPTI's names for its own overhead."""


@dataclass(frozen=True, eq=False)
class HostClock:
    """Maps recorded CPU times (ns) to those of a CPU that does not wait.

    ``edges`` and ``clean`` are the corners of the map.
    """

    edges: Floats
    clean: Floats

    def at(self, times: Ints | Floats) -> Floats:
        """Clean times (ns)."""
        return np.interp(times, self.edges, self.clean)

    def scaled(self, intervals: Intervals, share: float) -> HostClock:
        """The clock of a CPU that needs this share of its time in some intervals."""
        if not len(intervals[0]) or share == 1.0:
            return self
        edges = sorted_values(np.concatenate([self.edges, *intervals]))
        step = np.diff(self.at(edges))
        inside = covered(intervals, edges[:-1].astype(np.int64), edges[1:].astype(np.int64)) > 0
        step[inside] *= share
        return HostClock(edges, np.concatenate([[0.0], np.cumsum(step)]))


@per_selection
def recorded_clock(view: ProfileView, _: Selection) -> HostClock:
    """The CPU's time as recorded, without its waits for the GPU."""
    return clock_of(view, 1.0)


def clock_of(view: ProfileView, share: float) -> HostClock:
    """The clock of a run's CPU.

    Args:
        view: the run.
        share: of the recorded time that launching takes; 1 for everything as recorded.
    """
    parts = _parts(view, share < 1.0)
    slope = np.full(len(parts.length_ns), share)
    own = parts.paused
    slope[own] = np.maximum(share, 1.0 - parts.events * EVENT_NS / parts.length_ns[own])
    slope[parts.loading] = 1.0
    slope[parts.stands] = 0.0
    return HostClock(parts.edges, np.concatenate([[0.0], np.cumsum(parts.length_ns * slope)]))


@dataclass(frozen=True, eq=False)
class _Parts:
    """A run's time between ``edges``: which parts are pauses (with so many events in each), loading, or waits."""

    edges: Floats
    length_ns: Ints
    paused: Bools
    events: Ints
    loading: Bools
    stands: Bools


def _parts(view: ProfileView, unprofiled: bool) -> _Parts:
    return view.kept((f"{__name__}._parts", unprofiled), lambda: _found_parts(view, unprofiled))


def _found_parts(view: ProfileView, unprofiled: bool) -> _Parts:
    iterations = view.profile.iterations
    first, last = int(iterations.host_start_ns.min()), int(iterations.host_stop_ns.max())
    nothing: Intervals = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    waiting, loading = waiting_times(view, view.selection()), loading_times(view, view.selection())
    paused, recorders = (pauses(view, view.selection()), _recorders_own(view)) if unprofiled else (nothing, nothing)
    edges = sorted_values(np.concatenate([[first, last], *waiting, *loading, *paused, *recorders]).astype(np.int64))
    edges = edges[(edges >= first) & (edges <= last)]
    starts, stops = edges[:-1], edges[1:]
    own = covered(paused, starts, stops) > 0
    # Recorded calls that begin in each.
    begun = np.sort(view.profile.calls.start_ns) if own.any() else np.zeros(0, np.int64)
    return _Parts(
        edges=edges.astype(np.float64),
        length_ns=stops - starts,
        paused=own,
        events=np.searchsorted(begun, stops[own]) - np.searchsorted(begun, starts[own]),
        loading=covered(loading, starts, stops) > 0,
        stands=covered(merge(waiting, recorders), starts, stops) > 0,
    )


def _recorders_own(view: ProfileView) -> Intervals:
    """When CUPTI hands out or empties its buffers."""
    calls = view.profile.calls
    rows = calls_named(view, CallKind.OVERHEAD, lambda name: name.startswith(_RECORDERS_OWN))
    return union_of(calls, rows)
