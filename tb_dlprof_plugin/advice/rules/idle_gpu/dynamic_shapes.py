"""Compiled for sizes that vary, called with one.

Regions of `torch.compile` whose code is for any size, where all recorded calls have the same sizes.

Why it matters: After one call with other sizes, such as a short last batch, Dynamo compiles again for sizes that vary.
All later calls run that code: its kernels check bounds, know no strides, and templates are tuned for one size only.

What to change: Keep the odd size away from the compiled model: drop the last short batch, or pad it. Where all calls
have one size, compile for it.

When to leave it: Other sizes come outside the recorded steps, and each would be compiled again.

To confirm: Record again: the compilation with sizes that vary is gone, and `tb-dlprof compare` says what it saved.

Read on:
- [PyTorch: dynamic shapes](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_dynamic_shapes.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.idle_gpu.compiled_regions import compiled_regions
from tb_dlprof_plugin.advice.rules.idle_gpu.host_phases import intersection, launching
from tb_dlprof_plugin.advice.savings import Saving, shorter_step, with_doubt_of_step
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.model.intervals import union_of
from tb_dlprof_plugin.model.lookup import rows_of_each
from tb_dlprof_plugin.model.tree import inherit
from tb_dlprof_plugin.names.compiled import COMPILED_REGION, is_generated
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(__name__, __doc__, needs=(Need.COMPILATIONS, Need.SHAPES), confidence="medium", severity="low")


LEFT = SpeedupRange(0.75, 0.96, 1.0)
"""What code for one size takes of that for any size. Ours: from nothing up to a quarter of a small GPT's step."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires on code for sizes that vary that got one size in all selected steps."""
    dynamic = {one.compile_id: one for one in context.facts.compilations if one.dynamic}
    if not dynamic:
        return Silent("No code was compiled for sizes that vary.")
    sizes = _sizes(context, set(dynamic))
    if not sizes:
        return Silent("Code for sizes that vary does not run in the steps.")
    fixed = [dynamic[key] for key, count in sizes.items() if count == 1]
    if not fixed:
        return Silent(f"Code for sizes that vary gets up to {max(sizes.values())} different sizes.")
    first = fixed[0]
    reason = first.recompile_reason
    return RULE.finding(
        title=f"Compiled for sizes that vary, called with one: {first.place}",
        seen=f"{first.place} runs code for any size, and all recorded calls have the same sizes."
        + (f" It was compiled again because of {reason}." if reason else ""),
        readings=[Reading("Functions with code for any size and calls of one", len(fixed), "count", 0)],
        evidence=[
            EvidenceRow(f"{one.place}: {one.recompile_reason or 'dynamic=True'}", one.duration_ns, None, "compiled", "")
            for one in fixed
        ],
        change=f"{first.place}: "
        + ("drop or pad the batch of another size." if reason else "compile it for one size: leave dynamic=True out."),
        code="loader = DataLoader(dataset, batch_size=batch_size, drop_last=True)\n"
        if reason
        else "model = torch.compile(model)\n",
        saving=_saving(context, {one.compile_id for one in fixed}),
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Less code for sizes that vary."""
    before, after = (sum(one.dynamic for one in view.profile.facts.compilations) for view in (base, candidate))
    return "fixed sizes" if candidate.profile.facts.compilations and after < before else ""


def _saving(context: RuleContext, ids: set[str]) -> Saving | str:
    view, calls, launches = context.view, context.profile.calls, context.profile.launches
    if not context.profile.has_gpu:
        return "The run used no GPU."
    rows = compiled_regions(view, context.selection).launched
    ops, strings = context.profile.ops, context.profile.strings
    names = {strings[i] for i in ops.name[calls.op[view.selected_calls(context.selection)]].tolist()}
    running = {name.removeprefix(COMPILED_REGION) for name in names if name.startswith(COMPILED_REGION)}
    if not len(rows) or running - ids:
        # A backward pass does not say whose it is.
        return "No launches of this code alone were recorded."
    launched = intersection(launching(view, context.selection).launching, union_of(calls, rows))
    generated = context.profile.kernels_where(name=is_generated)[launches.kernel]

    def change(left: float) -> Change:
        return Change(cpu=launched, keep_cpu=left, gpu=np.where(generated, left, 1.0))

    found = shorter_step(
        context,
        change(LEFT.high),
        change(LEFT.expected),
        change(LEFT.low),
        f"Code for one size takes {100 * LEFT.low:.0f} to {100 * LEFT.high:.0f} % of the time to launch, and so do its "
        "generated kernels.",
    )
    return with_doubt_of_step(context, found)


def _sizes(context: RuleContext, ids: set[str]) -> dict[str, int]:
    """By compilation the number of different sizes with which its region ran: of its first op with shapes."""
    view, calls, ops, strings = context.view, context.profile.calls, context.profile.ops, context.profile.strings
    named = np.array([strings[name].removeprefix(COMPILED_REGION) in ids for name in ops.name.tolist()], dtype=np.bool_)
    region = named[calls.op]
    around = inherit(np.where(region, np.arange(len(calls)), -1), region, view.call_parent)
    inside = np.flatnonzero((around >= 0) & (ops.shapes[calls.op] > 0) & view.selected_calls(context.selection))
    found: dict[str, set[int]] = {}
    for call, rows in rows_of_each(around[inside]):
        key = strings[ops.name[calls.op[call]]].removeprefix(COMPILED_REGION)
        found.setdefault(key, set()).add(int(ops.shapes[calls.op[inside[rows[0]]]]))
    return {key: len(shapes) for key, shapes in found.items()}
