"""Calls of one op, one after another, that do not depend on each other, as far as the trace can show it.

Which tensor an op reads is not recorded: layers of a chain look like samples that are processed one by one. Calls with
the same shapes, with no other kernel between them and one tensor besides the parameters, do not depend on each other
where

- the op before the first of them takes a tensor apart (``aten::unbind``, ``split``, ``chunk``) into as many parts; or
- before each of them a part is picked (``aten::select``, ``slice``) from a larger tensor than the calls return; or
- what they return has another number of values than what they take, so that none can take it from the one before.

Where none of these holds there is no answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.advice.rules.idle_gpu.independent_modules import CallTree, result_shape
from tb_dlprof_plugin.model.profile import Ints, Role
from tb_dlprof_plugin.model.shapes import InputShapes, TensorList, tensors_of
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

_TAKES_APART = frozenset(
    "aten::" + name for name in ("unbind", "split", "split_with_sizes", "chunk", "tensor_split", "unsafe_split")
)
_PICKS = frozenset("aten::" + name for name in ("select", "slice", "narrow"))
_VIEWS = frozenset(
    "aten::" + name
    for name in ("view", "reshape", "unsqueeze", "squeeze", "transpose", "permute", "t", "flatten", "detach")
)
_WITH_PARAMETERS = frozenset(
    "aten::" + name
    for name in (
        *("linear", "conv1d", "conv2d", "conv3d", "embedding"),
        *("layer_norm", "rms_norm", "batch_norm", "group_norm", "instance_norm"),
    )
)
"""Ops that take one tensor of the data first; their others are parameters and running statistics."""


@per_selection
def independent_calls(view: ProfileView, selection: Selection) -> Ints:
    """Per row of `Profile.ops` how many calls of an outermost op in a step depend on none of each other, else 1.

    Looked for in the first selected iteration. A backward op has the number of its forward op, if all forward ops of
    its place in the model have one.
    """
    calls, ops = view.profile.calls, view.profile.ops
    tree = CallTree(view)
    result = np.ones(len(ops), dtype=np.int64)
    first = view.call_iteration == selection.first
    outermost = np.flatnonzero((view.call_top == np.arange(len(calls))) & first)
    of_op = calls.op[outermost]
    forward = ops.role[of_op] != Role.BACKWARD
    for op in np.unique(of_op[forward]).tolist():
        rows = outermost[of_op == op].tolist()
        result[op] = _longest_run(tree, rows) if len(rows) > 1 else 1
    _to_backward(view, result, np.unique(of_op))
    return result


def _longest_run(tree: CallTree, rows: Sequence[int]) -> int:
    name, shapes, _ = tree.signature(rows[0])
    taken = _data(name, shapes)
    if taken is None:
        return 1
    best, begin = 1, 0
    for at in range(1, len(rows) + 1):
        if at < len(rows) and tree.follows(rows[at - 1], rows[at]):
            continue
        run = rows[begin:at]
        if len(run) > best and _independent(tree, run, name, shapes, taken):
            best = len(run)
        begin = at
    return best


def _independent(tree: CallTree, run: Sequence[int], name: str, shapes: InputShapes, taken: int) -> bool:
    returned = result_shape(name, shapes)
    if returned is not None and math.prod(returned) != taken:
        return True
    source = tree.before(run[0], _VIEWS)
    if source is not None and tree.signature(source)[0] in _TAKES_APART:
        return _largest(tree.signature(source)[1]) >= len(run) * taken
    if returned is None:
        return False
    sources = [tree.before(row, _VIEWS) for row in run]
    return all(
        source is not None
        and tree.signature(source)[0] in _PICKS
        and _largest(tree.signature(source)[1]) > math.prod(returned)
        for source in sources
    )


def _data(name: str, shapes: InputShapes) -> int | None:
    """Number of values of the only tensor that an op takes besides parameters; None where there are several."""
    tensors = tensors_of(shapes)
    if not tensors or any(isinstance(one, TensorList) for one in shapes):
        return None
    if len(tensors) > 1 and name not in _WITH_PARAMETERS:
        return None
    return math.prod(tensors[0])


def _largest(shapes: InputShapes) -> int:
    return max(map(math.prod, tensors_of(shapes)), default=0)


def _to_backward(view: ProfileView, result: Ints, called: Ints) -> None:
    ops = view.profile.ops
    forward: dict[tuple[int, int], list[int]] = {}
    for op in called.tolist():
        if ops.role[op] != Role.BACKWARD:
            forward.setdefault((int(ops.module[op]), int(ops.op_type[op])), []).append(int(result[op]))
    for op in called.tolist():
        if ops.role[op] == Role.BACKWARD:
            result[op] = min(forward.get((int(ops.module[op]), int(ops.op_type[op])), [1]))
