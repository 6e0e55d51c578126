"""When the CPU launches one thing after another, and when it does something else for a while.

Between two launch calls lie the ops, the Python code around them and the bookkeeping of autograd: tens of microseconds.
A much longer time between two launches is a pause: the CPU computes, loads or waits. What fewer launches would save is
in the one, what other code would save in the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.thresholds import PAUSE_NS
from tb_dlprof_plugin.frame import Frame, Selection, per_selection
from tb_dlprof_plugin.simulation.host import HostClock, host_clock
from tb_dlprof_plugin.storage.intervals import Union, covered, merge, union
from tb_dlprof_plugin.storage.model import CallKind, Ints, Role


@dataclass(frozen=True, slots=True)
class Launching:
    """Times of the CPU in the selected iterations (ns), each disjoint and in order.

    ``launching`` and ``pauses`` together are the iterations without what the DataLoader takes. ``needed_ns`` is the
    CPU's own time per iteration, waits for the GPU left out, and ``launching_ns`` the part of it in ``launching``.
    """

    launching: Union
    pauses: Union
    needed_ns: float
    launching_ns: float


@per_selection
def recorded_clock(frame: Frame, _: Selection) -> HostClock:
    """The CPU's time as recorded, without its waits for the GPU."""
    return host_clock(frame, 1.0)


@per_selection
def launching(frame: Frame, selection: Selection) -> Launching:
    """How the CPU spent the selected iterations."""
    iterations, clock = frame.profile.iterations, recorded_clock(frame, selection)
    chosen = slice(selection.first, selection.last + 1)
    windows = union(iterations.host_start_ns[chosen], iterations.host_stop_ns[chosen])
    loading = _of_role(frame, Role.DATALOADER)
    pauses = without(intersection(_pauses(frame, clock), windows), loading)
    working = without(without(windows, loading), pauses)
    count = selection.count
    return Launching(
        launching=working,
        pauses=pauses,
        needed_ns=float((clock.at(windows[1]) - clock.at(windows[0])).sum()) / count,
        launching_ns=float((clock.at(working[1]) - clock.at(working[0])).sum()) / count,
    )


@per_selection
def full_speed(frame: Frame, selection: Selection) -> Union:
    """When the profiler slows nothing down: pauses, and what the DataLoader takes."""
    return merge(launching(frame, selection).pauses, _of_role(frame, Role.DATALOADER))


def _pauses(frame: Frame, clock: HostClock) -> Union:
    calls, iterations = frame.profile.calls, frame.profile.iterations
    launched = frame.profile.launches.call
    call = np.unique(launched[(launched >= 0) & (frame.launch_iteration >= 0)])
    call = call[np.argsort(calls.start_ns[call], kind="stable")]
    stops = np.maximum.accumulate(calls.start_ns[call] + calls.duration_ns[call])
    begin = np.concatenate([iterations.host_start_ns[:1], stops])
    end = np.concatenate([calls.start_ns[call], iterations.host_stop_ns[-1:]])
    long = np.flatnonzero(clock.at(end) - clock.at(begin) > PAUSE_NS)
    begin, end = begin[long], end[long]
    own = 2 * covered(_bookkeeping(frame), begin, end) < end - begin
    return union(begin[own], end[own])


def _bookkeeping(frame: Frame) -> Union:
    """What PyTorch does between launches: an optimizer sorts its parameters, autograd hands gradients on; and what the
    profiler does."""
    calls, ops = frame.profile.calls, frame.profile.ops
    kind = ops.kind[calls.op]
    short = (ops.role[calls.op] == Role.BACKWARD) & (kind == CallKind.OP) & (calls.duration_ns < PAUSE_NS)
    rows = short | (kind == CallKind.OVERHEAD)
    spans = union(calls.start_ns[rows], calls.start_ns[rows] + calls.duration_ns[rows])
    return merge(spans, _of_role(frame, Role.OPTIMIZER))


def intersection(one: Union, other: Union) -> Union:
    """What both cover."""
    edges = np.unique(np.concatenate([*one, *other]))
    starts, stops = edges[:-1], edges[1:]
    both = (covered(one, starts, stops) > 0) & (covered(other, starts, stops) > 0)
    return union(starts[both], stops[both])


def without(one: Union, other: Union) -> Union:
    """What the first covers and the second does not."""
    edges = np.unique(np.concatenate([*one, *other]))
    starts, stops = edges[:-1], edges[1:]
    left = (covered(one, starts, stops) > 0) & (covered(other, starts, stops) == 0)
    return union(starts[left], stops[left])


def _of_role(frame: Frame, role: Role) -> Union:
    """Annotations of the optimizer or the DataLoader."""
    calls, ops = frame.profile.calls, frame.profile.ops
    rows = (ops.role[calls.op] == role) & (ops.kind[calls.op] == CallKind.ANNOTATION)
    starts: Ints = calls.start_ns[rows]
    return union(starts, starts + calls.duration_ns[rows])
