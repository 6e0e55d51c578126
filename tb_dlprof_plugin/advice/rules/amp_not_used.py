"""Matrix work in FP32 or TF32 on a GPU whose Tensor Cores take half precision: AMP is not used."""

from __future__ import annotations

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.case import HALF_PRECISIONS, Case
from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.finding import Peer, Reading, Reference, Silent
from tb_dlprof_plugin.advice.remedies import BF16, FP16
from tb_dlprof_plugin.advice.rule import Finding, Rule
from tb_dlprof_plugin.advice.savings import Saving, faster_kernels, of_forecast
from tb_dlprof_plugin.comparison.forecast_words import gains, headline
from tb_dlprof_plugin.comparison.forecasts import forecasts
from tb_dlprof_plugin.frame import Frame
from tb_dlprof_plugin.kernels.eligibility import tensor_core_precisions
from tb_dlprof_plugin.measures.iterations import percent
from tb_dlprof_plugin.measures.precision_mode import precision_mode
from tb_dlprof_plugin.measures.precision_signals import HALF
from tb_dlprof_plugin.storage.model import Bools, Role

RULE = Rule(
    id="amp_not_used",
    title="Automatic mixed precision is not used",
    looks_for="Matrix products, convolutions and attention in FP32 or TF32 on a GPU whose Tensor Cores take half "
    "precision, where a forecast says that autocast shortens the step.",
    why="Tensor Cores multiply FP16 and BF16 many times as fast as the other units multiply FP32, and half the bytes "
    "move. But autocast adds casts and CPU work: a step that the CPU paces gets longer by it. So the rule asks "
    "the [forecast](../forecast.md) of the run first, and speaks only where it says that the step gets shorter by "
    "3 % or more.",
    fix="Run the forward pass and the loss under `torch.autocast`; with FP16 add a `GradScaler`.",
    ignore_when="The model needs FP32 (check the loss), or the run is about something else than speed.",
    thresholds=(
        "HALF_PRECISION_SHARE_PERCENT",
        "WORTHWHILE_SAVING_PERCENT",
        "AMP_MATRIX_FROM_FP32",
        "AMP_MATRIX_FROM_TF32",
        "AMP_OTHER",
        "AMP_LAUNCH_OVERHEAD",
    ),
    peers=(
        Peer("DLProf", "AMP Detector"),
        Peer("torch-tb-profiler", "Tensor Cores recommendation"),
    ),
    references=(
        Reference("PyTorch: automatic mixed precision", "https://docs.pytorch.org/docs/stable/amp.html"),
        Reference(
            "Daydream: estimating the gain of AMP",
            "https://www.usenix.org/conference/atc20/presentation/zhu-hongyu",
        ),
    ),
    facts=("precision",),
)


def check(case: Case) -> Finding | Silent:
    """Fires where most eligible kernel time is FP32 or TF32 and half precision should shorten the step."""
    if not case.profile.has_gpu:
        return Silent("The run used no GPU.", applicable=False)
    precisions = tensor_core_precisions(case.compute_capability)
    if not precisions:
        return Silent("The GPU has no Tensor Cores, or its compute capability was not recorded.", applicable=False)
    matrix = case.kernel_launches & case.frame.launch_in_matrix_op
    eligible = case.per_step(matrix)
    if not eligible:
        return Silent("No op could use Tensor Cores.", applicable=False)
    half = case.per_step(matrix & case.in_precision(*HALF_PRECISIONS))
    half_share = percent(half, eligible) or 0.0
    if half_share >= thresholds.HALF_PRECISION_SHARE_PERCENT:
        return Silent(f"{half_share:.0f} % of the eligible kernel time is in half precision already.")
    if half and case.facts.autocast:
        return Silent(
            f"Autocast is on, and {half_share:.0f} % of the eligible kernel time is in half precision; what stays in "
            "FP32 has a rule of its own (amp_defeated)."
        )

    from_fp32 = matrix & case.in_precision("fp32") & ~case.on_tensor_cores
    from_tf32 = matrix & case.in_precision("tf32", "3xtf32")
    others = (
        case.kernel_launches
        & ~case.frame.launch_in_matrix_op
        & case.in_role(Role.FORWARD, Role.BACKWARD)
        & case.in_precision("fp32")
    )
    modern = "bf16" in precisions
    found = forecasts(case.frame).get("bf16" if modern else "fp16")
    if found is not None:
        estimate = of_forecast(case, found)
        if not gains(found):
            return Silent(f"Forecast: {headline(found)}")
    else:
        estimate = _by_factors(case, from_fp32, from_tf32, others)
        if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
            return Silent(
                f"Half precision should save only {estimate.percent:.1f} % of the step, because the CPU sets the pace: "
                f"it needs {case.simulation.step().host_ns / 1e6:.2f} of the {case.step_ns / 1e6:.2f} ms."
            )
    rows = op_rows(case, from_fp32 | from_tf32)
    return RULE.finding(
        title=f"Automatic mixed precision is not used: {eligible / 1e6:.1f} ms of each step could run on Tensor Cores "
        "in half precision",
        seen=f"Ops that can use Tensor Cores take {eligible / 1e6:.2f} ms of kernel time a step; "
        f"{half_share:.0f} % of it is in half precision.",
        readings=[
            Reading("Eligible kernel time per step", eligible, "ns"),
            Reading("Of it in half precision", half_share, "percent", thresholds.HALF_PRECISION_SHARE_PERCENT),
            Reading("Of it in FP32, off the Tensor Cores", case.per_step(from_fp32), "ns"),
            Reading("Of it in TF32", case.per_step(from_tf32), "ns"),
            Reading("Step time", case.step_ns, "ns"),
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
        group="precision",
        confirm="Record a run with autocast and open Compare: the step should be shorter by the amount given, and the "
        "ops listed should use Tensor Cores in FP16 or BF16.",
    )


def made(base: Frame, candidate: Frame) -> str:
    """Half precision, by whatever means."""
    mode = precision_mode(candidate)
    return mode.label if mode.precision in HALF and precision_mode(base).precision not in HALF else ""


def _by_factors(case: Case, from_fp32: Bools, from_tf32: Bools, others: Bools) -> Saving:
    """Where there is no forecast: what kernels of each kind should gain."""
    parts = [
        ("FP32 matrix kernels", from_fp32, thresholds.AMP_MATRIX_FROM_FP32),
        ("TF32 matrix kernels", from_tf32, thresholds.AMP_MATRIX_FROM_TF32),
        ("other FP32 kernels", others, thresholds.AMP_OTHER),
    ]
    return faster_kernels(
        case,
        [(launches, factor) for _, launches, factor in parts],
        ", ".join(
            f"{case.per_step(launches) / 1e6:.2f} ms of {name} become {_range(factor)}"
            for name, launches, factor in parts
            if launches.any()
        )
        + " times as fast; casts and the gradient scaler make the CPU up to "
        f"{thresholds.AMP_LAUNCH_OVERHEAD.high:g} times as slow.",
        slower=thresholds.AMP_LAUNCH_OVERHEAD,
    )


def _range(speedup: thresholds.Speedup) -> str:
    return f"{speedup.low:g} to {speedup.high:g} (expected {speedup.expected:g})"
