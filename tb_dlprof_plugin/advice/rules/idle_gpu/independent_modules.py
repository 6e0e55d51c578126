"""Modules that do the same work one after another and do not depend on each other, as far as the trace can show it.

Which tensor an op reads is not recorded. But sibling modules, called one right after the other,
with the same ops on the same shapes, do not feed each other if what one returns has another shape, and another number
of values, than all that the next one begins with. Where that cannot be shown there is no answer.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, Role
from tb_dlprof_plugin.model.shapes import InputShapes, every_tensor, shape_at, tensors_of
from tb_dlprof_plugin.model.tree import any_in_subtree, nearest
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.call_names import launching_calls

_LINEAR = ("aten::linear",)
_PRODUCTS = ("aten::mm", "aten::bmm", "aten::matmul")
_SAME_SHAPE = frozenset(
    "aten::" + name
    for name in (
        *("relu", "relu_", "gelu", "silu", "silu_", "sigmoid", "tanh", "softmax", "log_softmax", "dropout"),
        *("layer_norm", "rms_norm", "batch_norm", "group_norm", "leaky_relu", "elu", "hardswish", "mish"),
    )
)

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Branches:
    """``paths`` of modules that do not depend on each other; ``of_launch`` tells the launches of any of them."""

    paths: tuple[str, ...]
    of_launch: Bools


@per_selection
def branches(view: ProfileView, selection: Selection) -> list[Branches]:
    """Groups of at least two modules, looked for in the first selected iteration."""
    calls, ops, strings = view.profile.calls, view.profile.ops, view.profile.strings
    here = view.call_iteration == selection.first
    modules = np.flatnonzero((ops.kind[calls.op] == CallKind.MODULE) & here)
    if not len(modules):
        return []
    tree = CallTree(view)
    children: dict[int, list[int]] = defaultdict(list)
    is_module = ops.kind[calls.op] == CallKind.MODULE
    around = nearest(is_module, view.call_parent)
    for row in modules[np.argsort(calls.start_ns[modules], kind="stable")].tolist():
        above = int(view.call_parent[row])
        children[int(around[above]) if above >= 0 else -1].append(row)
    found = []
    for parent, rows in children.items():
        for run in _runs(tree, rows) if parent >= 0 else ():
            paths = tuple(dict.fromkeys(strings[ops.module[calls.op[row]]] for row in run))
            if len(paths) == len(run):
                found.append(Branches(paths, _launched_by(view, paths)))
    return found


class CallTree:
    """The outermost ops of a recording in the order of their calls, and what the trace tells of them."""

    def __init__(self, view: ProfileView) -> None:
        self._view = view
        self._ends = view.call_end
        self._launches = any_in_subtree(launching_calls(view), view.call_end)
        self._outermost: Ints = np.flatnonzero(view.call_top == np.arange(len(view.call_top)))
        self._signature: dict[int, tuple[str, InputShapes, InputDtypes]] = {}

    def ops(self, row: int) -> list[int]:
        """Rows of the outermost ops inside a call, in order."""
        low, high = np.searchsorted(self._outermost, (row, self._ends[row])).tolist()
        return [int(at) for at in self._outermost[low:high]]

    def launching_between(self, first: int, second: int) -> bool:
        """Whether an outermost op between two calls of a thread launches something."""
        low, high = np.searchsorted(self._outermost, (self._ends[first], second)).tolist()
        return bool(self._launches[self._outermost[low:high]].any())

    def follows(self, first: int, second: int) -> bool:
        """Whether the second call of an op is on the first one's thread, and nothing is launched between them."""
        thread = self._view.profile.calls.thread
        return bool(thread[first] == thread[second]) and not self.launching_between(first, second)

    def before(self, row: int, skipped: Collection[str]) -> int | None:
        """Row of the outermost op before this one on its thread, but for ops of the names that are skipped."""
        thread = self._view.profile.calls.thread
        at = int(np.searchsorted(self._outermost, row)) - 1
        while at >= 0 and thread[self._outermost[at]] == thread[row]:
            found = int(self._outermost[at])
            if self.signature(found)[0] not in skipped:
                return found
            at -= 1
        return None

    def signature(self, row: int) -> tuple[str, InputShapes, InputDtypes]:
        """Name, shapes and data types of a call's op."""
        op = int(self._view.profile.calls.op[row])
        if op not in self._signature:
            profile = self._view.profile
            self._signature[op] = (profile.strings[profile.ops.name[op]], profile.shapes_of(op), profile.dtypes_of(op))
        return self._signature[op]


def _runs(tree: CallTree, rows: Sequence[int]) -> list[list[int]]:
    """Calls in a row of which none takes what the one before returned."""
    runs: list[list[int]] = [[]]
    for row in rows:
        if runs[-1] and not _independent(tree, runs[-1][-1], row):
            runs.append([])
        runs[-1].append(row)
    return [run for run in runs if len(run) > 1]


def _independent(tree: CallTree, first: int, second: int) -> bool:
    before, after = tree.ops(first), tree.ops(second)
    if not before or [tree.signature(op) for op in before] != [tree.signature(op) for op in after]:
        return False
    if tree.launching_between(first, second):
        return False
    returned = result_shape(*tree.signature(before[-1])[:2])
    taken = tree.signature(after[0])[1]
    if returned is None or returned in every_tensor(taken):
        return False
    # A view of what is returned has another shape and as many values.
    return math.prod(returned) not in map(math.prod, tensors_of(taken))


def result_shape(name: str, shapes: InputShapes) -> Shape | None:
    """The shape of what an op returns; None where its inputs do not tell."""
    first, second = shape_at(shapes, 0), shape_at(shapes, 1)
    if first is None:
        return None
    if name in _SAME_SHAPE:
        return first
    if name in _LINEAR and second is not None and len(second) == 2:
        return (*first[:-1], second[0])
    if name in _PRODUCTS and second is not None and len(first) >= 2 and len(second) >= 2:
        return (*first[:-1], second[-1])
    return None


def _launched_by(view: ProfileView, paths: Sequence[str]) -> Bools:
    """Launches of the modules and of those in them, forward and backward."""
    groups, strings = view.groups, view.profile.strings
    inside = np.array(
        [
            any(strings[module] == path or strings[module].startswith(path + ".") for path in paths)
            and role in (Role.FORWARD, Role.BACKWARD)
            for module, role in zip(groups.module.tolist(), groups.role.tolist(), strict=True)
        ],
        dtype=np.bool_,
    )
    group = view.launch_group
    result: Bools = take_or(inside, group, False)
    return result
