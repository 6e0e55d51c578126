"""The parts of a step as stretches: forward, backward, optimizer and data loading, on the CPU and on each GPU."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.profile import Ints, Role
from tb_dlprof_plugin.profile_view import ProfileView

Stretches = tuple[Ints, Ints, Ints]
"""Start and stop (ns) and `Role` of each stretch, in order of time. A stretch reaches from the first to the last of the
events of one part between which no event of another part begins."""


def cpu_stretches(view: ProfileView, rows: Ints) -> Stretches:
    """The parts on the CPU, from the outermost of the calls ``rows`` with a part."""
    calls, ops = view.profile.calls, view.profile.ops
    role = ops.role[calls.op]
    parent = view.call_parent[rows]
    inside = (parent >= 0) & (role[np.maximum(parent, 0)] != Role.OTHER)
    chosen = rows[(role[rows] != Role.OTHER) & ~inside]
    return _stretches(calls.start_ns[chosen], calls.duration_ns[chosen], role[chosen])


def gpu_stretches(view: ProfileView, rows: Ints) -> Stretches:
    """The parts on a GPU: the part that launched its work, if known."""
    profile = view.profile
    launches = profile.launches
    rows = rows[launches.call[rows] >= 0]
    role = profile.ops.role[profile.calls.op[launches.call[rows]]]
    known = role != Role.OTHER
    rows = rows[known]
    return _stretches(launches.start_ns[rows], launches.duration_ns[rows], role[known])


def _stretches(start_ns: Ints, duration_ns: Ints, role: Ints) -> Stretches:
    order = np.argsort(start_ns, kind="stable")
    start_ns, role = start_ns[order], role[order]
    stop_ns = start_ns + duration_ns[order]
    if not len(start_ns):
        return start_ns, stop_ns, role
    first = np.flatnonzero(np.append(True, role[1:] != role[:-1]))
    stop = np.maximum.reduceat(stop_ns, first)
    # A part ends where the next one begins.
    stop[:-1] = np.minimum(stop[:-1], start_ns[first[1:]])
    return start_ns[first], stop, role[first]
