"""FP32 matrix work off the Tensor Cores on a GPU that has TF32, with the switches off."""

from __future__ import annotations

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.finding import FindingItem, Reading, Reference, Silent
from tb_dlprof_plugin.advice.remedies import TF32
from tb_dlprof_plugin.advice.savings import faster_kernels, of_forecast, severity
from tb_dlprof_plugin.comparison.forecast_words import gains, headline
from tb_dlprof_plugin.comparison.forecasts import forecasts
from tb_dlprof_plugin.kernels.eligibility import tensor_core_precisions
from tb_dlprof_plugin.measures.iterations import percent

RULE = "tf32_off"
TITLE = "TF32 is not used for FP32 matrix work"


def check(case: Case) -> FindingItem | Silent:
    """Fires where FP32 matrix kernels run off the Tensor Cores although the GPU has TF32 and a switch is off."""
    if not case.profile.has_gpu:
        return Silent("The run used no GPU.", applicable=False)
    if "tf32" not in tensor_core_precisions(case.compute_capability):
        return Silent("The GPU has no TF32, or its compute capability was not recorded.", applicable=False)
    facts = case.facts
    if facts.matmul_allow_tf32 and facts.cudnn_allow_tf32:
        return Silent("TF32 is on for matrix products and for cuDNN.")
    launches = case.kernel_launches & case.frame.launch_in_matrix_op & case.in_precision("fp32") & ~case.on_tensor_cores
    time = case.per_step(launches)
    share = percent(time, case.step_ns) or 0.0
    found = forecasts(case.frame).get("tf32")
    if found is not None:
        estimate = of_forecast(found)
        if not gains(found):
            return Silent(f"Forecast: {headline(found)}")
    else:
        estimate = faster_kernels(
            case,
            [(time, thresholds.TF32_MATRIX)],
            f"{time / 1e6:.2f} ms of FP32 matrix kernels become {thresholds.TF32_MATRIX.low:g} to "
            f"{thresholds.TF32_MATRIX.high:g} (expected {thresholds.TF32_MATRIX.expected:g}) times as fast.",
        )
        if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
            return Silent(
                f"FP32 matrix kernels take {share:.1f} % of the step; TF32 should save {estimate.percent:.1f} %."
            )
    switches = ", ".join(
        f"{name} is {'not recorded' if value is None else 'on' if value else 'off'}"
        for name, value in (("matmul", facts.matmul_allow_tf32), ("cuDNN", facts.cudnn_allow_tf32))
    )
    return FindingItem(
        id=RULE,
        rule=RULE,
        severity=severity(estimate),
        title=f"TF32 is not used: {time / 1e6:.1f} ms of FP32 matrix kernels in each step run off the Tensor Cores",
        seen=f"FP32 matrix kernels off the Tensor Cores take {time / 1e6:.2f} ms a step ({share:.0f} %). "
        f"TF32: {switches}.",
        readings=[
            Reading("FP32 matrix kernels off the Tensor Cores, per step", time, "ns"),
            Reading("Share of the step", share, "percent"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=op_rows(case, launches),
        change="Allow TF32: inputs keep FP32's range, products are rounded to 10 bits of mantissa. No other change is "
        "needed. Mixed precision gains more, and the two savings do not add up.",
        code=TF32,
        saving=estimate,
        saving_unknown_because="",
        confirm="Record a run with TF32 on and open Compare: the ops listed should use Tensor Cores in TF32.",
        references=[
            Reference(
                "PyTorch: TF32 on Ampere and later",
                "https://docs.pytorch.org/docs/stable/notes/cuda.html#tf32-on-ampere",
            )
        ],
        dlprof_name="",
    )
