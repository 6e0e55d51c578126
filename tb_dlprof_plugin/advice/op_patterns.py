"""Finds calls by the name of their op, their launches, and ops that directly follow others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.model.grouping import numbered
from tb_dlprof_plugin.model.lookup import take_or
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
    """Launches of these calls and of the calls inside them."""
    call = context.profile.launches.call
    if not len(calls):
        return np.zeros(len(call), dtype=np.bool_)
    inside = inherit(calls, calls, context.view.call_parent)
    launched: Bools = take_or(inside, call, False)
    return launched


@dataclass(frozen=True)
class AdjacentOps:
    """Pairs of forward ops (rows of `Profile.calls`) in which only the second uses the result of the first. The
    backward pass shows it: the second's gradient goes to the first directly, without a sum. ``first_backward`` and
    ``second_backward`` are the calls of their autograd nodes.
    """

    first: Ints
    second: Ints
    first_backward: Bools
    second_backward: Bools


def adjacent_ops(context: RuleContext, first: Callable[[str], bool], second: Callable[[str], bool]) -> AdjacentOps:
    """The adjacent pairs of the selected iterations whose ops have matching names.

    Args:
        context: the run.
        first: of an op's name, such as "aten::conv2d".
        second: the same for the op after it.
    """
    profile, view = context.profile, context.view
    ops, calls = profile.ops, profile.calls
    outermost = (view.call_top == np.arange(len(calls))) & view.selected_calls(context.selection)
    role = ops.role[calls.op]
    rows = np.flatnonzero(outermost & (role == Role.FORWARD) & ~_batch_counters(context)[calls.op])
    before, after = _consecutive(context, rows)
    is_first, is_second = ops_named(context, first)[calls.op], ops_named(context, second)[calls.op]
    fitting = is_first[before] & is_second[after]
    before, after = before[fitting], after[fitting]

    group = view.call_group
    backward = np.flatnonzero(outermost & (role == Role.BACKWARD) & ~_accumulate_nodes(context)[calls.op])
    later, earlier = _consecutive(context, backward)
    direct = ~_has_sum(context)[later]
    layer_of_group = _layer_numbers(context)
    links: Counter[tuple[int, int]] = Counter()
    for a, b in zip(
        layer_of_group[group[later[direct]]].tolist(), layer_of_group[group[earlier[direct]]].tolist(), strict=True
    ):
        links[b, a] += 1
    wanted: Counter[tuple[int, int]] = Counter(
        zip(layer_of_group[group[before]].tolist(), layer_of_group[group[after]].tolist(), strict=True)
    )
    # Several calls of one op in one module are indistinguishable here: then every call must be such a pair.
    proven = {link for link, count in wanted.items() if links[link] >= count}
    kept = np.array(
        [
            link in proven
            for link in zip(layer_of_group[group[before]].tolist(), layer_of_group[group[after]].tolist(), strict=True)
        ],
        dtype=np.bool_,
    )
    nodes = outermost & (role == Role.BACKWARD)
    of_first, of_second = {link[0] for link in proven}, {link[1] for link in proven}
    call_layer = take_or(layer_of_group, group, -1)
    return AdjacentOps(
        before[kept],
        after[kept],
        nodes & np.isin(call_layer, list(of_first)),
        nodes & np.isin(call_layer, list(of_second)),
    )


def _consecutive(context: RuleContext, rows: Ints) -> tuple[Ints, Ints]:
    """Pairs of consecutive rows on a thread within an iteration."""
    thread, iteration = context.profile.calls.thread, context.view.call_iteration
    before, after = rows[:-1], rows[1:]
    near = (thread[before] == thread[after]) & (iteration[before] == iteration[after])
    return before[near], after[near]


def _layer_numbers(context: RuleContext) -> Ints:
    """Number of the layer (module and op type) of each op group, whatever its role."""
    groups = context.view.groups
    if not len(groups):
        return np.zeros(0, dtype=np.int64)
    return numbered(groups.module, groups.op_type)


def _accumulate_nodes(context: RuleContext) -> Bools:
    return ops_named(context, lambda name: _ACCUMULATES in name)


def _batch_counters(context: RuleContext) -> Bools:
    """Ops with which a batch norm counts its batches, before it begins."""
    ops = context.profile.ops
    inputs = [context.profile.input_shapes[row] for row in ops.shapes.tolist()]
    counter = np.array([len(shapes) > 1 and shapes[0] == () for shapes in inputs], dtype=np.bool_)
    counts: Bools = counter & ops_named(context, lambda name: name == "aten::add_")
    return counts


def _has_sum(context: RuleContext) -> Bools:
    """Calls with a sum of two tensors as a direct child: autograd adds the gradients of a tensor that is used twice."""
    parent = context.view.call_parent
    sums = ops_named(context, lambda name: name in _SUMS)[context.profile.calls.op]
    found = np.zeros(len(parent), dtype=np.bool_)
    found[parent[sums & (parent >= 0)]] = True
    return found
