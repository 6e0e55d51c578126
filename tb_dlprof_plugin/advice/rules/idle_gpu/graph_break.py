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

from tb_dlprof_plugin.advice.compile_saving import compile_saving
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.idle_gpu.compiled_regions import CompiledRegions, compiled_regions
from tb_dlprof_plugin.advice.rules.idle_gpu.host_phases import intersection, launching, without
from tb_dlprof_plugin.advice.savings import Saving, shorter_step, with_doubt_of_step
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.metrics.amp_calls import compiled_calls
from tb_dlprof_plugin.model.intervals import covered, merge, union_of
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(__name__, __doc__, needs=(Need.COMPILATIONS,), confidence="high", severity="medium")

OVERHEAD_LEFT = SpeedupRange(0.0, 0.05, 0.6)
"""Share of the CPU's time around the graphs of regions that is left where one stands in their place: it handles
the arguments of all of them. Ours."""
INSIDE_LEFT = SpeedupRange(0.8, 0.9, 1.0)
"""Of the CPU's time inside calls of graphs, and of the GPU time of their kernels: some are fused across the lines, and
buffers are used again. The expected one by two GPTs with breaks and without, in turns on an H100
(`lab/compiled/pairs.py prices`)."""
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
    if not regions.count:
        # After a break that it cannot resume from, Dynamo runs the whole function eagerly.
        return compile_saving(context, graphs=False)
    around = merge(regions.around, regions.around_backward)
    if not len(around[0]):
        return "No graph that one of these lines cuts runs in the recorded steps, as far as they say."
    calls, launches = context.profile.calls, context.profile.launches
    busy = launching(context.view, context.selection).launching
    working, inside = intersection(around, busy), intersection(union_of(calls, regions.launched), busy)
    inner = without(inside, working)
    outside_ns, inside_ns = (float((one[1] - one[0]).sum()) for one in (working, inner))
    compiled = (launches.call >= 0) & take_or(compiled_calls(context.view), launches.call, False)
    waits = covered(around, calls.start_ns, calls.start_ns + 1) > 0
    # One region of each chain stays.
    one = regions.chains / regions.count

    def left(end: str) -> float:
        return one + (1 - one) * getattr(OVERHEAD_LEFT, end)

    def change(end: str) -> Change:
        kernels = getattr(INSIDE_LEFT, end)
        return Change(
            cpu=merge(working, inner),
            keep_cpu=(outside_ns * left(end) + inside_ns * kernels) / (outside_ns + inside_ns),
            gpu=np.where(compiled, kernels, 1.0),
            removed_waits=waits if end == "low" else None,
        )

    found = shorter_step(
        context,
        change("high"),
        change("expected"),
        change("low"),
        f"Around the graphs of {regions.count / regions.chains:.3g} regions in place of one the CPU spends "
        f"{ms(round(outside_ns) // context.selection.count)} a recorded step. Of it {100 * (1 - left('high')):.0f} to "
        f"{100 * (1 - left('low')):.0f} % would go. What one graph would fuse is not known: at best "
        f"{100 * (1 - INSIDE_LEFT.low):.0f} % of the compiled kernels, and no wait between the regions.",
    )
    return with_doubt_of_step(context, found)
