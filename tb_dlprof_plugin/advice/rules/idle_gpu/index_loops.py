"""Python loops that take a tensor apart row by row: the same few ops again and again, one of which takes a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.intervals import Intervals, union
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.call_names import calls_named

LOOP_REPEATS = 16
LOOP_LONGEST_PERIOD = 12
"""Turns of a loop of at most so many ops. torch.profiler's ForLoopIndexingPattern asks for more than 10 of the same op
with a ``select`` between them; models repeat a layer up to a dozen times without a loop over rows."""

_TAKES_A_ROW = ("aten::select", "aten::slice", "aten::narrow")
_BACKWARD = ("SelectBackward", "SliceBackward")


@dataclass(frozen=True, slots=True)
class IndexLoop:
    """One run of repeated ops, in time order of its outermost calls.

    ``calls`` are rows of `Profile.calls`, ``period`` how many of them make one turn of the loop, ``turns`` how many
    turns there are.
    """

    calls: Ints
    period: int
    turns: int


@dataclass(frozen=True, slots=True)
class IndexLoops:
    """The loops of the selected iterations, by time; ``windows`` are their times on the CPU (ns)."""

    loops: list[IndexLoop]
    windows: Intervals

    @property
    def turns(self) -> int:
        """Turns of all loops."""
        return sum(loop.turns for loop in self.loops)


@per_selection
def index_loops(view: ProfileView, selection: Selection) -> IndexLoops:
    """Loops of at least `LOOP_REPEATS` turns. A turn is identified by the ops' names, shapes and modules."""
    calls = view.profile.calls
    outermost = (view.call_top == np.arange(len(calls))) & view.selected_calls(selection)
    takes = calls_named(view, CallKind.OP, _takes_a_row)
    loops: list[IndexLoop] = []
    for thread in np.unique(calls.thread[outermost & takes]).tolist():
        rows = np.flatnonzero(outermost & (calls.thread == thread))
        loops += _in_thread(view, rows[np.argsort(calls.start_ns[rows], kind="stable")], takes)
    loops.sort(key=lambda loop: int(calls.start_ns[loop.calls[0]]))
    first = np.array([calls.start_ns[loop.calls[0]] for loop in loops], dtype=np.int64)
    last = np.array([(calls.start_ns + calls.duration_ns)[loop.calls].max() for loop in loops], dtype=np.int64)
    return IndexLoops(loops, union(first, last))


def _in_thread(view: ProfileView, rows: Ints, takes: Bools) -> list[IndexLoop]:
    op = view.profile.calls.op[rows]
    free = np.ones(len(rows), dtype=np.bool_)
    found = []
    for period in range(1, LOOP_LONGEST_PERIOD + 1):
        same = (
            np.concatenate([[False], op[period:] == op[:-period], [False]]) if len(op) > period else np.zeros(1, bool)
        )
        bounds = np.flatnonzero(np.diff(same.astype(np.int8)))
        for begin, end in zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True):
            turns = (end - begin) // period + 1
            members = slice(begin, begin + turns * period)
            if turns < LOOP_REPEATS or not takes[rows[begin : begin + period]].any() or not free[members].all():
                continue
            free[members] = False
            found.append(IndexLoop(rows[members], period, turns))
    return found


def _takes_a_row(name: str) -> bool:
    return name in _TAKES_A_ROW or any(mark in name for mark in _BACKWARD)
