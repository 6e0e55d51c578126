"""Gradients are zeroed instead of set to None.

Kernels in `zero_grad` that fill gradients with zeros. Also kernels in the backward pass that add the new gradients to
them.

Why it matters: Filling writes all gradients once; adding reads two and writes one of them. Where a gradient is None
the new one takes its place, and nothing moves.

What to change: Call `optimizer.zero_grad(set_to_none=True)`, which is the default since PyTorch 2.0. The same
argument has `model.zero_grad`.

When to leave it: Code relies on gradients that are zero rather than None, or the gradients are views into one buffer.

To confirm: Record again: zero_grad should launch nothing, and AccumulateGrad no aten::add_.

In other tools:
- PyTorch: GradNotSetToNonePattern

Read on:
- [PyTorch: Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html)
- [PyTorch: performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.optimizer_work import list_sizes, within, zeroing
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import shorter_step
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.intervals import Intervals, union
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind
from tb_dlprof_plugin.model.tree import nearest
from tb_dlprof_plugin.names.ops import ACCUMULATE_GRAD
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.call_names import calls_named
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    confidence="high",
)

ZERO_GRAD_SAVING_PERCENT = 2.0
"""Of the step without the profiler: the variation of step times within a run. The change costs nothing."""

ZEROED_TENSORS = 4
"""Zeroing ops per step outside of every module, from which they are taken for those of ``model.zero_grad``. Ours."""

_ZEROING_OPS = ("aten::zero_", "aten::_foreach_zero_")
_CPU_LEFT = {"low": 0.8, "expected": 0.4, "high": 0.2}
"""Of the CPU's time in zeroing and accumulating: references are dropped and handed over all the same. Ours."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where zeroing launches kernels, gradients are added to, and doing neither pays."""
    view, count = context.view, context.selection.count
    windows = _zeroing(context)
    fills = within(view, windows)
    if not fills.any():
        return Silent("No kernel fills gradients with zeros.")
    adds, accumulating = _adds(context)
    if not adds.any():
        return Silent("Gradients are filled with zeros, but no kernel adds to them.")
    passes = _passes(context, fills, adds)
    spared = 1.0 / passes
    filling, adding = context.per_step(fills), context.per_step(adds)
    cpu = union(*(np.concatenate(both) for both in zip(windows, accumulating, strict=True)))
    gone = np.where(fills, 0.0, 1.0)
    estimate = shorter_step(
        context,
        Change(cpu, _CPU_LEFT["low"], np.where(adds, 1 - spared / 2, gone)),
        Change(cpu, _CPU_LEFT["expected"], np.where(adds, 1 - spared, gone)),
        Change(cpu, _CPU_LEFT["high"], np.where(adds, 1 - spared, gone)),
        f"{ms(filling)} of filling go, and of {ms(adding)} of adding {50 * spared:.0f} to "
        f"{100 * spared:.0f} %"
        + (f": of {passes} backward passes per step only the first has nothing to add to." if passes > 1 else "."),
    )
    if estimate.percent < ZERO_GRAD_SAVING_PERCENT:
        return Silent(
            f"Filling and adding take {ms(filling + adding)}; without them the step should get only "
            f"{estimate.percent:.1f} % shorter."
        )
    number = int(fills.sum()) // count
    return RULE.finding(
        title=f"Gradients are zeroed in place: filling and adding takes {ms(filling + adding, 1)} of each step",
        seen=f"{number} kernels a step fill gradients with zeros ({ms(filling)}), and "
        f"{int(adds.sum()) // count} add new gradients to them ({ms(adding)}); the step takes "
        f"{ms(context.recorded_step_ns)}.",
        readings=[
            Reading("Kernels that fill gradients, per step", number, "count"),
            Reading("Filling per step", filling, "ns"),
            Reading("Adding per step", adding, "ns"),
            Reading("Share of the step", percent(filling + adding, context.recorded_step_ns), "percent"),
            Reading("Expected saving", estimate.percent, "percent", ZERO_GRAD_SAVING_PERCENT),
        ],
        evidence=op_rows(context, fills | adds),
        change="Set gradients to None instead of zero.",
        code="optimizer.zero_grad(set_to_none=True)\n",
        saving=estimate,
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Kernels that fill gradients, in one run and not in the other."""
    before, after = (bool(within(view, zeroing(view, view.selection())).any()) for view in (base, candidate))
    return "gradients set to None" if before and not after else ""


def _zeroing(context: RuleContext) -> Intervals:
    """``zero_grad`` of optimizers, and runs of zeroing outside of every module and backward pass."""
    view, calls = context.view, context.profile.calls
    outer = calls_named(view, CallKind.OP, _ZEROING_OPS.__contains__) & (view.call_top == np.arange(len(calls)))
    outer &= view.selected_calls(context.selection) & (context.profile.ops.module[calls.op] == _empty(context))
    if int(outer.sum()) < ZEROED_TENSORS * context.selection.count:
        outer &= calls_named(view, CallKind.OP, lambda name: name == _ZEROING_OPS[1])
    own = zeroing(view, context.selection)
    starts = np.concatenate([own[0], calls.start_ns[outer]])
    return union(starts, np.concatenate([own[1], calls.start_ns[outer] + calls.duration_ns[outer]]))


def _empty(context: RuleContext) -> int:
    strings = context.profile.strings
    return strings.index("") if "" in strings else -1


def _adds(context: RuleContext) -> tuple[Bools, Intervals]:
    """Launches of ops that add to a gradient, and when the CPU accumulates gradients."""
    view, calls = context.view, context.profile.calls
    accumulate = calls_named(view, CallKind.OP, lambda name: name == ACCUMULATE_GRAD) & view.selected_calls(
        context.selection
    )
    around = nearest(accumulate, view.call_parent)
    call = context.profile.launches.call
    adds = take_or(around >= 0, call, False)
    return adds, union(calls.start_ns[accumulate], calls.start_ns[accumulate] + calls.duration_ns[accumulate])


def _passes(context: RuleContext, fills: Bools, adds: Bools) -> int:
    """Backward passes per step: how often each zeroed gradient is added to; 1 where that is not known."""
    profile, _strings = context.profile, context.profile.strings
    around = nearest(calls_named(context.view, CallKind.OP, _ZEROING_OPS.__contains__), context.view.call_parent)
    call = np.unique(around[profile.launches.call[fills]])
    sizes = [list_sizes(profile.shapes_of(op), 0) for op in profile.calls.op[call[call >= 0]].tolist()]
    zeroed = sum(len(size) for size in sizes if size)
    return max(1, round(int(adds.sum()) / zeroed)) if zeroed and all(sizes) else 1
