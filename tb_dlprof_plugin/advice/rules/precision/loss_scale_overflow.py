"""The loss scale overflows.

Optimizer steps that were skipped because a scaled gradient was infinite or not a number.

Why it matters: FP16 ends at 65,504. Where the scaled gradients pass it, the GradScaler throws the whole step away and
halves its scale. Now and then that is how it finds its scale; often, it is forward and backward passes for nothing.

What to change: Use BF16, which needs no scale. Else begin with a smaller `init_scale`, let the scale grow more rarely
(`growth_interval`), and look for what makes gradients large: the learning rate, a missing clipping, a sum where a
mean was meant.

When to leave it: The recording shows the first steps of a training, in which the scale is still being found.

To confirm: Record again: the Overview should show no skipped steps, and the loss should fall faster by step.

Read on:
- [PyTorch: GradScaler](https://docs.pytorch.org/docs/stable/amp.html#torch.amp.GradScaler)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Reading, Rule, RuleContext, Severity, Silent
from tb_dlprof_plugin.advice.text import milliseconds
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.numeric_health import numeric_health
from tb_dlprof_plugin.names.tensor_core_eligibility import tensor_core_precisions

RULE = Rule(
    __name__,
    __doc__,
    all_iterations=True,
    confidence="high",
)

SKIPPED_STEPS_PERCENT = 1.0
"""Of the optimizer steps, from which the loss scale overflows too often. GradScaler's own settings skip one in 2,000
once the scale has settled."""

_BF16 = (
    'with torch.autocast("cuda", dtype=torch.bfloat16):  # no GradScaler\n    loss = loss_fn(model(inputs), targets)\n'
)
_SCALER = 'scaler = torch.amp.GradScaler("cuda", init_scale={scale:g}, growth_interval=2000)\n'
_LARGEST_SCALE = 65536.0
_OFTEN_PERCENT = 20.0


def check(context: RuleContext) -> Finding | Silent:
    """Fires where more steps were skipped than a settled scale skips."""
    health = numeric_health(context.view, context.selection)
    if not health.loss_scaling:
        return Silent("The loss was not scaled.", applicable=False)
    if health.skipped is None or not health.rounds:
        return Silent("Whether optimizer steps were skipped was not recorded.", applicable=False)
    share = percent(health.skipped, health.rounds) or 0.0
    if share < SKIPPED_STEPS_PERCENT:
        return Silent(f"{health.skipped} of {health.rounds} optimizer steps were skipped.")
    if health.skipped == 1:
        return Silent(f"1 of {health.rounds} optimizer steps was skipped, which is how the scale finds its bound.")
    lost = round(context.step_ns * share / 100)
    bf16 = "bf16" in tensor_core_precisions(context.compute_capability)
    severity: Severity = "high" if share >= _OFTEN_PERCENT else "medium"
    scale = "" if health.scale is None else f" The scale was {health.scale:g} at the end of the recording."
    return RULE.finding(
        title=f"{share:.0f} % of the optimizer steps are skipped: {milliseconds(lost)} of each step's time is for "
        f"nothing",
        seen=f"{health.skipped} of {health.rounds} optimizer steps were skipped because a scaled gradient was "
        f"infinite or not a number.{scale}",
        readings=[
            Reading("Optimizer steps skipped", health.skipped, "count"),
            Reading("Share of the optimizer steps", share, "percent", SKIPPED_STEPS_PERCENT),
            Reading("Time for skipped steps, per step", lost, "ns"),
            Reading("Loss scale at the end", health.scale, "count"),
        ],
        evidence=[
            EvidenceRow(f"Iteration {index}, whose step was skipped", None, None, "overview", str(index))
            for index in health.skipped_iterations[:5]
        ],
        change=(
            "Use BF16 autocast without a scaler. Or keep FP16 with a scale that grows more rarely."
            if bf16
            else "Let the scale grow more rarely, begin with a smaller one, and look for what makes gradients so large."
        ),
        code=_BF16 if bf16 else _SCALER.format(scale=min(health.scale or _LARGEST_SCALE, _LARGEST_SCALE)),
        saving="A step does not get shorter; but fewer of them are needed, because none is thrown "
        "away: "
        f"{share:.0f} % of the time went into skipped ones.",
    ).but(severity=severity)
