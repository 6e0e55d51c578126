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
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.amp_calls import compiled_calls
from tb_dlprof_plugin.model.tree import outermost
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(__name__, __doc__, needs=(Need.COMPILATIONS,), confidence="high", severity="medium")

_SHOWN = 10


def check(context: RuleContext) -> Finding | Silent:
    """Fires on each line at which a graph broke."""
    breaks = context.facts.graph_breaks
    if not breaks:
        return Silent("torch.compile broke no graph.")
    regions, between_ns = _regions(context)
    lines = f"{len(breaks)} lines" if len(breaks) > 1 else f"the line {breaks[0].place}"
    first = breaks[0]
    return RULE.finding(
        title=f"torch.compile breaks its graph at {lines}",
        seen=f"{first.place}: {first.reason.rstrip('.')}. A step has {regions:.3g} compiled regions; between one and "
        f"the next pass {ms(between_ns)} on the CPU.",
        readings=[
            Reading("Lines that break a graph", len(breaks), "count", 0),
            Reading("Compiled regions per step", regions, "count"),
            Reading("CPU time between them per step", between_ns, "ns"),
        ],
        evidence=[EvidenceRow(f"{one.place}: {one.reason}", None, None, "compiled", "") for one in breaks[:_SHOWN]],
        change=f"Move {first.place} out of the compiled function, or write it so that Dynamo can trace it.",
        code="model = torch.compile(model, fullgraph=True)  # raises an error at each line that breaks the graph\n",
        saving="What one graph would fuse across these lines was not measured.",
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Fewer lines that break a graph."""
    before, after = base.profile.facts, candidate.profile.facts
    if after.compilations and len(after.graph_breaks) < len(before.graph_breaks):
        return "fewer graph breaks"
    return ""


def _regions(context: RuleContext) -> tuple[float, int]:
    """Compiled regions a step, and the time (ns) a step between one and the next of the same thread and iteration."""
    view, calls = context.view, context.profile.calls
    compiled = compiled_calls(view)
    first = compiled & (outermost(compiled, view.call_parent) == np.arange(len(calls)))
    rows = np.flatnonzero(first & view.selected_calls(context.selection))
    iteration, thread, start = view.call_iteration[rows], calls.thread[rows], calls.start_ns[rows]
    stop = start + calls.duration_ns[rows]
    order = np.lexsort((start, thread, iteration))
    follows = (np.diff(iteration[order]) == 0) & (np.diff(thread[order]) == 0)
    gaps = np.maximum(start[order][1:] - stop[order][:-1], 0)[follows]
    return len(rows) / context.selection.count, int(gaps.sum()) // context.selection.count
