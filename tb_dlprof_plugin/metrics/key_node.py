"""Cuts a profile into iterations between the instances of a key node.

A key node (DLProf User Guide 1.8, sections 7.1 and 12.3) is an op that runs once in each iteration, best at its start.
It is named as the Detail Report names it, by Op ID or Op Name. The name of an annotation (``record_function``,
"Optimizer.step#SGD.step") or the path of a module does, too.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from tb_dlprof_plugin.analysis.key_node import cut_at
from tb_dlprof_plugin.metrics.unattributed_ops import all_ops
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, Profile, Role
from tb_dlprof_plugin.model.run_choice import KeyNodeError
from tb_dlprof_plugin.profile_view import ProfileView, group_name

_CANDIDATES = 5


def with_key_node(profile: Profile, key_node: str) -> Profile:
    """The profile cut into iterations where the key node stops; N instances make N + 1 iterations, numbered from 0.

    With several GPUs that each have as many instances, the Nth of all GPUs are one: the last of them to stop counts
    (User Guide, chapter 9). Every measure works on the result as on any other profile.

    Args:
        profile: with any iterations; they are replaced.
        key_node: Op ID or Op Name of the Detail Report, the name of an annotation or the path of a module. Where a
            forward and a backward op share the name, it means the forward one.

    Raises:
        KeyNodeError: nothing of this name was recorded, or several ops were.
    """
    view = ProfileView(profile)
    rows = _instances(view, key_node)
    return cut_at(profile, _stops(view, rows), key_node)


def key_node_candidates(view: ProfileView) -> list[tuple[str, str, int]]:
    """Ops that could be the key node, as (id, name, calls), in order of their first call.

    They are called as often as there are steps, or nearly; without steps, as often as most ops are.
    """
    calls, ops = view.profile.calls, view.profile.ops
    counted = np.flatnonzero(ops.top[calls.op] & ~ops.continuation[calls.op])
    group = view.call_group[counted]
    number = np.bincount(group, minlength=len(view.groups))
    first = np.full(len(view.groups), np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(first, group, calls.start_ns[counted])
    iterations = view.profile.iterations
    wanted = len(iterations) if iterations.found_by != "none" else _usual(number)
    near = np.flatnonzero((number > 0) & (np.abs(number - wanted) <= 1))
    order = sorted(near.tolist(), key=lambda row: (abs(int(number[row]) - wanted), int(first[row])))
    return [(view.groups.ids[row], group_name(view, row), int(number[row])) for row in order]


def _usual(number: Ints) -> int:
    """How often most of the ops that were called several times were called."""
    common = Counter(n for n in number.tolist() if n > 1).most_common(1)
    return common[0][0] if common else 1


def _instances(view: ProfileView, key_node: str) -> Ints:
    """Rows of the calls that are an instance of the key node, by start."""
    groups, every = view.groups, all_ops(view)
    if key_node in groups.ids:
        return _of_group(view, groups.ids.index(key_node))
    named = [row for row in range(len(groups)) if group_name(view, row) == key_node]
    forward = [row for row in named if groups.role[row] == Role.FORWARD]
    if len(forward or named) == 1:
        return _of_group(view, (forward or named)[0])
    if named:
        ids = ", ".join(f"{groups.ids[row]} ({_role(view, row)})" for row in named)
        raise KeyNodeError(f"{len(named)} ops are named {key_node!r}; give the Op ID of one: {ids}")
    for row in range(every.groups, len(every)):
        if key_node in (every.id_of(row), every.name_of(row)):
            calls = _by_start(view, every.of_call == row)
            if len(calls):
                return calls
            raise KeyNodeError(f"{key_node!r} has no call on the CPU that could end an iteration; {_advice(view)}")
    ops, strings = view.profile.ops, view.profile.strings
    index = strings.index(key_node) if key_node and key_node in strings else -1
    chosen = (ops.kind == CallKind.ANNOTATION) & (ops.name == index)
    chosen |= (ops.kind == CallKind.MODULE) & (ops.module == index) & (ops.role != Role.BACKWARD)
    if not chosen.any():
        raise KeyNodeError(f"there is no op named {key_node!r}; {_advice(view)}")
    return _by_start(view, chosen[view.profile.calls.op])


def _of_group(view: ProfileView, group: int) -> Ints:
    top = view.profile.ops.top[view.profile.calls.op]
    return _by_start(view, top & (view.call_group == group))


def _by_start(view: ProfileView, chosen: Bools) -> Ints:
    rows = np.flatnonzero(chosen)
    return rows[np.argsort(view.profile.calls.start_ns[rows], kind="stable")]


def _stops(view: ProfileView, rows: Ints) -> Ints:
    """When each instance stops, in order of time (ns)."""
    profile = view.profile
    calls = profile.calls
    stop = calls.start_ns[rows] + calls.duration_ns[rows]
    # Later backward nodes of one forward op are not instances of their own: the instance stops with the last of them.
    head = ~profile.ops.continuation[calls.op[rows]]
    if head.any():
        heads = np.flatnonzero(head)
        owner = np.maximum(np.searchsorted(heads, np.arange(len(rows)), side="right") - 1, 0)
        last = np.zeros(len(heads), dtype=np.int64)
        np.maximum.at(last, owner, stop)
        rows, stop = rows[heads], last
    devices = _device_of(view, rows)
    number = Counter(devices.tolist())
    if len(number) > 1 and -1 not in number and len(set(number.values())) == 1:
        stop = np.stack([np.sort(stop[devices == device]) for device in sorted(number)]).max(axis=0)
    return np.sort(stop)


def _device_of(view: ProfileView, rows: Ints) -> Ints:
    """The GPU on which each instance launched its first work, -1 for none."""
    launches = view.profile.launches
    place = np.full(len(view.profile.calls) + 1, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    launched = np.flatnonzero(launches.call >= 0)[::-1]
    instance = place[view.call_top[launches.call[launched]]]
    result = np.full(len(rows), -1, dtype=np.int64)
    # The last write stays: backwards, that of the first launch.
    result[instance[instance >= 0]] = launches.device[launched][instance >= 0]
    return result


def _role(view: ProfileView, group: int) -> str:
    role = Role(int(view.groups.role[group]))
    return role.name.lower()


def _advice(view: ProfileView) -> str:
    """Candidates for an error message."""
    found = key_node_candidates(view)
    if not found:
        return "no op was recorded"
    listed = ", ".join(f"{name} ({id_}, {calls} calls)" for id_, name, calls in found[:_CANDIDATES])
    return f"called once a step are, first to last, {listed}; the Detail Report lists all ops"
