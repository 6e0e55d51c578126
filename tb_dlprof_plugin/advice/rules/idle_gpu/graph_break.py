"""torch.compile breaks graphs.

Lines at which `torch.compile` had to end a graph, by what Dynamo logged in the process.

Why it matters: Nothing is fused across a break, and the CPU runs Python between the parts: guards, the code of the
line, the start of the next graph. In a loop, or where a break cannot be resumed, the whole function runs without
compilation. Only what it calls is compiled.

What to change: Move the line out of the compiled function, or write it so that Dynamo can trace it: no `print` or
logging, no `.item()` and no branch on the values of a tensor (`torch.where`, `torch.cond`).

When to leave it: The line runs in a part that takes little of the step, or must run in Python.

To confirm: Record again: the line is gone from the list, and `torch.compile(model, fullgraph=True)` raises no error.

Read on:
- [PyTorch: graph breaks](https://docs.pytorch.org/docs/stable/compile/programming_model.graph_breaks_index.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.idle_gpu.compiled_regions import CompiledRegions, compiled_regions
from tb_dlprof_plugin.advice.rules.idle_gpu.host_phases import intersection, launching, without
from tb_dlprof_plugin.advice.savings import Saving, shorter_step, with_doubt_of_step
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.metrics.amp_calls import compiled_calls
from tb_dlprof_plugin.model.intervals import covered, merge, union_of
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import CallKind
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(__name__, __doc__, needs=(Need.COMPILATIONS,), confidence="high", severity="medium")

OVERHEAD_LEFT = SpeedupRange(0.0, 0.35, 0.8)
"""Share of the CPU's time between and around regions that one region in their place has: it handles the arguments of
all of them. Ours."""
FUSED_LEFT = 0.9
"""Of the GPU time of compiled kernels, at best: kernels at the edge of two regions become one. Ours."""
_SHOWN = 10


def check(context: RuleContext) -> Finding | Silent:
    """Fires on each line at which a graph broke."""
    breaks = context.facts.graph_breaks
    if not breaks:
        return Silent("torch.compile broke no graph.")
    regions = compiled_regions(context.view, context.selection)
    count = context.selection.count
    around_ns = int((regions.around[1] - regions.around[0]).sum()) // count
    lines = f"{len(breaks)} lines" if len(breaks) > 1 else f"the line {breaks[0].place}"
    first = breaks[0]
    return RULE.finding(
        title=f"torch.compile breaks its graph at {lines}",
        seen=f"{first.place}: {first.reason.rstrip('.')}. A step has {regions.count / count:.3g} compiled regions; "
        f"around their graphs pass {ms(around_ns)} on the CPU.",
        readings=[
            Reading("Lines that break a graph", len(breaks), "count", 0),
            Reading("Compiled regions per step", regions.count / count, "count"),
            Reading("CPU time around their graphs per step", around_ns, "ns"),
        ],
        evidence=[EvidenceRow(f"{one.place}: {one.reason}", None, None, "compiled", "") for one in breaks[:_SHOWN]],
        change=f"Move {first.place} out of the compiled function, or write it so that Dynamo can trace it.",
        code="model = torch.compile(model, fullgraph=True)  # raises an error at each line that breaks the graph\n",
        saving=_saving(context, regions),
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Fewer lines that break a graph."""
    before, after = base.profile.facts, candidate.profile.facts
    if after.compilations and len(after.graph_breaks) < len(before.graph_breaks):
        return "fewer graph breaks"
    return ""


def _saving(context: RuleContext, regions: CompiledRegions) -> Saving | str:
    if not context.profile.has_gpu:
        return "The run used no GPU."
    around = merge(regions.around, regions.around_backward)
    if not len(around[0]):
        return "No graph that one of these lines cuts runs in the recorded steps, as far as they say."
    calls, launches = context.profile.calls, context.profile.launches
    working = intersection(around, launching(context.view, context.selection).launching)
    inside = covered(around, calls.start_ns, calls.start_ns + 1) > 0
    ops = union_of(calls, inside & (context.profile.ops.kind[calls.op] == CallKind.OP) & ~compiled_calls(context.view))
    stays = np.ones(len(launches))
    stays[(launches.call >= 0) & take_or(compiled_calls(context.view), launches.call, False)] = FUSED_LEFT
    # One region of each chain stays.
    one = regions.chains / regions.count

    def left(share: float) -> float:
        return one + (1 - one) * share

    spent = int((working[1] - working[0]).sum()) // context.selection.count
    found = shorter_step(
        context,
        Change(cpu=without(working, ops), keep_cpu=left(OVERHEAD_LEFT.high)),
        Change(cpu=without(working, ops), keep_cpu=left(OVERHEAD_LEFT.expected)),
        Change(cpu=working, keep_cpu=left(OVERHEAD_LEFT.low), gpu=stays, removed_waits=inside, keep_gaps=0.5),
        f"Around the graphs of {regions.count / regions.chains:.3g} regions in place of one the CPU spends {ms(spent)} "
        f"a recorded step, of which {100 * (1 - left(OVERHEAD_LEFT.high)):.0f} to "
        f"{100 * (1 - left(OVERHEAD_LEFT.low)):.0f} % would go. What one graph would fuse is not known: at best "
        f"{100 * (1 - FUSED_LEFT):.0f} % of the compiled kernels' time, and no wait between the regions.",
    )
    return with_doubt_of_step(context, found)
