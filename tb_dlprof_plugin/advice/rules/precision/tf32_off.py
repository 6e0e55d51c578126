"""TF32 is not used for FP32 matrix work.

Products of FP32 matrices and FP32 convolutions off the Tensor Cores on a GPU that has TF32. TF32 is off for their kind:
`torch.backends.cuda.matmul.allow_tf32` for products, `torch.backends.cudnn.allow_tf32` for convolutions and recurrent
layers. A kernel that ran in TF32 shows that the switch of its kind is on.

Why it matters: TF32 reads FP32 numbers, rounds them to 10 bits of mantissa and multiplies on Tensor Cores. It needs
no change of the model. PyTorch leaves it off for matrix products by default.

What to change: Allow TF32 in matrix products and convolutions.

When to leave it: Products need all 23 bits of mantissa (ill-conditioned linear algebra), or mixed precision comes
next anyway.

To confirm: Record a run with TF32 on and open Compare: the ops listed should use Tensor Cores in TF32.

In other tools:
- PyTorch: FP32MatMulPattern

Read on:
- [PyTorch: TF32 on Ampere and later](https://docs.pytorch.org/docs/stable/notes/cuda.html#tf32-on-ampere)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.code_snippets import TF32
from tb_dlprof_plugin.advice.evidence import confirmed_by_kernels, work_rows
from tb_dlprof_plugin.advice.finding import Reference
from tb_dlprof_plugin.advice.frameworks import JAX_PRECISION, TRT_PRECISION, FrameworkRemedy
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import Saving, by_forecast, faster_kernels, why_unknown
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.run_setup import precision_of
from tb_dlprof_plugin.metrics.tensor_core_reasons import launch_of_cudnn, run_settings
from tb_dlprof_plugin.model.frameworks import JAX, ONNXRUNTIME, TENSORFLOW, TENSORRT
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.profile_view import ProfileView

_TF32 = ("tf32", "tf32-partly", "tf32-allowed")

_REMEDIES = {
    JAX: FrameworkRemedy(
        "Allow TF32: inputs keep FP32's range, products are rounded to 10 bits of mantissa. Where the run asks for "
        '"highest" or "float32", drop that.',
        'jax.config.update("jax_default_matmul_precision", "tensorfloat32")\n',
        (JAX_PRECISION,),
    ),
    TENSORFLOW: FrameworkRemedy(
        "Allow TF32, which is on unless it was switched off.",
        "tf.config.experimental.enable_tensor_float_32_execution(True)\n",
        (
            Reference(
                "TensorFlow: enable_tensor_float_32_execution",
                "https://www.tensorflow.org/api_docs/python/tf/config/experimental/enable_tensor_float_32_execution",
            ),
        ),
    ),
    TENSORRT: FrameworkRemedy(
        "Build the engine without --noTF32, on a GPU that has TF32.",
        "trtexec --onnx=model.onnx --saveEngine=model.engine\n",
        (TRT_PRECISION,),
    ),
    ONNXRUNTIME: FrameworkRemedy(
        "Allow TF32 in the CUDA provider.",
        'providers = [("CUDAExecutionProvider", {"use_tf32": 1})]\n',
        (
            Reference(
                "ONNX Runtime: CUDA execution provider",
                "https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html",
            ),
        ),
    ),
}
"""In the words of other frameworks and recorders."""

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU, Need.TF32),
    without_steps=True,
    thresholds=("WORTHWHILE_SAVING_PERCENT", "TF32_MATRIX"),
    group="precision",
    facts=("precision",),
    remedies=_REMEDIES,
)


def check(context: RuleContext) -> Finding | Silent:
    """Fires where products run in FP32 although the GPU has TF32, and TF32 is off for products of their kind."""
    settings = run_settings(context.view)
    of_cudnn = launch_of_cudnn(context.view)
    # Fused attention in FP32 ignores the switches. If a switch is on and a product is in FP32, the library chose so.
    heeds_matmul = ~of_cudnn & ~_in_attention(context)
    off = (of_cudnn & (settings.cudnn_tf32 is not True)) | (heeds_matmul & (settings.matmul_tf32 is not True))
    launches = context.product_launches & context.in_precision("fp32") & context.off_tensor_cores & off
    if settings.matmul_tf32 and settings.cudnn_tf32:
        return Silent("TF32 is on for matrix products and for cuDNN.")
    if not launches.any():
        return Silent("No product runs in FP32 for which TF32 is off.")
    time = context.per_step(launches)
    share = percent(time, context.step_ns) or 0.0
    estimate = _estimate(context, launches)
    if isinstance(estimate, Silent):
        return estimate
    saved = None if isinstance(estimate, str) else estimate.percent
    recorded = (settings.matmul_tf32, settings.cudnn_tf32) != (None, None) or context.of_pytorch
    switches = " TF32: " + ", ".join(
        f"{name} is {'not recorded' if value is None else 'on' if value else 'off'}"
        for name, value in (("matmul", settings.matmul_tf32), ("cuDNN", settings.cudnn_tf32))
    )
    finding = RULE.finding(
        title=f"TF32 is not used: {ms(time, 1)} of FP32 matrix kernels in {context.each_step} run off the Tensor Cores",
        seen=("No op was recorded around them: by their names, " if context.by_kernels else "")
        + f"FP32 matrix kernels off the Tensor Cores take {ms(time)} of {context.each_step} ({share:.0f} %)."
        + (f"{switches}." if recorded else ""),
        readings=[
            Reading(f"FP32 matrix kernels off the Tensor Cores, of {context.each_step}", time, "ns"),
            Reading("Share of the step", share, "percent"),
            Reading("Expected saving", saved, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=work_rows(context, launches),
        change="Allow TF32: inputs keep FP32's range, products are rounded to 10 bits of mantissa. No other change is "
        "needed. Mixed precision gains more, and the two savings do not add up.",
        code=TF32,
        saving=estimate,
        choice="TF32",
    )
    return confirmed_by_kernels(context, finding, "TF32")


def _estimate(context: RuleContext, launches: Bools) -> Saving | str | Silent:
    """What TF32 saves on these launches, or why that is unknown; silent where it is not worth it."""
    if known := by_forecast(context, "tf32") or why_unknown(context, launches, "FP32 matrix kernels"):
        return known
    time = context.per_step(launches)
    share = percent(time, context.step_ns) or 0.0
    estimate = faster_kernels(
        context,
        [(launches, thresholds.TF32_MATRIX)],
        f"{ms(time)} of FP32 matrix kernels become {thresholds.TF32_MATRIX.low:g} to "
        f"{thresholds.TF32_MATRIX.high:g} (expected {thresholds.TF32_MATRIX.expected:g}) times as fast.",
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"FP32 matrix kernels take {share:.1f} % of the step; TF32 should save {estimate.percent:.1f} %.")
    return estimate


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """TF32, wholly or in part."""
    return "TF32 on" if precision_of(candidate) in _TF32 and precision_of(base) not in _TF32 else ""


def _in_attention(context: RuleContext) -> Bools:
    kernels, strings = context.profile.kernels, context.profile.strings
    attention = [strings[i] == "attention" for i in kernels.family.tolist()]
    return np.array(attention, dtype=np.bool_)[context.profile.launches.kernel]
