"""Changes of a step: a what-if is a list of changes, simulated together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tb_dlprof_plugin.model.intervals import Intervals, union_of
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints
from tb_dlprof_plugin.model.tree import inherit
from tb_dlprof_plugin.profile_view import ProfileView


class AddedRow(NamedTuple):
    """CPU time, then a kernel (``gpu_ns`` 0 for none). ``wait`` makes the CPU wait for the GPU afterwards."""

    host_ns: float
    gpu_ns: float
    wait: bool = False


@dataclass(frozen=True, eq=False)
class Added:
    """Columns of work that comes before launches, rows of `Profile.launches`: see `AddedRow`.

    What comes before the same launch is in its order.
    """

    launch: Ints
    host_ns: Floats
    gpu_ns: Floats
    wait: Bools

    def __len__(self) -> int:
        return len(self.launch)

    @classmethod
    def of(cls, before: Mapping[int, Sequence[AddedRow]]) -> Added:
        """Columns of the work before each launch."""
        rows = [one for some in before.values() for one in some]
        launch = np.repeat(np.array([*before], np.int64), np.array([len(some) for some in before.values()], np.int64))
        host_ns, gpu_ns, wait = (
            np.array([one[at] for one in rows], kind) for at, kind in enumerate((float, float, bool))
        )
        return cls(launch, host_ns, gpu_ns, wait)

    def by_launch(self) -> dict[int, list[AddedRow]]:
        """The work before each launch."""
        result: dict[int, list[AddedRow]] = {}
        rows = map(AddedRow, self.host_ns.tolist(), self.gpu_ns.tolist(), self.wait.tolist())
        for launch, one in zip(self.launch.tolist(), rows, strict=True):
            result.setdefault(launch, []).append(one)
        return result


NOTHING_ADDED = Added.of({})


@dataclass(frozen=True, eq=False)
class Change:
    """One change of a step; by default nothing changes.

    Attributes:
        cpu: recorded CPU times (ns), disjoint and in order, of which the share ``keep_cpu`` remains.
        gpu: remaining share of the time of each row of `Profile.launches`, 0 for a removed activity.
        keep_gaps: remaining share of the time between two kernels of which the second waits for the first.
        removed_waits: synchronising calls that are assumed to return immediately.
        concurrent: activities on a separate stream, which delay no others.
        added: work before launches.
        keep_rest: remaining share of the step after an effect that a replay cannot show, such as another GPU's work.
    """

    cpu: Intervals | None = None
    keep_cpu: float = 1.0
    gpu: Floats | None = None
    keep_gaps: float = 1.0
    removed_waits: Bools | None = None
    concurrent: Bools | None = None
    added: Added = NOTHING_ADDED
    keep_rest: float = 1.0


def without_calls(view: ProfileView, gone: Bools, gpu: Floats | None = None) -> Change:
    """Remove calls with everything in them: their CPU time, their waits, their launches.

    Args:
        view: the run.
        gone: the removed rows of `Profile.calls`.
        gpu: share of the time of each activity that remains in any case.
    """
    calls, launches = view.profile.calls, view.profile.launches
    inside = inherit(gone, gone, view.call_parent)
    stays = np.ones(len(launches)) if gpu is None else gpu.copy()
    if len(calls):
        stays[take_or(inside, launches.call, False)] = 0.0
    return Change(cpu=union_of(calls, gone), keep_cpu=0.0, gpu=stays, removed_waits=inside)
