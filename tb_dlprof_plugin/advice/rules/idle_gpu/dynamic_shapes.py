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
from tb_dlprof_plugin.model.lookup import rows_of_each
from tb_dlprof_plugin.model.tree import inherit
from tb_dlprof_plugin.names.compiled import COMPILED_REGION
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(__name__, __doc__, needs=(Need.COMPILATIONS, Need.SHAPES), confidence="medium", severity="low")


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
        saving="What code for one size would save was not measured.",
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Less code for sizes that vary."""
    before, after = (sum(one.dynamic for one in view.profile.facts.compilations) for view in (base, candidate))
    return "fixed sizes" if candidate.profile.facts.compilations and after < before else ""


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
