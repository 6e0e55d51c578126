"""Automatic mixed precision is not used.

Matrix products, convolutions and attention in FP32 or TF32 on a GPU whose Tensor Cores take half precision. A forecast
says that autocast shortens the step.

Why it matters: Tensor Cores multiply FP16 and BF16 many times as fast as the other units multiply FP32. Half the bytes
move. But autocast adds casts and CPU work: a step that the CPU paces gets longer by it. So the rule uses the
[forecast](../forecast.md) of the run, and fires only where the step gets shorter by 3 % or more.

What to change: Run the forward pass and the loss under `torch.autocast`; with FP16 add a `GradScaler`.

When to leave it: The model needs FP32 (check the loss), or the run is about something else than speed.

To confirm: Record a run with mixed precision and open Compare: the step should be shorter by the amount given. The ops
listed should use Tensor Cores in FP16 or BF16.

In other tools:
- DLProf: AMP Detector
- torch-tb-profiler: Tensor Cores recommendation

Read on:
- [PyTorch: automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
- [Daydream: estimating the gain of AMP](https://www.usenix.org/conference/atc20/presentation/zhu-hongyu)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.code_snippets import BF16, FP16
from tb_dlprof_plugin.advice.evidence import confirmed_by_kernels, work_rows
from tb_dlprof_plugin.advice.frameworks import JAX_PRECISION, KERAS_MIXED, ORT_FLOAT16, TRT_PRECISION, FrameworkRemedy
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rule_context import HALF_PRECISIONS
from tb_dlprof_plugin.advice.savings import Saving, by_forecast, faster_kernels, why_unknown
from tb_dlprof_plugin.advice.text import NOTHING_ELIGIBLE, ms
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.kernels import time_split
from tb_dlprof_plugin.metrics.precision_mode import precision_mode
from tb_dlprof_plugin.metrics.precision_signals import HALF
from tb_dlprof_plugin.model.frameworks import JAX, ONNXRUNTIME, TENSORFLOW, TENSORRT
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.names.tensor_core_eligibility import tensor_core_precisions
from tb_dlprof_plugin.planning import Precision
from tb_dlprof_plugin.profile_view import ProfileView

_REMEDIES = {
    JAX: FrameworkRemedy(
        "Compute in bfloat16: keep the parameters in float32 and cast them and the inputs where they are used. In "
        "Flax that is dtype=jnp.bfloat16 of a module.",
        "x = x.astype(jnp.bfloat16)  # in the loss function\n"
        "params = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)\n"
        "# Flax: nn.Dense(features, dtype=jnp.bfloat16, param_dtype=jnp.float32)\n",
        (JAX_PRECISION,),
        "Half precision is not used",
    ),
    TENSORFLOW: FrameworkRemedy(
        "Set Keras' mixed precision policy before the model is built. The last layer should return float32.",
        'tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")  # or "mixed_float16", on older GPUs\n',
        (KERAS_MIXED,),
        "Mixed precision is not used",
    ),
    TENSORRT: FrameworkRemedy(
        "Build the engine with --fp16, which lets TensorRT choose FP16 by layer, and check the accuracy.",
        "trtexec --onnx=model.onnx --fp16 --saveEngine=model.fp16.engine\n",
        (TRT_PRECISION,),
        "The engine does not use half precision",
    ),
    ONNXRUNTIME: FrameworkRemedy(
        "Convert the model to float16.",
        "from onnxconverter_common import float16\n\n"
        'onnx.save(float16.convert_float_to_float16(onnx.load("model.onnx")), "model.fp16.onnx")\n',
        (ORT_FLOAT16,),
        "Half precision is not used",
    ),
}
"""In the words of other frameworks and recorders."""

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU, Need.TENSOR_CORES),
    without_steps=True,
    thresholds=("WORTHWHILE_SAVING_PERCENT", "AMP_MATRIX_FROM_FP32", "AMP_MATRIX_FROM_TF32"),
    group="precision",
    facts=("precision",),
    remedies=_REMEDIES,
)

HALF_PRECISION_SHARE_PERCENT = 50.0
"""With at least half of the eligible kernel time in half precision, AMP is in use."""

AMP_LAUNCH_OVERHEAD = SpeedupRange(1.0, 1.1, 1.4)
"""How much longer the CPU takes to launch a step under AMP, because casts and the gradient scaler add launches."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where most eligible kernel time is FP32 or TF32 and half precision should shorten the step."""
    precisions = tensor_core_precisions(context.compute_capability)
    matrix = context.matrix_launches
    eligible = context.per_step(matrix)
    if not context.product_launches.any() and not time_split(context.view, context.selection).tensor_cores_known:
        return Silent("Which kernels could use Tensor Cores is unknown: their names do not tell.", applicable=False)
    if not eligible:
        return Silent(NOTHING_ELIGIBLE, applicable=False)
    half = context.per_step(matrix & context.in_precision(*HALF_PRECISIONS))
    half_share = percent(half, eligible) or 0.0
    if half_share >= HALF_PRECISION_SHARE_PERCENT:
        return Silent(f"{half_share:.0f} % of the eligible kernel time is in half precision already.")
    if half and context.facts.autocast:
        return Silent(
            f"Autocast is on, and {half_share:.0f} % of the eligible kernel time is in half precision; what stays in "
            "FP32 has a rule of its own (amp_defeated)."
        )

    from_fp32 = context.product_launches & context.in_precision("fp32") & ~context.on_tensor_cores
    from_tf32 = context.product_launches & context.in_precision("tf32", "3xtf32")
    modern = "bf16" in precisions
    estimate = _estimate(context, from_fp32, from_tf32, "bf16" if modern else "fp16")
    if isinstance(estimate, Silent):
        return estimate
    rows = work_rows(context, from_fp32 | from_tf32)
    finding = RULE.finding(
        title=f"{RULE.title_for(context.profile.source)}: {ms(eligible, 1)} of {context.each_step} could run on "
        "Tensor Cores in half precision",
        seen=f"{context.eligible_words} take {ms(eligible)} of kernel time in {context.each_step}; "
        f"{half_share:.0f} % of it is in half precision.",
        readings=[
            Reading(f"Eligible kernel time of {context.each_step}", eligible, "ns"),
            Reading("Of it in half precision", half_share, "percent", HALF_PRECISION_SHARE_PERCENT),
            Reading("Of it in FP32, off the Tensor Cores", context.per_step(from_fp32), "ns"),
            Reading("Of it in TF32", context.per_step(from_tf32), "ns"),
            Reading("Recording" if context.saving_unknown else "Step time", context.step_ns, "ns"),
        ],
        evidence=rows,
        change="Run the forward pass and the loss under torch.autocast. "
        + (
            "BF16 needs no gradient scaler; FP16 does."
            if modern
            else "This GPU's Tensor Cores take FP16, which needs a gradient scaler."
        ),
        code=BF16 if modern else FP16,
        saving=estimate,
        choice="BF16" if modern else "FP16",
    )
    return confirmed_by_kernels(context, finding, "BF16" if modern else "FP16")


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Half precision, by whatever means."""
    mode = precision_mode(candidate)
    return mode.label if mode.precision in HALF and precision_mode(base).precision not in HALF else ""


def _estimate(context: RuleContext, from_fp32: Bools, from_tf32: Bools, half: Precision) -> Saving | str | Silent:
    """What half precision saves, or why that is unknown; silent where it is not worth it."""
    kernels = "Matrix kernels in FP32 and TF32"
    if known := by_forecast(context, half) or why_unknown(context, from_fp32 | from_tf32, kernels):
        return known
    estimate = _by_factors(context, from_fp32, from_tf32)
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(
            f"Half precision should save only {estimate.percent:.1f} % of the step, because the CPU sets the pace: "
            f"it needs {context.simulation.step().host_ns / 1e6:.2f} of the {ms(context.step_ns)}."
        )
    return estimate


def _by_factors(context: RuleContext, from_fp32: Bools, from_tf32: Bools) -> Saving:
    """Where there is no forecast: what matrix kernels should gain. Others gain as often as casts take it back."""
    parts = [
        ("FP32 matrix kernels", from_fp32, thresholds.AMP_MATRIX_FROM_FP32),
        ("TF32 matrix kernels", from_tf32, thresholds.AMP_MATRIX_FROM_TF32),
    ]
    return faster_kernels(
        context,
        [(launches, factor) for _, launches, factor in parts],
        ", ".join(
            f"{ms(context.per_step(launches))} of {name} become {_range(factor)}"
            for name, launches, factor in parts
            if launches.any()
        )
        + f" times as fast; {context.words.casts} make the CPU up to "
        f"{AMP_LAUNCH_OVERHEAD.high:g} times as slow.",
        slower=AMP_LAUNCH_OVERHEAD,
    )


def _range(speedup: SpeedupRange) -> str:
    return f"{speedup.low:g} to {speedup.high:g} (expected {speedup.expected:g})"
