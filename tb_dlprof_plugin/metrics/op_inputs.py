"""Finds the recorded inputs of an op: those of its own call, else of the first op inside that has any.

Backward nodes record no shapes themselves; the op that they run does.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.profile import CallKind, Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


def inputs_of_calls(view: ProfileView) -> Ints:
    """Per row of `Profile.calls` the row of `Profile.ops` with the inputs of the outermost op around it; -1: none."""
    return _inputs_of_calls(view, view.selection())


@per_selection
def _inputs_of_calls(view: ProfileView, everything: Selection) -> Ints:
    ops, calls = view.profile.ops, view.profile.calls
    has_shapes = np.array([bool(shapes) for shapes in view.profile.input_shapes], dtype=np.bool_)
    known = ((ops.kind == CallKind.OP) & has_shapes[ops.shapes])[calls.op] & (view.call_top >= 0)
    rows = np.flatnonzero(known)[::-1]
    of_top = np.full(len(calls) + 1, -1, dtype=np.int64)
    # The last write stays: backwards, that of the first call, which is the outermost one where it has shapes.
    of_top[view.call_top[rows]] = calls.op[rows]
    return np.where(view.call_top >= 0, of_top[view.call_top], -1)


@per_selection
def inputs_of_groups(view: ProfileView, selection: Selection) -> tuple[Ints, Ints]:
    """Per row of `ProfileView.groups` the row of `Profile.ops` with the inputs of most of its time (-1: none
    recorded), and the number of different input shapes of its calls."""
    profile = view.profile
    ops, calls = profile.ops, profile.calls
    rows = np.flatnonzero(ops.top[calls.op] & view.selected_calls(selection))
    inputs = inputs_of_calls(view)[rows]
    rows, inputs = rows[inputs >= 0], inputs[inputs >= 0]
    usual = np.full(len(view.groups), -1, dtype=np.int64)
    different = np.zeros(len(view.groups), dtype=np.int64)
    if not len(rows):
        return usual, different
    group = view.call_group[rows]
    pairs, pair = np.unique(np.stack((group, inputs)), axis=1, return_inverse=True)
    # One more than the duration, so that calls of 0 ns count.
    time = np.bincount(pair.reshape(-1), weights=calls.duration_ns[rows] + 1)
    order = np.argsort(time, kind="stable")
    usual[pairs[0][order]] = pairs[1][order]
    shapes = np.unique(np.stack((pairs[0], ops.shapes[pairs[1]])), axis=1)
    np.add.at(different, shapes[0], 1)
    return usual, different
