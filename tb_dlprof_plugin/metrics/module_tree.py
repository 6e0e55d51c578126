"""The modules of a recording as a tree, and which module each call is of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.grouping import distinct
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, Role
from tb_dlprof_plugin.model.tree import inherit, subtree_ends
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@dataclass(frozen=True, slots=True)
class ModuleTree:
    """Nodes in preorder, siblings in the order in which they were first called; node 0 is the whole model.

    Attributes:
        path: dotted path, "" for the whole model.
        parent: node above, -1 for node 0.
        depth: 0 for node 0.
        end: the nodes below node ``n`` are ``n + 1`` to ``end[n] - 1``.
        of_call: per row of `Profile.calls` its node, -1 outside every module.
    """

    path: list[str]
    parent: Ints
    depth: Ints
    end: Ints
    of_call: Ints

    def __len__(self) -> int:
        return len(self.path)

    def rolled_up(self, own: Ints) -> Ints:
        """Sums over each node and all below it; ``own`` has one row per node."""
        before = np.zeros((len(own) + 1, *own.shape[1:]), dtype=np.int64)
        np.cumsum(own, axis=0, out=before[1:])
        return before[self.end] - before[:-1]


def module_tree(view: ProfileView) -> ModuleTree | None:
    """The modules of the whole recording, whatever iterations are selected; None where none was recorded."""
    return _tree(view, view.selection())


@per_selection
def _tree(view: ProfileView, everything: Selection) -> ModuleTree | None:
    profile = view.profile
    ops, calls, strings = profile.ops, profile.calls, profile.strings
    recorded = distinct(ops.module[ops.module > 0]).tolist()
    if not recorded and not (ops.kind == CallKind.MODULE).any():
        return None
    order = _preorder([strings[i] for i in recorded], _first_calls(view, recorded))
    node = {path: index for index, path in enumerate(order)}
    parent = np.array([node[_above(path)] if path else -1 for path in order], dtype=np.int64)
    depth = np.array([path.count(".") + 1 if path else 0 for path in order], dtype=np.int64)
    of_string = np.full(len(strings), -1, dtype=np.int64)
    of_string[recorded] = [node[strings[i]] for i in recorded]
    of_call = of_string[ops.module][calls.op]
    of_call[_calls_of_the_whole_model(view)] = 0
    return ModuleTree(path=order, parent=parent, depth=depth, end=subtree_ends(parent), of_call=of_call)


def _above(path: str) -> str:
    return path.rpartition(".")[0]


def _first_calls(view: ProfileView, recorded: list[int]) -> list[int]:
    """When each module first ran (ns); where only its backward was recorded, after all others."""
    profile = view.profile
    ops, calls = profile.ops, profile.calls
    first = np.full(len(profile.strings), np.iinfo(np.int64).max, dtype=np.int64)
    forward = ops.role[calls.op] != Role.BACKWARD
    np.minimum.at(first, ops.module[calls.op[forward]], calls.start_ns[forward])
    return [int(first[i]) for i in recorded]


def _preorder(paths: list[str], first: list[int]) -> list[str]:
    """All paths and their prefixes, each right after the one above it or that one's other descendants."""
    when: dict[str, int] = {"": 0}
    for path, time_ns in zip(paths, first, strict=True):
        while path:
            when[path] = min(when.get(path, time_ns), time_ns)
            path = _above(path)
    below: dict[str, list[str]] = {}
    for path in sorted(when, key=lambda p: (when[p], p)):
        if path:
            below.setdefault(_above(path), []).append(path)
    order, waiting = [], [""]
    while waiting:
        path = waiting.pop()
        order.append(path)
        waiting.extend(reversed(below.get(path, ())))
    return order


def _calls_of_the_whole_model(view: ProfileView) -> Bools:
    """Which calls the model's own forward made, outside the modules in it, and the backward of those.

    Their module path is "", as is that of work outside the model. A forward call is the model's where it lies in a
    module's range. Of a backward op the recording keeps only the type of its forward op: it is the model's where
    forward ops of this type ran in the model and not outside.
    """
    profile = view.profile
    ops, calls = profile.ops, profile.calls
    unnamed: Bools = (ops.module == 0)[calls.op]
    is_range: Bools = (ops.kind == CallKind.MODULE)[calls.op]
    backward: Bools = (ops.role == Role.BACKWARD)[calls.op]
    own = inherit(is_range, is_range, view.call_parent) & unnamed & ~backward

    types_of = take_or(view.groups.op_type, view.call_group, 0)
    forward = unnamed & ~backward & (view.call_group >= 0)
    of_model = np.zeros(len(profile.strings), dtype=np.bool_)
    of_model[types_of[forward & own]] = True
    of_model[types_of[forward & ~own]] = False
    return own | (unnamed & backward & (view.call_group >= 0) & of_model[types_of])
