"""Returns the ops of a recording that could delimit iterations, as key nodes to choose from."""

from __future__ import annotations

from collections import Counter

import msgspec

from tb_dlprof_plugin.metrics.key_node import key_node_candidates
from tb_dlprof_plugin.model.direction import Direction, direction_of
from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.profile_view import ProfileView, group_name
from tb_dlprof_plugin.store.run_ref import RunRef


class KeyNodeCandidate(msgspec.Struct, frozen=True):
    """An op that is called once a step, or nearly; ``calls`` in the whole recording.

    ``key_node`` names it: its Op Name, or its Op ID if the name is ambiguous.
    """

    key_node: str
    id: str
    name: str
    direction: Direction
    calls: int


class KeyNodesPage(msgspec.Struct, frozen=True):
    """Candidates for the key node of a recording, the most likely first.

    ``found_by`` and ``iterations`` are those of the recording without one: ``found_by`` as in `SelectedRange`,
    ``iterations`` how many were found, 0 where none were.
    """

    ref: RunRef
    found_by: str
    iterations: int
    rows: list[KeyNodeCandidate]
    total_rows: int


def key_nodes_page(view: ProfileView, ref: RunRef) -> KeyNodesPage:
    """Candidates in the order of `key_node_candidates`: first those called once a step, each by its first call."""
    groups = view.groups
    names = [group_name(view, row) for row in range(len(groups))]
    every = Counter(names)
    forward = Counter(name for name, role in zip(names, groups.role.tolist(), strict=True) if role == Role.FORWARD)
    role_of = dict(zip(groups.ids, groups.role.tolist(), strict=True))
    rows = []
    for id_, name, calls in key_node_candidates(view):
        role = role_of[id_]
        # If a forward and a backward op share a name, it names the forward one.
        own = every[name] == 1 or (role == Role.FORWARD and forward[name] == 1)
        rows.append(KeyNodeCandidate(name if own else id_, id_, name, direction_of(role), calls))
    iterations = view.profile.iterations
    found = len(iterations) if iterations.found_by != "none" else 0
    return KeyNodesPage(ref, iterations.found_by, found, rows, len(rows))
