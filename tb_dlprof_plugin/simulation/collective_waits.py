"""The pace that a rank has by itself: its launches replayed with collectives that wait for no other rank.

The profiler delays each rank by its own amount, and the ranks that are delayed less wait for the others inside their
collectives. That waiting looks like work of the GPU, but is the recorder's. A collective ends on all ranks together,
so of the same collective on several ranks the shortest one moved the data, and what the others took longer they waited.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.lookup import rows_of_each, rows_with
from tb_dlprof_plugin.model.profile import Floats, Ints
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change


@dataclass(frozen=True, eq=False)
class WithoutWaiting:
    """Collectives as short as on the rank that came last; ``waited_ns`` is how much shorter, per step."""

    change: Change
    waited_ns: float


def without_waiting(view: ProfileView, ranks: Sequence[ProfileView]) -> WithoutWaiting | None:
    """Collectives as short as on the rank that came last; None where there are none.

    Collectives are compared by their order within the steps that all ranks recorded with as many of them. Where no
    other rank was recorded so, how much of a collective is waiting is unknown: it takes no time, which bounds the step
    from below.

    Args:
        view: the rank.
        ranks: all ranks of the job that were recorded, with or without ``view``.
    """
    rows = np.flatnonzero(view.launch_is_collective & (view.launch_iteration >= 0))
    if not len(rows):
        return None
    launches = view.profile.launches
    shortest = _shortest(view, rows, [other for other in ranks if other is not view])
    keep = np.ones(len(launches))
    keep[rows] = shortest / np.maximum(launches.duration_ns[rows], 1)
    waited = launches.duration_ns[rows] - shortest
    return WithoutWaiting(Change(gpu=keep), float(waited.sum()) / len(view.profile.iterations))


def compared(view: ProfileView, ranks: Sequence[ProfileView]) -> bool:
    """Whether another rank recorded a step with as many collectives."""
    own = _per_step(view)
    return any(own.items() & _per_step(other).items() for other in ranks if other is not view)


def _shortest(view: ProfileView, rows: Ints, others: Sequence[ProfileView]) -> Floats:
    """The shortest time on any rank of each collective of ``rows`` (ns), 0 where no other rank shows it."""
    launches, numbers = view.profile.launches, view.profile.iterations.number
    result = np.zeros(len(rows))
    step = numbers[view.launch_iteration[rows]]
    theirs = [_durations(other) for other in others]
    for number, mine in rows_of_each(step):
        mine = mine[np.argsort(launches.start_ns[rows[mine]], kind="stable")]
        found = [launches.duration_ns[rows[mine]]]
        found += [same for of_step in theirs if len(same := of_step.get(number, found[0][:0])) == len(mine)]
        if len(found) > 1:
            result[mine] = np.min(found, axis=0)
    return result


def _durations(view: ProfileView) -> dict[int, Ints]:
    """By number of the step, of the collectives that it launched in order of their start."""
    launches, numbers = view.profile.launches, view.profile.iterations.number
    rows = np.flatnonzero(view.launch_is_collective & (view.launch_iteration >= 0))
    rows = rows[np.argsort(launches.start_ns[rows], kind="stable")]
    first = rows_with(numbers, numbers)
    return {
        int(numbers[iteration]): launches.duration_ns[rows[mine]]
        for iteration, mine in rows_of_each(view.launch_iteration[rows])
        if first[iteration] == iteration
    }


def _per_step(view: ProfileView) -> dict[int, int]:
    """How many collectives each step launched, by the step's number; only steps with some."""
    iteration = view.launch_iteration[view.launch_is_collective & (view.launch_iteration >= 0)]
    counts = np.bincount(iteration, minlength=len(view.profile.iterations))
    return {
        int(number): int(count) for number, count in zip(view.profile.iterations.number, counts, strict=True) if count
    }
