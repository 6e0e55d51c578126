"""A Python loop goes through a tensor row by row.

The same few ops many times in a row. One of them takes a row or a slice of a tensor: a `for` loop over the rows of a
batch, for example.

Why it matters: Each turn costs the CPU an indexing op and a launch per op, for kernels that take a few microseconds.
One op over all rows costs one launch.

What to change: Write the loop as ops over the whole tensor: broadcasting, `torch.where`, `torch.gather`,
`index_select`, `torch.vmap`; for a loop over time `nn.LSTM` or `nn.GRU` instead of cells.

When to leave it: Each row depends on the result of the row before, and no ready-made op computes that.

To confirm: Record again: the indexing ops should be gone from the Ops page.

In other tools:
- PyTorch: ForLoopIndexingPattern

Read on:
- [PyTorch: broadcasting](https://docs.pytorch.org/docs/stable/notes/broadcasting.html)
- [PyTorch: torch.vmap](https://docs.pytorch.org/docs/stable/generated/torch.vmap.html)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.evidence import call_rows, call_site_of, of_recorded_step
from tb_dlprof_plugin.advice.optimizer_work import within
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import shorter_step
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.intervals import Intervals, union
from tb_dlprof_plugin.model.lookup import rows_of_each
from tb_dlprof_plugin.model.profile import Bools, CallKind, Floats, Ints
from tb_dlprof_plugin.names.ops import AUTOGRAD_NODE
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.call_names import calls_named
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
)

LOOP_REPEATS = 16
LOOP_LONGEST_PERIOD = 12
"""Turns of a loop of at most so many ops. torch.profiler's ForLoopIndexingPattern asks for more than 10 of the same op
with a ``select`` between them; models repeat a layer up to a dozen times without a loop over rows."""

LOOP_SAVING_PERCENT = 5.0
"""Of the step without the profiler: rewriting a loop is work that less does not repay."""

_CPU_LEFT = {"low": 0.5, "high": 0.0}
_SHORT_NS, _SHORT_LEFT = 5_000, 0.3
"""A kernel below this time, and what is left of it in one over all rows: the shortest take 1 to 2 us in any case."""
_TAKES_A_ROW = ("aten::select", "aten::slice", "aten::narrow")
_BACKWARD = ("SelectBackward", "SliceBackward")


def check(context: RuleContext) -> Finding | Silent:
    """Fires where such loops take time that one op would save."""
    found = index_loops(context.view, context.selection)
    count = context.selection.count
    if not found.loops:
        return Silent(f"No {LOOP_REPEATS} turns of the same ops with an indexing op among them follow each other.")
    launches = within(context.view, found.windows)
    spent = int((found.windows[1] - found.windows[0]).sum()) // count
    longest = max(found.loops, key=lambda loop: loop.turns)
    if not launches.any():
        return Silent(f"A loop of {longest.turns} turns takes rows of a tensor, but launches nothing.")
    estimate = shorter_step(
        context,
        Change(found.windows, _CPU_LEFT["low"]),
        Change(found.windows, 2 / longest.turns, _kernels_left(context, launches)),
        Change(found.windows, _CPU_LEFT["high"], np.where(launches, 0.0, 1.0)),
        f"The CPU is in these loops for {ms(spent)} of a recorded step. Half to all of that goes; expected is "
        "that one turn over all rows takes the CPU as long as two over one row. Of kernels below "
        f"{_SHORT_NS / 1e3:.0f} us {100 * _SHORT_LEFT:.0f} % are left, at best nothing.",
    )
    if estimate.percent < LOOP_SAVING_PERCENT:
        return Silent(
            f"Loops over rows take the CPU {ms(spent)} of a step; without them it should get only "
            f"{estimate.percent:.1f} % shorter."
        )
    turn, call_site = _turn(context, longest), call_site_of(context, _members(context, found))
    where = f", in {call_site}" if call_site else ""
    kernels = int(launches.sum()) // count
    return RULE.finding(
        title=f"A Python loop of {longest.turns} turns over the rows of a tensor takes the CPU {ms(spent, 1)} of "
        "each step",
        seen=f"{found.turns / count:.0f} times a step the ops {turn} follow each other{where}. They launch {kernels} "
        f"kernels and copies, {context.per_step(launches) / max(kernels, 1) / 1e3:.1f} us each, and take the CPU "
        f"{of_recorded_step(context, spent)}.",
        readings=[
            Reading("Turns of the longest loop", longest.turns, "count", float(LOOP_REPEATS)),
            Reading("Turns per step", found.turns / count, "count"),
            Reading("CPU time in the loops per step", spent, "ns"),
            Reading("Share of the recorded step", percent(spent, context.recorded_step_ns), "percent"),
            Reading("Launches in them per step", kernels, "count"),
            Reading("Expected saving", estimate.percent, "percent", LOOP_SAVING_PERCENT),
        ],
        evidence=_rows(context, found),
        change=f"Replace the loop{where} by ops over the whole tensor, so that {turn} run once.",
        code="# Instead of: for i in range(len(x)): y[i] = x[i] * w[i]\ny = x * w[:, None]\n",
        saving=estimate,
    )


def _members(context: RuleContext, found: IndexLoops) -> Bools:
    result = np.zeros(len(context.profile.calls), dtype=np.bool_)
    for loop in found.loops:
        result[loop.calls] = True
    return result


def _rows(context: RuleContext, found: IndexLoops) -> list[EvidenceRow]:
    return call_rows(context, _members(context, found))


def _turn(context: RuleContext, loop: IndexLoop) -> str:
    """The ops of one turn by name, each once."""
    ops, strings = context.profile.ops, context.profile.strings
    names = [strings[i] for i in ops.name[context.profile.calls.op[loop.calls[: loop.period]]].tolist()]
    plain = [name.removeprefix(AUTOGRAD_NODE).removeprefix("aten::") for name in names]
    return ", ".join(dict.fromkeys(plain))


def _kernels_left(context: RuleContext, launches: Bools) -> Floats:
    short = context.profile.launches.duration_ns < _SHORT_NS
    return np.where(launches & short, _SHORT_LEFT, 1.0)


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
    chosen = np.flatnonzero(outermost)
    for _, rows in rows_of_each(calls.thread[chosen]):
        rows = chosen[rows]
        if not takes[rows].any():
            continue
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
