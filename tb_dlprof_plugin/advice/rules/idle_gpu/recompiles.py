"""torch.compile compiles functions again.

Functions that `torch.compile` compiled more than once, with the guard that failed, by Dynamo's metrics of the process.

Why it matters: A recompile takes as long as a start, and comes in the middle of the training. After eight of a function
Dynamo gives up, and the function runs without compilation.

What to change: Keep what the guard checks the same: pad batches to a few lengths and drop the last short one. Pass
tensors in place of numbers that change, and keep dtypes. Where sizes must change, compile for sizes that vary.

When to leave it: The versions were compiled once at the start, and no new ones come.

To confirm: Record again: the function is compiled once. `TORCH_LOGS=recompiles` prints each recompile when it happens.

Read on:
- [PyTorch: recompilation](https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.model.intervals import union_of
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.model.run_facts import Compilation
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(__name__, __doc__, needs=(Need.COMPILATIONS,), confidence="high", severity="low")

_TIMED = " (dynamo_timed)"
"""Ends the names of the ranges that Dynamo leaves while it compiles."""
_SHOWN = 10
_CHANGES = (
    ("size mismatch", "Give its inputs the same sizes, or compile it for sizes that vary.",
     "model = torch.compile(model, dynamic=True)  # or torch._dynamo.mark_dynamic(x, 0) before the first call\n"),
    ("dtype mismatch", "Give its inputs the same data types.", ""),
    (" == ", "Pass what changes as a tensor, or keep it the same.", ""),
)  # fmt: skip
"""By a part of the guard."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires on each function that was compiled again."""
    again = [one for one in context.facts.compilations if one.recompile_reason]
    if not again:
        return Silent("Each function was compiled once.")
    seconds = sum(map(_both_passes, again)) / 1e9
    slowest = max(again, key=_both_passes)
    within = union_of(context.profile.calls, context.view.selected_calls(context.selection) & _compiling(context.view))
    change, code = next(
        ((change, code) for part, change, code in _CHANGES if part in slowest.recompile_reason),
        ("Keep what the guard checks the same.", ""),
    )
    times = "once" if len(again) == 1 else f"{len(again)} times"
    return RULE.finding(
        title=f"torch.compile compiled again {times}, for {seconds:.1f} s",
        seen=f"{slowest.place} was compiled again because of {slowest.recompile_reason}.",
        readings=[
            Reading("Recompiles", len(again), "count", 0),
            Reading("Their time", int(seconds * 1e9), "ns"),
            Reading("Compiling in the recorded steps", int((within[1] - within[0]).sum()), "ns"),
        ],
        evidence=[
            EvidenceRow(f"{one.place}: {one.recompile_reason}", _both_passes(one), None, "compiled", "")
            for one in again[:_SHOWN]
        ],
        change=f"{slowest.place}: {change}",
        code=code,
        saving="It is time of the start or of single steps, and not of each step.",
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Fewer recompiles."""
    before, after = _again(base), _again(candidate)
    return "fewer recompiles" if candidate.profile.facts.compilations and after < before else ""


def _both_passes(one: Compilation) -> int:
    return one.duration_ns + one.backward_ns


def _compiling(view: ProfileView) -> Bools:
    return view.profile.ops_named(lambda name: name.endswith(_TIMED))[view.profile.calls.op]


def _again(view: ProfileView) -> int:
    return sum(bool(one.recompile_reason) for one in view.profile.facts.compilations)
