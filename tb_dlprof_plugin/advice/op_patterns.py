"""What rules look for in a step: calls by the name of their op, what they launched, ops that directly follow others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, Role
from tb_dlprof_plugin.model.tree import inherit

_ACCUMULATES = "AccumulateGrad"
_SUMS = ("aten::add", "aten::add_")


def ops_named(context: RuleContext, wanted: Callable[[str], bool]) -> Bools:
    """Which rows of `Profile.ops` are ops with a wanted name."""
    ops, strings = context.profile.ops, context.profile.strings
    names, inverse = np.unique(ops.name, return_inverse=True)
    chosen = np.array([wanted(strings[name]) for name in names.tolist()], dtype=np.bool_)
    named: Bools = (ops.kind == CallKind.OP) & chosen[inverse] if len(names) else np.zeros(0, dtype=np.bool_)
    return named


def calls_of(context: RuleContext, ops: Bools) -> Bools:
    """Calls of the ops in the selected iterations."""
    calls: Bools = ops[context.profile.calls.op] & context.view.selected_calls(context.selection)
    return calls


def launched_in(context: RuleContext, calls: Bools) -> Bools:
    """What was launched by these calls or by calls inside them."""
    call = context.profile.launches.call
    if not len(calls):
        return np.zeros(len(call), dtype=np.bool_)
    inside = inherit(calls, calls, context.view.call_parent)
    launched: Bools = (call >= 0) & inside[np.maximum(call, 0)]
    return launched


@dataclass(frozen=True)
class Pairs:
    """Forward ops of which the second gets what the first gives, and nothing else does; rows of `Profile.calls`.

    The backward pass shows it: the second's gradient goes to the first directly, and is added to no other.
    ``first_backward`` and ``second_backward`` are the calls of their autograd nodes.
    """

    first: Ints
    second: Ints
    first_backward: Bools
    second_backward: Bools


def pairs(context: RuleContext, first: Callable[[str], bool], second: Callable[[str], bool]) -> Pairs:
    """The pairs of the selected iterations whose ops have such names.

    Args:
        context: the run.
        first: of an op's name, such as "aten::conv2d".
        second: the same for the op behind it.
    """
    profile, view = context.profile, context.view
    ops, calls = profile.ops, profile.calls
    outermost = (view.call_top == np.arange(len(calls))) & view.selected_calls(context.selection)
    role = ops.role[calls.op]
    rows = np.flatnonzero(outermost & (role == Role.FORWARD) & ~_counting(context)[calls.op])
    before, after = _neighbours(context, rows)
    is_first, is_second = ops_named(context, first)[calls.op], ops_named(context, second)[calls.op]
    fitting = is_first[before] & is_second[after]
    before, after = before[fitting], after[fitting]

    place = view.call_group
    backward = np.flatnonzero(outermost & (role == Role.BACKWARD) & ~_accumulating(context)[calls.op])
    later, earlier = _neighbours(context, backward)
    direct = ~_has_sum(context)[later]
    by_place = _places(context)
    links: Counter[tuple[int, int]] = Counter()
    for a, b in zip(by_place[place[later[direct]]].tolist(), by_place[place[earlier[direct]]].tolist(), strict=True):
        links[b, a] += 1
    wanted: Counter[tuple[int, int]] = Counter(
        zip(by_place[place[before]].tolist(), by_place[place[after]].tolist(), strict=True)
    )
    # Functions that one module calls several times are all alike here: then every call must be such a pair.
    proven = {link for link, count in wanted.items() if links[link] >= count}
    kept = np.array(
        [
            link in proven
            for link in zip(by_place[place[before]].tolist(), by_place[place[after]].tolist(), strict=True)
        ],
        dtype=np.bool_,
    )
    nodes = outermost & (role == Role.BACKWARD)
    of_first, of_second = {link[0] for link in proven}, {link[1] for link in proven}
    call_place = np.where(place >= 0, by_place[np.maximum(place, 0)], -1) if len(by_place) else place
    return Pairs(
        before[kept],
        after[kept],
        nodes & np.isin(call_place, list(of_first)),
        nodes & np.isin(call_place, list(of_second)),
    )


def _neighbours(context: RuleContext, rows: Ints) -> tuple[Ints, Ints]:
    """Rows that follow each other on a thread within an iteration."""
    thread, iteration = context.profile.calls.thread, context.view.call_iteration
    before, after = rows[:-1], rows[1:]
    near = (thread[before] == thread[after]) & (iteration[before] == iteration[after])
    return before[near], after[near]


def _places(context: RuleContext) -> Ints:
    """Per op group one number for its module and type, whatever its role."""
    groups = context.view.groups
    if not len(groups):
        return np.zeros(0, dtype=np.int64)
    _, place = np.unique(np.stack((groups.module, groups.op_type)), axis=1, return_inverse=True)
    return place.reshape(-1).astype(np.int64)


def _accumulating(context: RuleContext) -> Bools:
    return ops_named(context, lambda name: _ACCUMULATES in name)


def _counting(context: RuleContext) -> Bools:
    """A batch norm counts its batches, in a number of its own, before it begins."""
    ops = context.profile.ops
    inputs = [context.profile.input_shapes[row] for row in ops.shapes.tolist()]
    counter = np.array([len(shapes) > 1 and shapes[0] == () for shapes in inputs], dtype=np.bool_)
    counts: Bools = counter & ops_named(context, lambda name: name == "aten::add_")
    return counts


def _has_sum(context: RuleContext) -> Bools:
    """Which calls add two tensors directly below them: autograd sums up the gradients of what is used twice."""
    parent = context.view.call_parent
    sums = ops_named(context, lambda name: name in _SUMS)[context.profile.calls.op]
    found = np.zeros(len(parent), dtype=np.bool_)
    found[parent[sums & (parent >= 0)]] = True
    return found
