"""A Python loop goes through a tensor row by row.

The same few ops many times in a row, one of which takes a row or a slice of a tensor: a `for` loop over the rows of a
batch, for example.

Why it matters: Each turn costs the CPU an indexing op and a launch per op, for kernels that take a few microseconds.
One op over all rows costs one launch.

What to change: Write the loop as ops over the whole tensor: broadcasting, `torch.where`, `torch.gather`,
`index_select`, `torch.vmap`; for a recurrence over time `nn.LSTM` or `nn.GRU` instead of cells.

When to leave it: Each row depends on the result of the row before, and no ready-made op computes that.

To confirm: Record again: the indexing ops should be gone from the Ops page.

In other tools:
- PyTorch: ForLoopIndexingPattern

Read on:
- [PyTorch: broadcasting](https://docs.pytorch.org/docs/stable/notes/broadcasting.html)
- [PyTorch: torch.vmap](https://docs.pytorch.org/docs/stable/generated/torch.vmap.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.evidence import call_rows, call_site_of, of_recorded_step
from tb_dlprof_plugin.advice.optimizer_work import within
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.idle_gpu.index_loops import LOOP_REPEATS, IndexLoop, IndexLoops, index_loops
from tb_dlprof_plugin.advice.savings import shorter_step
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.profile import Bools, Floats
from tb_dlprof_plugin.names.ops import AUTOGRAD_NODE
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("LOOP_REPEATS", "LOOP_LONGEST_PERIOD"),
)

LOOP_SAVING_PERCENT = 5.0
"""Of the step without the profiler: rewriting a loop is work that less does not repay."""

_CPU_LEFT = {"low": 0.5, "high": 0.0}
_SHORT_NS, _SHORT_LEFT = 5_000, 0.3
"""A kernel below this time, and what is left of it in one over all rows: the shortest take 1 to 2 us in any case."""


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
