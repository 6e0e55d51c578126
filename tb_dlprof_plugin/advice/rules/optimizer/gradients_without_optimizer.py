"""Gradients are computed that no optimizer uses.

Parameters that get a gradient in each step and are in none of the optimizers that stepped.

Why it matters: Training a new head on a body that is kept needs no gradients of the body. Where its parameters still
require them, the backward pass goes through the whole body and keeps its activations. It adds up gradients that nothing
reads.

What to change: Call `requires_grad_(False)` on what is not trained, or run it under `torch.no_grad()`.

When to leave it: The gradients are read by something else, such as a penalty or a second optimizer that steps now and
then.

To confirm: Record again: the modules should have no backward pass, and the peak of memory should be lower.

Read on:
- [PyTorch: locally disabling gradients](https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.gpu_memory import gigabytes
from tb_dlprof_plugin.advice.op_patterns import launched_in
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import Saving, change, step_saving
from tb_dlprof_plugin.advice.text import listed, milliseconds
from tb_dlprof_plugin.model.profile import Bools, CallKind, Role
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.PROCESS,),
    thresholds=("WORTHWHILE_SAVING_PERCENT", "STEP_NOISE"),
    confidence="high",
)

_CODE = "model.{name}.requires_grad_(False)\n"


def check(context: RuleContext) -> Finding | Silent:
    """Fires on every such parameter; the saving is the backward pass of modules that nothing trained lies before."""
    facts = context.facts
    if facts.unstepped_gradients is None:
        return Silent("Which parameters the optimizers have was not recorded.", applicable=False)
    if not facts.unstepped_gradients:
        return Silent("Every gradient belongs to a parameter of an optimizer that steps.")
    modules, size = facts.unstepped_gradient_modules, facts.unstepped_gradient_bytes or 0
    what = listed(modules) or "parts of the model"
    before, all_of_them = _backward(context, modules)
    estimate = _estimate(context, before, all_of_them) if all_of_them.any() else None
    launches = launched_in(context, all_of_them) & context.view.selected_launches(context.selection)
    time = context.per_step(launches)
    return RULE.finding(
        title=f"{gigabytes(size)} of gradients that no optimizer uses are computed in each step",
        seen=f"{facts.unstepped_gradients:,} parameters of {what} get a gradient and are in no optimizer that stepped. "
        + (f"The backward pass of these modules takes {milliseconds(time)} of kernel time a step." if time else ""),
        readings=[
            Reading("Parameters with a gradient and without optimizer", facts.unstepped_gradients, "count"),
            Reading("Their gradients", size, "bytes"),
            Reading("Backward pass of their modules, kernel time per step", time or None, "ns"),
        ],
        evidence=op_rows(context, launches) if time else [],
        change=f"Call requires_grad_(False) on {what}: their gradients go, and so do the activations that are kept for "
        "them.",
        code="".join(_CODE.format(name=name) for name in modules[:3]),
        saving=estimate or "No work of their backward pass was recorded under their modules.",
    )


def _estimate(context: RuleContext, before: Bools, all_of_them: Bools) -> Saving:
    """Modules with something trained before them still pass gradients on: of theirs nothing goes at the least."""
    low, high = change(context, gone=before), change(context, gone=all_of_them)
    return step_saving(
        context,
        low,
        low if before.any() else high,
        high,
        "The backward pass of modules before all that is trained is left out"
        + (
            "."
            if (before == all_of_them).all()
            else "; that of others, which pass gradients on, goes at the high end only."
        ),
    )


def _backward(context: RuleContext, modules: list[str]) -> tuple[Bools, Bools]:
    """Calls of the backward pass of modules whose forward pass comes before that of all trained ones, and of all."""
    view, ops, calls = context.view, context.profile.ops, context.profile.calls
    paths = np.array([_inside(path, modules) for path in context.profile.strings], dtype=np.bool_)
    own = paths[ops.module[calls.op]]
    is_op = (ops.kind == CallKind.OP)[calls.op] & view.selected_calls(context.selection)
    role = ops.role[calls.op]
    trained = is_op & (role == Role.FORWARD) & ~own & _has_parameters(context, modules)[ops.module[calls.op]]
    first: dict[int, int] = {}
    for row in np.flatnonzero(trained).tolist():
        step = int(view.call_iteration[row])
        first[step] = min(first.get(step, int(calls.start_ns[row])), int(calls.start_ns[row]))
    forward = is_op & (role == Role.FORWARD) & own
    behind = {
        int(ops.module[calls.op[row]])
        for row in np.flatnonzero(forward).tolist()
        if calls.start_ns[row] > first.get(int(view.call_iteration[row]), np.iinfo(np.int64).max)
    }
    gone = is_op & (role == Role.BACKWARD) & own
    before = gone & ~np.isin(ops.module[calls.op], sorted(behind))
    if (before == gone).all():
        # Their backward pass comes last, so all that follows its begin is a part of it: sums of gradients, too.
        before = gone = before | _behind_first(context, before)
    return before, gone


def _behind_first(context: RuleContext, chosen: Bools) -> Bools:
    """Calls of the backward pass that begin behind the first of some calls in their step."""
    view, ops, calls = context.view, context.profile.ops, context.profile.calls
    steps, starts = view.call_iteration[chosen], calls.start_ns[chosen]
    first = np.full(len(context.profile.iterations), np.iinfo(np.int64).max)
    np.minimum.at(first, steps, starts)
    backward = (ops.kind == CallKind.OP)[calls.op] & (ops.role[calls.op] == Role.BACKWARD)
    backward &= view.selected_calls(context.selection)
    found: Bools = backward & (calls.start_ns >= first[np.maximum(view.call_iteration, 0)])
    return found


def _has_parameters(context: RuleContext, modules: list[str]) -> Bools:
    """Per string, whether it is the path of another module with parameters; of any other where that is not known."""
    known = {one.module for one in context.facts.storages if one.kind == "parameter"}
    return np.array(
        [
            bool(path) and not _inside(path, modules) and (not known or path in known)
            for path in context.profile.strings
        ],
        dtype=np.bool_,
    )


def _inside(path: str, modules: list[str]) -> bool:
    return any(path == module or path.startswith(f"{module}.") for module in modules)


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Such gradients in one run and not in the other."""
    before, after = (view.profile.facts.unstepped_gradients for view in (base, candidate))
    return "no gradients without an optimizer" if before and after == 0 else ""
