"""Replays a job with the hosts of its ranks: when each call starts, if paths or transfers were other than recorded.

As in `replay` a collective ends one transfer after its last member has started. A member starts when its GPU and its
host have come so far, each by the longer of its two paths from the call before (`rank_facts.PATHS`). The steps are run
again and again until the hosts have the lead that they have in a long training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.answers.call_paths import PathTimes
from tb_dlprof_plugin.fleet.answers.calls import Calls
from tb_dlprof_plugin.fleet.answers.replay import Wave, ends
from tb_dlprof_plugin.model.profile import Bools, Floats
from tb_dlprof_plugin.simulation.replay import LAUNCH_LATENCY_NS

ROUNDS, STEADY = 6, 0.001
"""The steps are run so often, or until they take as long as the time before but for this share."""


@dataclass(frozen=True, slots=True)
class Paced:
    """Times to replay, a row per call (ns). ``joined`` False: no rank waits for a call."""

    paths: PathTimes
    transfer: Floats
    joined: bool = True


@dataclass(frozen=True, slots=True)
class PacedStep:
    """Times in ns.

    Attributes:
        step: mean step of the job, the longest rank's.
        of_rank: mean step of each rank.
        hidden: of each call, how long its rank waits for others in it while the GPU works.
        stalled: of each call, how long its rank's GPU waits for its end.
    """

    step: float
    of_rank: Floats
    hidden: Floats
    stalled: Floats


def later_waves(calls: Calls, order: Sequence[Wave]) -> list[Wave]:
    """The waves without the first step."""
    result = []
    for wave in order:
        later = calls.step[wave.rows] > 0
        if later.all():
            result.append(wave)
        elif later.any():
            # A collective is one step's on all of its members.
            number = np.cumsum(np.isin(np.arange(len(wave.rows)), wave.begin)) - 1
            kept = number[later]
            begin = np.flatnonzero(np.diff(kept, prepend=-1))
            member_of = np.cumsum(np.diff(kept, prepend=kept[0]) != 0)
            result.append(Wave(wave.rows[later], wave.rank[later], begin, member_of))
    return result


def paced_replay(calls: Calls, later: Sequence[Wave], times: Paced) -> PacedStep:
    """The step of a long training with these times.

    Args:
        calls: as recorded, of more than one step.
        later: of `later_waves`.
        times: what is replayed.
    """
    machine = _Machine(calls, times)
    before, length = machine.end, 0.0
    for _ in range(ROUNDS):
        last, before = length, machine.end.copy()
        machine.run(later)
        length = float((machine.end - before).max(initial=0.0))
        if abs(length - last) <= STEADY * length:
            break
    of_rank = (machine.end - before) / (calls.steps - 1)
    return PacedStep(float(of_rank.max(initial=0.0)), of_rank, machine.hidden, machine.stalled)


def recorded_replay(calls: Calls, later: Sequence[Wave], times: Paced) -> float:
    """The mean step after the first one (ns), from the state in which that ended on each rank; see `paced_replay`."""
    machine = _Machine(calls, times)
    machine.begin_as_recorded()
    machine.run(later)
    return float(machine.end.max(initial=0.0)) / (calls.steps - 1)


def recorded_pace(calls: Calls) -> float:
    """The mean step as recorded (ns), from the end of the first step's last call to that of the last step."""
    ends = np.zeros(calls.ranks)
    for rank in range(calls.ranks):
        rows = calls.of_rank(rank)
        of_first = calls.stop[rows][calls.step[rows] == 0]
        if len(of_first) and calls.steps > 1:
            ends[rank] = calls.stop[rows].max() - of_first.max()
    return float(ends.max(initial=0.0)) / max(calls.steps - 1, 1)


class _Machine:
    """The state between waves: the times of each rank's GPU and host at its last call, when its streams are free."""

    def __init__(self, calls: Calls, times: Paced) -> None:
        self._calls, self._times = calls, times
        self.gpu, self.host, self.end = np.zeros(calls.ranks), np.zeros(calls.ranks), np.zeros(calls.ranks)
        self._stream = np.zeros((calls.ranks, int(calls.stream.max(initial=0)) + 1))
        self.hidden, self.stalled = np.zeros(len(calls.rank)), np.zeros(len(calls.rank))
        self._overlap = _overlap(calls, times.paths.gpu)
        self._blocks: Bools = calls.blocks & times.joined

    def begin_as_recorded(self) -> None:
        """The state at the end of each rank's last call in the first step."""
        calls = self._calls
        for rank in range(calls.ranks):
            rows = np.arange(calls.first[rank], calls.first[rank + 1])
            rows = rows[calls.step[rows] == 0]
            if len(rows):
                last = rows[-1]
                self.host[rank] = -float(calls.lead[last] + calls.duration[last])
                self.gpu[rank] = -float(self._overlap[last] if self._blocks[last] else calls.duration[last])

    def run(self, order: Sequence[Wave]) -> None:
        calls, times, paths = self._calls, self._times, self._times.paths
        for wave in order:
            rows, rank = wave.rows, wave.rank
            gpu, host, stream = self.gpu[rank], self.host[rank], calls.stream[rows]
            ready = np.maximum(gpu + paths.gpu[rows], host + paths.gpu_after_host[rows])
            launched = np.maximum(host + paths.host[rows], gpu + paths.host_after_gpu[rows])
            start = np.maximum(np.maximum(ready, launched + LAUNCH_LATENCY_NS), self._stream[rank, stream])
            own = times.transfer[rows]
            end = ends(calls, wave, start, times.transfer) if times.joined else start + own
            self._stream[rank, stream] = end
            goes_on = ready + self._overlap[rows]
            blocks = self._blocks[rows]
            self.stalled[rows] = np.where(blocks, np.maximum(end - goes_on, 0.0), 0.0)
            self.gpu[rank] = ready + self.stalled[rows]
            self.host[rank] = launched
            self.end[rank] = np.maximum(self.end[rank], end)
            waited = np.maximum(end - own - start, 0)
            self.hidden[rows] = np.where(blocks, np.clip(goes_on - start, 0, waited), waited)


def _overlap(calls: Calls, gpu: Floats) -> Floats:
    """Own time from when a call is ready to where its rank waits for its end: the same work as recorded."""
    ready = calls.ready
    result = np.zeros(len(calls.rank))
    for rank in range(calls.ranks):
        rows = calls.of_rank(rank)
        if rows.stop == rows.start:
            continue
        old = np.maximum.accumulate(ready[rows])
        work = np.minimum(gpu[rows], np.diff(old, prepend=old[0]))
        new = np.cumsum(np.maximum(work, 0.0))
        rest = np.maximum(calls.block[rows] - old[-1], 0.0)
        # Beyond the last call own time goes on as recorded.
        reached = np.interp(calls.block[rows], old, new) + rest
        result[rows] = np.maximum(reached - np.interp(ready[rows], old, new), 0.0)
    return result
