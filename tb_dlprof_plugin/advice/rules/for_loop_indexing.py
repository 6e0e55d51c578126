"""A Python loop takes a tensor row by row and launches small kernels for each."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.evidence import call_rows, place_of
from tb_dlprof_plugin.advice.finding import EvidenceRow, Peer, Reading, Reference, Silent
from tb_dlprof_plugin.advice.index_loops import IndexLoop, IndexLoops, index_loops
from tb_dlprof_plugin.advice.optimizer_work import within
from tb_dlprof_plugin.advice.rule import Finding, Rule
from tb_dlprof_plugin.advice.savings import shorter_step
from tb_dlprof_plugin.measures.iterations import percent
from tb_dlprof_plugin.simulation.change import Change
from tb_dlprof_plugin.storage.model import Bools, Floats

RULE = Rule(
    id="for_loop_indexing",
    title="A Python loop goes through a tensor row by row",
    looks_for="The same few ops many times in a row, one of which takes a row or a slice of a tensor: a `for` loop "
    "over the rows of a batch, for example.",
    why="Each turn costs the CPU an indexing op and a launch per op, for kernels that take a few microseconds. One op "
    "over all rows costs one launch.",
    fix="Write the loop as ops over the whole tensor: broadcasting, `torch.where`, `torch.gather`, `index_select`, "
    "`torch.vmap`; for a recurrence over time `nn.LSTM` or `nn.GRU` instead of cells.",
    ignore_when="Each row depends on the result of the row before, and no ready-made op computes that.",
    thresholds=("LOOP_REPEATS", "LOOP_LONGEST_PERIOD", "LOOP_SAVING_PERCENT"),
    peers=(Peer("PyTorch", "ForLoopIndexingPattern"),),
    references=(
        Reference("PyTorch: broadcasting", "https://docs.pytorch.org/docs/stable/notes/broadcasting.html"),
        Reference("PyTorch: torch.vmap", "https://docs.pytorch.org/docs/stable/generated/torch.vmap.html"),
    ),
)

_CPU_LEFT = {"low": 0.5, "high": 0.0}
_SHORT_NS, _SHORT_LEFT = 5_000, 0.3
"""A kernel below this time, and what is left of it in one over all rows: the shortest take 1 to 2 us in any case."""


def check(case: Case) -> Finding | Silent:
    """Fires where such loops take time that one op would save."""
    if not case.profile.has_gpu:
        return Silent("The run used no GPU.", applicable=False)
    found = index_loops(case.frame, case.selection)
    count = case.selection.count
    if not found.loops:
        return Silent(
            f"No {thresholds.LOOP_REPEATS} turns of the same ops with an indexing op among them follow each other."
        )
    launches = within(case.frame, found.windows)
    spent = int((found.windows[1] - found.windows[0]).sum()) // count
    longest = max(found.loops, key=lambda loop: loop.turns)
    if not launches.any():
        return Silent(f"A loop of {longest.turns} turns takes rows of a tensor, but launches nothing.")
    estimate = shorter_step(
        case,
        Change(found.windows, _CPU_LEFT["low"]),
        Change(found.windows, 2 / longest.turns, _kernels_left(case, launches)),
        Change(found.windows, _CPU_LEFT["high"], np.where(launches, 0.0, 1.0)),
        f"The CPU is in these loops for {spent / 1e6:.2f} ms of a recorded step. Half to all of that goes; expected is "
        "that one turn over all rows takes the CPU as long as two over one row. Of kernels below "
        f"{_SHORT_NS / 1e3:.0f} us {100 * _SHORT_LEFT:.0f} % are left, at best nothing.",
    )
    if estimate.percent < thresholds.LOOP_SAVING_PERCENT:
        return Silent(
            f"Loops over rows take the CPU {spent / 1e6:.2f} ms of a step; without them it should get only "
            f"{estimate.percent:.1f} % shorter."
        )
    turn, place = _turn(case, longest), place_of(case, _members(case, found))
    where = f", in {place}" if place else ""
    kernels = int(launches.sum()) // count
    return RULE.finding(
        title=f"A Python loop of {longest.turns} turns over the rows of a tensor takes the CPU {spent / 1e6:.1f} ms of "
        "each step",
        seen=f"{found.turns / count:.0f} times a step the ops {turn} follow each other{where}. They launch {kernels} "
        f"kernels and copies, {case.per_step(launches) / max(kernels, 1) / 1e3:.1f} us each, and take the CPU "
        f"{spent / 1e6:.2f} of {case.recorded_ns / 1e6:.2f} ms.",
        readings=[
            Reading("Turns of the longest loop", longest.turns, "count", float(thresholds.LOOP_REPEATS)),
            Reading("Turns per step", found.turns / count, "count"),
            Reading("CPU time in the loops per step", spent, "ns"),
            Reading("Share of the step", percent(spent, case.recorded_ns), "percent"),
            Reading("Launches in them per step", kernels, "count"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.LOOP_SAVING_PERCENT),
        ],
        evidence=_rows(case, found),
        change=f"Replace the loop{where} by ops over the whole tensor, so that {turn} run once.",
        code="# Instead of: for i in range(len(x)): y[i] = x[i] * w[i]\ny = x * w[:, None]\n",
        saving=estimate,
        confirm="Record again: the indexing ops should be gone from the Ops page.",
    )


def _members(case: Case, found: IndexLoops) -> Bools:
    result = np.zeros(len(case.profile.calls), dtype=np.bool_)
    for loop in found.loops:
        result[loop.calls] = True
    return result


def _rows(case: Case, found: IndexLoops) -> list[EvidenceRow]:
    return call_rows(case, _members(case, found))


def _turn(case: Case, loop: IndexLoop) -> str:
    """The ops of one turn by name, each once."""
    ops, strings = case.profile.ops, case.profile.strings
    names = [strings[i] for i in ops.name[case.profile.calls.op[loop.calls[: loop.period]]].tolist()]
    plain = [name.removeprefix("autograd::engine::evaluate_function: ").removeprefix("aten::") for name in names]
    return ", ".join(dict.fromkeys(plain))


def _kernels_left(case: Case, launches: Bools) -> Floats:
    short = case.profile.launches.duration_ns < _SHORT_NS
    return np.where(launches & short, _SHORT_LEFT, 1.0)
