"""cudnn.benchmark is off.

Convolutions that take a notable share of the step while `torch.backends.cudnn.benchmark` is off.

Why it matters: cuDNN has several algorithms for each convolution. Without benchmark it takes the one that its
heuristics suggest; with it, it times them once per shape and keeps the fastest.

What to change: Set `torch.backends.cudnn.benchmark = True` before the first step.

When to leave it: Input shapes change from step to step: each new shape is timed again. Or runs must repeat bit by
bit.

To confirm: Record again after the first steps, which pay for the timing: the convolutions should take less.

In other tools:
- DLProf: Cudnn Benchmark Detector

Read on:
- [PyTorch: cudnn.benchmark](https://docs.pytorch.org/docs/stable/backends.html#torch.backends.cudnn.benchmark)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import faster_kernels
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.names.tensor_core_eligibility import is_convolution
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.PROCESS, Need.GPU),
    thresholds=("WORTHWHILE_SAVING_PERCENT",),
    facts=("cudnn_benchmark",),
)

CONVOLUTION_SHARE_PERCENT = 5.0
"""Below this share of the step, choosing other convolution algorithms cannot save one percent of it."""

CUDNN_BENCHMARK_FP32 = SpeedupRange(1.0, 1.2, 1.4)
CUDNN_BENCHMARK_OTHER = SpeedupRange(1.0, 1.05, 1.25)
"""Convolution kernels after cudnn.benchmark chose the algorithms. Measured on an H200 by lab/cudnn_benchmark.py
for AlexNet, VGG-16 and ResNet-50: 1.17 to 1.35 in FP32, 1.00 to 1.22 in TF32, 1.02 to 1.08 in FP16."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the hook saw ``cudnn.benchmark`` off and cuDNN convolutions take a notable share of the step."""
    benchmark = context.facts.cudnn_benchmark
    if benchmark is None:
        return Silent("Whether cudnn.benchmark was on was not recorded.", applicable=False)
    if benchmark:
        return Silent("cudnn.benchmark is on.")
    if context.facts.deterministic_algorithms:
        return Silent("Deterministic algorithms are asked for, so cudnn.benchmark may not choose.", applicable=False)
    launches = _convolution_launches(context)
    time = context.per_step(launches)
    share = percent(time, context.step_ns) or 0.0
    if share < CONVOLUTION_SHARE_PERCENT:
        return Silent(f"Convolutions take {share:.1f} % of the step.", applicable=time > 0)
    fp32 = launches & context.in_precision("fp32") & ~context.on_tensor_cores
    parts = [
        ("FP32 convolution kernels", fp32, CUDNN_BENCHMARK_FP32),
        ("other convolution kernels", launches & ~fp32, CUDNN_BENCHMARK_OTHER),
    ]
    estimate = faster_kernels(
        context,
        [(part, factor) for _, part, factor in parts],
        ", ".join(
            f"{ms(context.per_step(part))} of {name} become {factor.low:g} to {factor.high:g} (expected "
            f"{factor.expected:g})"
            for name, part, factor in parts
            if part.any()
        )
        + " times as fast.",
    )
    best = percent(estimate.high_ns, context.step_ns) or 0.0
    if best < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"Other convolution algorithms could save at most {best:.1f} % of the step.")
    shapes = _input_shapes(context, launches)
    return RULE.finding(
        title=f"cudnn.benchmark is off while convolutions take {share:.0f} % of the step",
        seen=f"Convolutions take {ms(time)} of each {ms(context.step_ns)} step, in {shapes} shapes; "
        "cuDNN chose their algorithms by its heuristics.",
        readings=[
            Reading("Convolution share of the step", share, "percent", CONVOLUTION_SHARE_PERCENT),
            Reading("Convolution kernels per step", time, "ns"),
            Reading("Different convolution shapes", shapes, "count"),
        ],
        evidence=op_rows(context, launches),
        change="Let cuDNN time its algorithms once per shape and keep the fastest. Input shapes should not change from "
        "step to step, because each new one is timed again.",
        code="torch.backends.cudnn.benchmark = True\n",
        saving=estimate,
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """The switch."""
    return "cudnn.benchmark on" if candidate.profile.facts.cudnn_benchmark else ""


def _convolution_launches(context: RuleContext) -> Bools:
    profile = context.profile
    convolution = np.array([is_convolution(profile.strings[i]) for i in profile.ops.name.tolist()], dtype=np.bool_)
    op = context.view.launch_op
    return context.kernel_launches & take_or(convolution, op, False)


def _input_shapes(context: RuleContext, launches: Bools) -> int:
    return len(np.unique(context.profile.ops.shapes[context.view.launch_op[launches]]))
