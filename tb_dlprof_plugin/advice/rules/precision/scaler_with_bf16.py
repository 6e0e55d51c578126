"""A gradient scaler without FP16.

The calls of a GradScaler in a run whose matrix work is in BF16 or FP32.

Why it matters: FP16 numbers below 6e-8 become 0, so its gradients are scaled up. BF16 has FP32's range and needs
nothing of that. The scaler still reads and writes all gradients once more to unscale and check them. Then it makes the
CPU wait for the result before the optimizer may begin: the GPU is idle, and the next launches come late.

What to change: Leave the scaler out, or construct it with `enabled=False`.

When to leave it: The run switches between FP16 and BF16 and the loss of time does not matter.

To confirm: Record again: aten::_amp_foreach_non_finite_check_and_unscale_ and the aten::item after it are gone.

Read on:
- [PyTorch: gradient scaling](https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.op_patterns import launched_in, ops_named
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.precision.gradient_scaling import UNSCALE, scaler_calls
from tb_dlprof_plugin.advice.savings import saved
from tb_dlprof_plugin.advice.text import milliseconds
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.precision_mode import precision_mode, precision_name
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import without_calls

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("REPLAYED_WAITS",),
    confidence="high",
)

_CODE = """loss.backward()  # instead of scaler.scale(loss).backward()
optimizer.step()  # instead of scaler.step(optimizer); scaler.update()
"""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where a scaler worked though no matrix work was in FP16."""
    mode = precision_mode(context.view)
    calls = scaler_calls(context)
    if not context.facts.grad_scaler and not calls.any():
        return Silent("No GradScaler was seen.", applicable=False)
    if not calls.any():
        return Silent("The GradScaler did nothing in the selected iterations.")
    shares = {share.precision: share.percent for share in mode.shares}
    if shares.get("fp16"):
        return Silent(f"{shares['fp16']:.0f} % of the matrix work is in FP16, whose gradients need scaling.")
    if not mode.precision or mode.precision == "mixed":
        return Silent("In which precision the run computed is unknown.", applicable=False)
    launches = launched_in(context, calls) & context.view.selected_launches(context.selection)
    time, count = context.per_step(launches), int(calls.sum()) / context.selection.count
    cpu = int(context.profile.calls.duration_ns[calls].sum()) // context.selection.count
    waits = _waits(context)
    estimate = saved(
        context,
        without_calls(context.view, calls),
        f"The scaler's {count:.0f} calls a step go, with {milliseconds(time)} of kernels"
        + (" and the wait before the optimizer." if waits else "."),
    )
    name = precision_name(mode.precision)
    return RULE.finding(
        title=f"A GradScaler runs with {name}: {milliseconds(time)} of kernels a step"
        + (", and the CPU waits before each optimizer step" if waits else ""),
        seen=f"Matrix work is in {name}, which needs no loss scaling. Yet a GradScaler makes {count:.0f} calls a step: "
        f"{milliseconds(time)} of kernels that unscale and check all gradients"
        + (", and a read of the result for which the CPU waits until the backward pass is done." if waits else "."),
        readings=[
            Reading("Calls of the scaler per step", count, "count"),
            Reading("Their kernels per step", time, "ns"),
            Reading("Their time on the CPU per step, waiting included", cpu, "ns"),
        ],
        evidence=_evidence(context, time),
        change="Leave the GradScaler out of the training loop.",
        code=_CODE,
        saving=estimate,
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """The scaler, by what the hook saw."""
    before, after = base.profile.facts.grad_scaler, candidate.profile.facts.grad_scaler
    return "no GradScaler" if before and after is False else ""


def _waits(context: RuleContext) -> bool:
    """Whether the result is read on the CPU: fused optimizers read it on the GPU."""
    read = ops_named(context, lambda name: name == "aten::item")[context.profile.calls.op]
    return bool((scaler_calls(context) & read).any())


def _evidence(context: RuleContext, time: int) -> list[EvidenceRow]:
    groups, strings = context.view.groups, context.profile.strings
    wanted = UNSCALE.removeprefix("aten::")
    for group in np.flatnonzero(groups.op_type >= 0).tolist():
        if strings[groups.op_type[group]] == wanted:
            launched = context.view.selected_launches(context.selection) & (context.view.launch_group == group)
            value = context.per_step(launched)
            return [EvidenceRow(wanted, value, percent(value, time), "ops", groups.ids[group])]
    return []
