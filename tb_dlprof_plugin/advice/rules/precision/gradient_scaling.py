"""The calls of a GradScaler in a step: it unscales and checks the gradients, reads the result, and updates its
scale."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.op_patterns import calls_of, ops_named
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints

UNSCALE = "aten::_amp_foreach_non_finite_check_and_unscale_"
UPDATE = "aten::_amp_update_scale_"
_BEFORE = frozenset({"aten::to", "aten::reciprocal", "aten::full", "aten::zeros", "aten::fill_"})
"""Ops right before the first check: the inverse of the scale, and a place for the result."""
_READ = frozenset({"aten::item", "aten::_local_scalar_dense"})
_MOST_BEFORE = 8


def scaler_calls(context: RuleContext) -> Bools:
    """The outermost calls that a GradScaler makes in the selected iterations."""
    ops, view = context.profile.ops, context.view
    calls = context.profile.calls
    unscale = ops_named(context, lambda name: name == UNSCALE)
    result = calls_of(context, unscale | ops_named(context, lambda name: name == UPDATE))
    if not result.any():
        return result
    outer = np.flatnonzero((view.call_top == np.arange(len(calls))) & (ops.kind == CallKind.OP)[calls.op])
    before = ops_named(context, _BEFORE.__contains__)[calls.op[outer]]
    read = ops_named(context, _READ.__contains__)[calls.op[outer]]
    checks = calls_of(context, unscale)[outer]
    # The ops right before a check, without a gap, and the first one after it.
    for step in range(_MOST_BEFORE):
        later = np.append(checks[step + 1 :], np.zeros(step + 1, dtype=np.bool_))
        run = _all_between(before, step + 1)
        result[outer[later & run & _one_thread(calls.thread[outer], step + 1)]] = True
    after = np.concatenate((np.zeros(1, dtype=np.bool_), checks[:-1]))
    result[outer[after & read]] = True
    return result


def _all_between(flags: Bools, count: int) -> Bools:
    """Whether a row and the ``count - 1`` after it are all flagged."""
    every = flags.copy()
    for step in range(1, count):
        every &= np.append(flags[step:], np.zeros(step, dtype=np.bool_))
    return every


def _one_thread(thread: Ints, count: int) -> Bools:
    """Whether a row and the one ``count`` further are of one thread."""
    same: Bools = np.append(thread[count:], np.full(count, -1)) == thread
    return same
