"""Selects what is replayed: the light window if there is one, else the recording itself."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.change import Change
from tb_dlprof_plugin.simulation.host_clock import HostClock, clock_of, recorded_clock
from tb_dlprof_plugin.simulation.light_window import Light, light
from tb_dlprof_plugin.simulation.prepared_step import Replays, replays
from tb_dlprof_plugin.simulation.recorder_cost import LIGHT_SHARE, SPREAD, CpuShare, unprofiled_share
from tb_dlprof_plugin.simulation.replay import Replayed

MOST_PERCENT = 3.0
"""A replay with a larger error does not model the run well enough to estimate savings. Ours: a saving
of a few percent would be less than the error."""
_MOST_ITERATIONS = 12


@per_selection
def agreement_of(view: ProfileView, selection: Selection) -> float | None:
    """By how many percent the replayed step is longer than the recorded one; None without launches.

    The iterations are replayed as they were recorded, one after the other: with the CPU as slow as it was, after the
    work that the GPU still had when the first began.
    """
    iterations = view.profile.iterations
    numbers = np.arange(selection.first, min(selection.last, selection.first + _MOST_ITERATIONS - 1) + 1)
    again = Replays(view, numbers)
    recorded = float(iterations.duration_ns[numbers].mean())
    if not again.launches or not recorded:
        return None
    behind = float(max(iterations.start_ns[numbers[0]] - iterations.host_start_ns[numbers[0]], 0))
    replayed = again.run(recorded_clock(view, view.selection()), backlog_ns=behind)
    return 100.0 * (replayed.step_ns / recorded - 1.0)


_SHARES = (0.3, 0.45, 0.6, 0.75, 0.9, 1.05, 1.3, 1.6)
_CPU_DECIDES = 1.05
"""A step at least this many times as long as with the fastest CPU determines the CPU's speed."""
_TIMED_SPREAD = 0.05
"""Factor by which the CPU's speed may differ between timed and replayed steps."""


@dataclass(frozen=True, eq=False)
class Basis:
    """Steps to replay.

    Attributes:
        replays: of the light window or the recording.
        view: the replayed run.
        light: how changes are translated; None where the recording itself is replayed.
        share: remaining share of the CPU's time in ``view`` without the recorder, as known without a measured step.
        off_percent: by how much a replay of the recording is longer than the recording; None without launches.
    """

    replays: Replays
    view: ProfileView
    light: Light | None
    share: CpuShare
    off_percent: float | None
    _clocks: dict[float, HostClock] = field(default_factory=dict)
    _unchanged: dict[float, Replayed] = field(default_factory=dict)

    @property
    def trusted(self) -> bool:
        """Whether the replay models this run well enough to estimate savings."""
        return self.off_percent is None or abs(self.off_percent) <= MOST_PERCENT

    def run(self, share: float, changes: Sequence[Change] = ()) -> Replayed:
        """The mean step, with the CPU's launching taking this share of the time that it took in `frame`."""
        if changes:
            own = [self.light.translated(change) for change in changes] if self.light else changes
            return self.replays.run(self._clock(share), own)
        if share not in self._unchanged:
            self._unchanged[share] = self.replays.run(self._clock(share))
        return self._unchanged[share]

    def share_of(self, measured_ns: float) -> tuple[CpuShare, bool]:
        """The CPU share for a measured step, and whether the step determines it.

        If the GPU sets the pace, a step is only an upper bound for the CPU's time.
        """
        least = self.run(_SHARES[0]).step_ns
        if measured_ns < least:
            # The replay overestimates something, such as kernels that share the GPU.
            return self.share, False
        # A slower CPU makes no step shorter: only the shares next to the one that is sought are replayed.
        after = bisect_right(_SHARES, measured_ns, 1, key=lambda share: self.run(share).step_ns)
        around = _SHARES[after - 1 : after + 1]
        own = float(np.interp(measured_ns, [self.run(share).step_ns for share in around], around))
        if self.run(own).step_ns > _CPU_DECIDES * least:
            return CpuShare(own * math.exp(-_TIMED_SPREAD), own, own * math.exp(_TIMED_SPREAD)), True
        known = self.share
        return CpuShare(min(known.low, own), min(known.expected, own), min(known.high, own)), False

    def _clock(self, share: float) -> HostClock:
        if share not in self._clocks:
            self._clocks[share] = clock_of(self.view, share)
        return self._clocks[share]


@per_selection
def basis(view: ProfileView, selection: Selection) -> Basis:
    """The steps that represent the selected iterations."""
    found = light(view, selection)
    if found is None:
        off = agreement_of(view, selection)
        return Basis(replays(view, selection), view, None, unprofiled_share(view, view.selection()), off)
    every = found.view.selection()
    left = 1.0 - LIGHT_SHARE
    share = CpuShare(left * math.exp(-SPREAD), left, left * math.exp(SPREAD))
    return Basis(replays(found.view, every), found.view, found, share, agreement_of(found.view, every))
