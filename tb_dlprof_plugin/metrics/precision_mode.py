"""Recognises the precision of a run, and the means (autocast, Apex ...), from its kernels and ops, not from its
settings.

The precision is that of most matrix work; the means (autocast, a model cast to half, Apex, Transformer Engine ...) is
read off the signals that each leaves in a trace (`precision_signals`), and from the hook's facts where the trace leaves
it open. Contradicting settings are listed as disagreements.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from tb_dlprof_plugin.metrics.parallel_settings import FULLY_SHARDED, parallel_settings
from tb_dlprof_plugin.metrics.precision_signals import HALF, Signals, precision_signals
from tb_dlprof_plugin.model.dtypes import dtype_named
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.names.tensor_core_eligibility import tensor_core_precisions
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

Means = Literal[
    "autocast", "apex_o1", "apex_o2", "apex_o3", "cast_model", "compiled", "fsdp", "casts", "transformer_engine",
    "scaled_mm", "",
]  # fmt: skip

_DOMINANT = 0.5
"""The precision with more than half of the matrix time is that of the run, and a sign counts where most ops show it."""
_WORTH_NAMING_PERCENT = 10
"""An FP32 run with that much matrix time in another precision says so in its label: torch allows TF32 in cuDNN."""
_NAMED_PRECISIONS: tuple[tuple[str, frozenset[str]], ...] = (
    ("fp32", frozenset({"fp32", "float32", "o0"})),
    ("tf32", frozenset({"tf32"})),
    ("fp16", frozenset({"fp16", "float16", "half"})),
    ("bf16", frozenset({"bf16", "bfloat16"})),
    ("fp8", frozenset({"fp8", "float8"})),
)
_NAMED_MIXED = frozenset({"amp", "autocast", "mixed", "apex", "o1", "o2", "o3"})
_WORDS = re.compile(r"[^a-z0-9]+")
_APEX_MEANS: dict[str, Means] = {"O1": "apex_o1", "O2": "apex_o2", "O3": "apex_o3"}
_APEX_LEVELS = {means: level for level, means in _APEX_MEANS.items()}


@dataclass(frozen=True, slots=True)
class Share:
    """Matrix time in one precision ("" for unknown); of all matrix time in percent."""

    precision: str
    ns: int
    percent: float


@dataclass(frozen=True, slots=True)
class Region:
    """An op of the model that ran in another precision than the run: its time in it, in percent of all matrix time."""

    module: str
    op_type: str
    precision: str
    ns: int
    percent: float


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A setting that contradicts what the run did. ``declared`` names it: "autocast", "autocast_dtype", "name" ..."""

    declared: str
    value: str


@dataclass(frozen=True, slots=True)
class PrecisionMode:
    """What a run computed in.

    Attributes:
        label: for people, such as "AMP FP16 (autocast)"; "" if unknown.
        precision: "fp32", "tf32", "fp16" ..., "mixed" where none has most of the matrix time, "" for unknown.
        means: how it came to that precision; "" where that is unknown, and for FP32, TF32 and FP64.
        shares: by falling time.
        regions: ops whose matrix work ran mostly in another known precision, by falling time.
        loss_scaling: whether the loss was scaled; None for unknown.
        disagreements: contradicting settings.
        signals: the counts behind all this.
    """

    label: str
    precision: str
    means: Means
    shares: tuple[Share, ...]
    regions: tuple[Region, ...]
    loss_scaling: bool | None
    disagreements: tuple[Disagreement, ...]
    signals: Signals


def precision_mode(view: ProfileView) -> PrecisionMode:
    """The precision of the whole recording; the same for every selection."""
    return _of_recording(view, Selection(0, len(view.profile.iterations) - 1))


@per_selection
def _of_recording(view: ProfileView, _: Selection) -> PrecisionMode:
    signals, facts = precision_signals(view), view.profile.facts
    shares = _shares(signals)
    precision = "fp8" if _fp8_products(signals) else _dominant(shares)
    means = _means(precision, signals, facts, parallel_settings(view).wrapper)
    return PrecisionMode(
        label=_label(precision, means, shares),
        precision=precision,
        means=means,
        shares=shares,
        regions=_regions(precision, signals),
        loss_scaling=_loss_scaling(precision, means, signals, facts),
        disagreements=_disagreements(view, precision, means, signals),
        signals=signals,
    )


def named_otherwise(name: str, mode: PrecisionMode) -> bool:
    """Whether a run's name contains a precision or mixed precision, and the run did something else. Only whole words
    count: "resnet50/amp-bf16" contains AMP and BF16, "sample" does not. An unknown mode contradicts no name.
    """
    words = frozenset(_WORDS.split(name.lower()))
    named = {precision for precision, synonyms in _NAMED_PRECISIONS if synonyms & words}
    if mode.precision in ("", "mixed") or not (named or words & _NAMED_MIXED):
        return False
    if named & {"fp16", "bf16", "fp8"}:
        # "fp32-vs-amp" and the like name both sides.
        return mode.precision not in named
    if words & _NAMED_MIXED:
        return mode.precision not in (*HALF, "fp8")
    if named == {"tf32"}:
        return mode.precision != "tf32" and not _ran(mode.signals, "tf32")
    return mode.precision not in named


def _ran(signals: Signals, *precisions: str) -> bool:
    return any(part.precision in precisions for part in signals.parts)


def precision_name(precision: str) -> str:
    """ "FP16" for "fp16", "3xTF32" for "3xtf32", "unknown precision" for ""."""
    return precision.upper().replace("3X", "3x") or "unknown precision"


def _shares(signals: Signals) -> tuple[Share, ...]:
    times: Counter[str] = Counter()
    for part in signals.parts:
        times[part.precision] += part.ns
    whole = sum(times.values())
    return tuple(Share(precision, ns, 100.0 * ns / whole) for precision, ns in times.most_common() if ns)


def _fp8_products(signals: Signals) -> bool:
    """Whether most products are FP8: Transformer Engine leaves attention in 16 bit, however long it takes."""
    return signals.product_ns.get("fp8", 0) > _DOMINANT * sum(signals.product_ns.values())


def _dominant(shares: tuple[Share, ...]) -> str:
    # Attention kernels give FP32's accuracy by three TF32 products for any setting of the TF32 switches: they are not
    # evidence.
    counted = [share for share in shares if share.precision != "3xtf32"]
    if not any(share.precision for share in counted):
        return "fp32" if len(counted) < len(shares) and not counted else ""
    whole = sum(share.ns for share in counted)
    unknown = sum(share.ns for share in counted if not share.precision)
    if counted[0].ns > _DOMINANT * whole:
        return counted[0].precision
    # Where the unknown part could decide, the precision of the whole is unknown.
    return "" if unknown and counted[0].ns + unknown > _DOMINANT * whole else "mixed"


def _means(precision: str, signals: Signals, facts: RunFacts, wrapper: str | None) -> Means:
    if precision == "fp8":
        engine = signals.transformer_engine_ops or signals.transformer_engine_kernels
        return "transformer_engine" if engine else ("scaled_mm" if signals.scaled_products else "")
    if precision not in HALF:
        return ""
    half_model = _half_model(signals, facts)
    if signals.wrapped_ops > _DOMINANT * signals.half_ops and not half_model:
        return "autocast"
    if precision == "fp16" and (apex := _apex_means(signals, facts, half_model)):
        return apex
    if half_model:
        return "cast_model"
    if signals.compiled_kernels:
        # Casts in compiled code: FP32 weights show that there are some.
        return "compiled" if half_model is False else ""
    if signals.cast_weights > _DOMINANT * signals.half_weights:
        return "casts"
    if half_model is False and wrapper in FULLY_SHARDED:
        return "fsdp"
    return ""


def _half_model(signals: Signals, facts: RunFacts) -> bool | None:
    """Whether the model's weights are FP16 or BF16: from the hook's facts, else by whether they were cast from FP32."""
    dtypes = set(facts.parameter_dtypes)
    if dtypes & {"float16", "bfloat16"}:
        return True
    if "float32" in dtypes:
        return False
    if not signals.half_weights or signals.compiled_kernels:
        return None
    return signals.cast_weights <= _DOMINANT * signals.half_weights


def _apex_means(signals: Signals, facts: RunFacts, half_model: bool | None) -> Means:
    """Apex' opt_level: from the hook's facts, else by what its kernels convert.

    O2 copies FP16 gradients to FP32 masters and the masters back to FP16 weights; O1 unscales FP32 gradients in place.
    O3 scales by 1, so that no kernel of Apex' runs: without the hook it is indistinguishable from ``model.half()``.
    """
    if facts.apex_opt_level is not None:
        level = _APEX_MEANS.get(facts.apex_opt_level, "")
        return level if (level == "apex_o1") == (not half_model) else ""
    if not signals.apex or signals.gradscaler_ops:
        return ""
    to_master = signals.apex.get(("fp16", "fp32"), 0) + signals.apex.get(("fp32", "fp16"), 0)
    if half_model:
        return "apex_o2" if to_master else ""
    return "apex_o1" if signals.cast_weights > _DOMINANT * signals.half_weights else ""


def _label(precision: str, means: Means, shares: tuple[Share, ...]) -> str:
    name = precision.upper()
    other = next((share for share in shares if share.precision not in ("", "3xtf32", precision)), None)
    if precision == "fp32" and other is not None and other.percent >= _WORTH_NAMING_PERCENT:
        return f"FP32 with {other.percent:.0f} % {other.precision.upper()}"
    if precision == "mixed":
        named = [f"{precision_name(share.precision)} {share.percent:.0f} %" for share in shares if share.precision]
        return f"Mixed ({', '.join(named)})"
    if means == "cast_model":
        return f"{name} model"
    if means == "apex_o3":
        return f"{name} model (Apex O3)"
    if means in _APEX_LEVELS:
        return f"AMP {name} (Apex {_APEX_LEVELS[means]})"
    texts = {
        "autocast": f"AMP {name} (autocast)",
        "compiled": f"AMP {name} (torch.compile)",
        "fsdp": f"AMP {name} (FSDP)",
        "casts": f"AMP {name} (casts in the model)",
        "transformer_engine": "FP8 (Transformer Engine)",
        "scaled_mm": "FP8 (torch._scaled_mm)",
    }
    return texts.get(means, name)


def _regions(precision: str, signals: Signals) -> tuple[Region, ...]:
    if precision in ("", "mixed"):
        return ()
    whole = sum(part.ns for part in signals.parts)
    by_op: dict[tuple[str, str], Counter[str]] = {}
    for part in signals.parts:
        if part.module or part.op_type:
            by_op.setdefault((part.module, part.op_type), Counter())[part.precision] += part.ns
    regions = []
    for (module, op_type), times in by_op.items():
        most, ns = times.most_common(1)[0]
        if most not in ("", precision) and (precision, most) != ("fp32", "3xtf32"):
            regions.append(Region(module, op_type, most, ns, 100.0 * ns / whole))
    return tuple(sorted(regions, key=lambda region: (-region.ns, region.module, region.op_type)))


def _loss_scaling(precision: str, means: Means, signals: Signals, facts: RunFacts) -> bool | None:
    if facts.grad_scaler or signals.gradscaler_ops:
        return True
    if facts.apex_opt_level is not None and facts.grad_scaler_scale is not None:
        return facts.grad_scaler_scale != 1.0
    if means in ("apex_o1", "apex_o2") and signals.apex:
        return True
    if facts.grad_scaler is False and not signals.apex:
        return False
    # GradScaler leaves its ops in every step. In FP16 the loss may be scaled by hand; in other precisions it is not.
    return False if signals.optimizer_steps and precision not in ("", "fp16", "fp8", "mixed") else None


def _disagreements(view: ProfileView, precision: str, means: Means, signals: Signals) -> tuple[Disagreement, ...]:
    facts = view.profile.facts
    if precision == "":
        return ()
    differing = []
    any_half = _ran(signals, *HALF)
    dtype = dtype_named(facts.autocast_dtype or "").precision
    if facts.autocast and not any_half:
        differing.append(Disagreement("autocast", facts.autocast_dtype or ""))
    elif facts.autocast and precision in HALF and dtype in HALF and dtype != precision:
        differing.append(Disagreement("autocast_dtype", facts.autocast_dtype or ""))
    elif facts.autocast is False and means == "autocast":
        differing.append(Disagreement("autocast_off", ""))
    if set(facts.parameter_dtypes) & {"float16", "bfloat16"} and not any_half and precision != "fp8":
        differing.append(Disagreement("parameters", ", ".join(facts.parameter_dtypes)))
    if facts.apex_opt_level in _APEX_MEANS and not any_half:
        differing.append(Disagreement("apex", facts.apex_opt_level or ""))
    if (facts.grad_scaler or signals.gradscaler_ops) and not _ran(signals, "fp16"):
        differing.append(Disagreement("grad_scaler", ""))
    if signals.transformer_engine_ops and not _ran(signals, "fp8"):
        differing.append(Disagreement("transformer_engine", ""))
    allowed = facts.matmul_allow_tf32 and facts.cudnn_allow_tf32
    if (
        precision == "fp32"
        and allowed
        and not _ran(signals, "tf32")
        and "tf32" in tensor_core_precisions(view.tensor_core_capability)
    ):
        differing.append(Disagreement("tf32", ""))
    if facts.run_name:
        mode = PrecisionMode("", precision, means, (), (), None, (), signals)
        if named_otherwise(facts.run_name, mode):
            differing.append(Disagreement("name", facts.run_name))
    return tuple(differing)
