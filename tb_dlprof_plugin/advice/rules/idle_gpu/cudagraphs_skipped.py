"""torch.compile skips CUDA graphs.

Graphs that `torch.compile` was asked to replay as CUDA graphs and launches kernel by kernel, by what Inductor logged.

Why it matters: A replay is one launch in place of one per kernel. A skip leaves no error, only a warning, and the step
is as slow as without the mode.

What to change: Remove what the reason names. Move tensors that live on the CPU to the GPU. Do not write into the
model's inputs. Keep input sizes the same.

When to leave it: The GPU is busy all the time, so that the launches hide behind it.

To confirm: Record again: the reason is gone, and the region has a call of `cudaGraphLaunch`.

Read on:
- [PyTorch: CUDA graph trees](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_cudagraph_trees.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.idle_gpu.compiled_regions import compiled_regions
from tb_dlprof_plugin.advice.rules.idle_gpu.host_phases import intersection, launching
from tb_dlprof_plugin.advice.savings import Saving, shorter_step, with_doubt_of_step
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.model.intervals import union_of
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(__name__, __doc__, needs=(Need.COMPILATIONS,), confidence="medium", group="launching")

REPLAY_NS = SpeedupRange(100_000.0, 500_000.0, 1_200_000.0)
"""CPU time of a replayed graph's call while recorded: the launch, and copies of inputs. Of a GPT's two graphs with 100
and 192 launches on an H100 it was 0.5 and 1.1 ms, in place of 7.6 and 9.6 ms."""
_SHOWN = 10


def check(context: RuleContext) -> Finding | Silent:
    """Fires on each reason for which a graph got no CUDA graph."""
    skips = context.facts.cudagraph_skips
    if not skips:
        return Silent("torch.compile skipped no CUDA graph.")
    graphs = sum(one.count for one in skips)
    first = skips[0]
    where = f"{first.place}: " if first.place else ""
    return RULE.finding(
        title=f"torch.compile skips CUDA graphs for {graphs} of its graphs" if graphs > 1
        else "torch.compile skips the CUDA graph of a graph",
        seen=f"{where}{first.reason.rstrip('.')}.",
        readings=[Reading("Graphs without a CUDA graph", graphs, "count", 0)],
        evidence=[
            EvidenceRow(f"{one.place}: {one.reason}" if one.place else one.reason, None, None, "compiled", "")
            for one in skips[:_SHOWN]
        ],
        change=f"Change {first.place or 'what the reason names'}: {_change(first.reason)}",
        code="",
        saving=_saving(context),
    )  # fmt: skip


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Fewer skipped CUDA graphs."""
    before, after = (sum(one.count for one in view.profile.facts.cudagraph_skips) for view in (base, candidate))
    return "fewer skipped CUDA graphs" if candidate.profile.facts.compilations and after < before else ""


def _change(reason: str) -> str:
    if "cpu device" in reason or "multiple devices" in reason:
        return "create the tensor on the GPU (device=x.device), or pass it as one of the GPU."
    if "mutated" in reason:
        return "do not write into an input; return the new value."
    if "symbolic" in reason or "dynamic" in reason:
        return "keep the sizes of inputs the same, or compile with dynamic=False."
    return "remove it from the compiled function."


def _saving(context: RuleContext) -> Saving | str:
    if not context.profile.has_gpu:
        return "The run used no GPU."
    rows = compiled_regions(context.view, context.selection).launched
    calls, count = context.profile.calls, context.selection.count
    if not len(rows):
        return "No graph that is launched kernel by kernel runs in the recorded steps, as far as it says."
    launched = intersection(launching(context.view, context.selection).launching, union_of(calls, rows))
    spent = int((launched[1] - launched[0]).sum())

    def left(replay_ns: float) -> float:
        return float(np.minimum(calls.duration_ns[rows], replay_ns).sum() / max(calls.duration_ns[rows].sum(), 1))

    found = shorter_step(
        context,
        Change(cpu=launched, keep_cpu=left(REPLAY_NS.high)),
        Change(cpu=launched, keep_cpu=left(REPLAY_NS.expected), keep_gaps=0.5),
        Change(cpu=launched, keep_cpu=left(REPLAY_NS.low), keep_gaps=0.0),
        f"{len(rows) / count:.3g} graphs a step are launched kernel by kernel, which takes the CPU "
        f"{ms(spent // count)} while recorded. Replays would take {100 * left(REPLAY_NS.low):.0f} to "
        f"{100 * left(REPLAY_NS.high):.0f} % of it.",
        at_most_ns=context.idle_ns,
    )
    return with_doubt_of_step(context, found)
