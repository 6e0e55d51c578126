"""torch.compile has no effect.

Calls of `torch.compile` whose code does not run in the recorded steps, by the hook's notes and the recording.

Why it matters: The step runs eagerly, without an error. Often the result of `torch.compile(model)` is dropped, or
another method than `forward` is called. Or Dynamo gave up after too many recompiles, or is switched off.

What to change: Call what `torch.compile` returns, or compile in place with `model.compile()`.

When to leave it: The compiled function is for another part of the script, such as generation.

To confirm: Record again: ops lie in regions of torch.compile, and `tb-dlprof compiled` lists their kernels.

Read on:
- [PyTorch: torch.compile troubleshooting](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_troubleshooting.html)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice.compile_saving import compile_saving
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.metrics.amp_calls import compiled_calls
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(__name__, __doc__, confidence="high", severity="medium")

_WITHOUT_INDUCTOR = ("eager", "aot_eager", "aot_eager_decomp_partition")
_REPLAYING = ("reduce-overhead", "max-autotune")
"""Modes with CUDA graphs."""
_SHOWN = 10


def check(context: RuleContext) -> Finding | Silent:
    """Fires where torch.compile was called, and no compiled code runs in the selected steps."""
    calls, compilations = context.facts.compile_calls, context.facts.compilations
    if not calls:
        return Silent("No call of torch.compile was noted.", applicable=False)
    runs = bool((compiled_calls(context.view) & context.view.selected_calls(context.selection)).any())
    bare = all(one.backend in _WITHOUT_INDUCTOR for one in calls)
    failed = [one for one in compilations if one.failure]
    if runs and not bare:
        return Silent("Code of torch.compile runs in the steps.")
    first = calls[0]
    call = f'torch.compile(model, backend="{first.backend}")' if bare else "torch.compile"
    change, code = f"{first.place}: call what torch.compile returns, or compile in place.", "model.compile()\n"
    if bare:
        why = f"the backend {first.backend} generates no kernels"
        change, code = f"{first.place}: leave the backend out.", "model = torch.compile(model)\n"
    elif failed:
        why = f"Dynamo gave up on {failed[0].place} ({failed[0].failure.rstrip('.')})"
        change, code = f"{failed[0].place}: {_AFTER_FAILURE}", ""
    elif compilations:
        why = f"what it compiled, {compilations[0].place}, is not called in the recorded steps"
    else:
        why = "nothing was compiled: what it returned was never called, or TORCHDYNAMO_DISABLE is set"
    return RULE.finding(
        title="torch.compile has no effect on the steps",
        seen=f"{first.place} calls {call}, but {why}.",
        readings=[Reading("Calls of torch.compile", sum(one.count for one in calls), "count", 0)],
        evidence=[EvidenceRow(one.place, None, None, "overview", "") for one in calls[:_SHOWN]],
        change=change,
        code=code,
        saving=compile_saving(context, graphs=first.mode in _REPLAYING),
    )


_AFTER_FAILURE = "keep what its guards check the same, so that it is compiled once."


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Compiled code runs."""
    return "torch.compile" if compiled_calls(candidate).any() and not compiled_calls(base).any() else ""
