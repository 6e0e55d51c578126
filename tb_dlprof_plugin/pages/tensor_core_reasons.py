"""The reasons of the Tensor Cores page: per op, per reason over all ops, and for work that cannot use them at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, cast

import msgspec
import numpy as np

from tb_dlprof_plugin.advice.finding import SavingItem
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.savings import of_forecast, shorter_step
from tb_dlprof_plugin.advice.thresholds import AMP_MATRIX_FROM_FP32, TF32_MATRIX, SpeedupRange
from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.roofline import largest_gains
from tb_dlprof_plugin.metrics.tensor_core_reasons import OffTime, off_tensor_cores
from tb_dlprof_plugin.model.formatting import shapes_text
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.names.tensor_core_reasons import LABELS, Reason
from tb_dlprof_plugin.pages.columns import Column
from tb_dlprof_plugin.pages.off_tensor_cores import NEVER, with_short_kernel
from tb_dlprof_plugin.planning.candidates import forecasts
from tb_dlprof_plugin.planning.forecast_text import gains
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.change import Change

OffReason = Literal[
    "gpu_has_none", "no_tensor_core_kernel", "dtype", "unknown", "too_small", "amp_off_for_op", "fp32_tf32_off",
    "alignment", "library_choice", "layout", "helpers",
]  # fmt: skip

_FACTORS: dict[str, SpeedupRange] = {"tf32": TF32_MATRIX, "amp": AMP_MATRIX_FROM_FP32}
_REMEDIES = {"tf32": "TF32", "amp": "mixed precision"}
_LAYOUT = "changing layouts"
_HELPERS = "kernels around a product"


class TensorCoreReason(msgspec.Struct, frozen=True):
    """The reason why ``time_ns`` of an op's kernel time is off the Tensor Cores.

    ``saved_ns`` is the kernel time that the switch named by the text should save, with its interval; None where no
    factor is known. Then ``at_most_ns`` bounds what its remedy could save; None where FLOPs or the GPU's rates are
    unknown. ``shapes`` are the inputs of the matrix op with most of the time.
    """

    id: OffReason
    label: str
    text: str
    time_ns: int
    shapes: str
    saved_ns: int | None
    saved_low_ns: int | None
    saved_high_ns: int | None
    at_most_ns: int | None


class ReasonTotal(msgspec.Struct, frozen=True):
    """One reason over all eligible ops; ``percent`` is of the eligible kernel time.

    ``saved_ns`` and ``at_most_ns`` are sums over the ops, of kernel time. An op without a bound counts in
    ``at_most_ns`` with all its time; None where no op has one. A ``remark`` is time of ops that do use Tensor Cores, in
    kernels that serve the product.
    """

    id: OffReason
    label: Annotated[str, Column("Reason", "Why this kernel time is off the Tensor Cores.", missing="–")]
    remark: bool
    ops: Annotated[int, Column("Ops", "Ops for which it is the reason of most time.")]
    time_ns: Annotated[
        int, Column("Time", "Kernel time of eligible ops that is off the Tensor Cores for this reason.", sums=True)
    ]
    percent: Annotated[float | None, Column("Share", "Share of the kernel time of eligible ops.")]
    saved_ns: Annotated[int | None, Column("Should save", "saving", sums=True)]
    at_most_ns: Annotated[int | None, Column("Could save at most", "couldSave", sums=True, terminal=False)]
    text: Annotated[str, Column("Why", "The reason, and what to do.")]


class IneligibleWork(msgspec.Struct, frozen=True):
    """Matrix work that this GPU's Tensor Cores cannot compute, by type of op and reason."""

    id: OffReason
    op_type: Annotated[str, Column("Op type", "opType")]
    ops: Annotated[int, Column("Ops", "Ops of this type.")]
    time_ns: Annotated[int, Column("Time", "Kernel time of these ops.", sums=True)]
    text: Annotated[str, Column("Why", "Why Tensor Cores cannot run them.")]
    label: str


@dataclass(slots=True)
class OpReasons:
    """Reasons of one op by falling time, and the time of helper kernels of its products.

    ``gain_ns`` is the most that the whole op could gain, None where unknown.
    """

    gain_ns: int | None = None
    reasons: list[TensorCoreReason] = field(default_factory=list)
    layout_ns: int = 0
    helpers_ns: int = 0

    @property
    def saved_ns(self) -> int | None:
        """Kernel time that known remedies should save; 0 where nothing is off, None where no remedy is known."""
        savings = [reason.saved_ns for reason in self.reasons if reason.saved_ns is not None]
        if savings:
            return sum(savings)
        return None if self.reasons or self.layout_ns else 0

    @property
    def layout_at_most_ns(self) -> int:
        """What other layouts could save: all the time that changing them takes, and no more than the op could gain."""
        return self.layout_ns if self.gain_ns is None else min(self.layout_ns, self.gain_ns)

    @property
    def at_most_ns(self) -> int | None:
        """Bound of what remedies without a known factor could save; None without such a remedy, or where unknown."""
        bounds = [reason.at_most_ns for reason in self.reasons if reason.saved_ns is None]
        limits = [bound for bound in bounds if bound is not None]
        if len(limits) < len(bounds) or not (bounds or self.layout_ns):
            return None
        together = sum(limits) + self.layout_at_most_ns
        return together if self.gain_ns is None else min(together, self.gain_ns)


def reasons_by_group(view: ProfileView, selection: Selection) -> dict[int, OpReasons]:
    """Of each op group with eligible time off the Tensor Cores; -1 for kernels around which no op was recorded."""
    found: dict[int, OpReasons] = {}
    off = off_tensor_cores(view, selection)
    largest = largest_gains(view, selection)
    forecast = _forecast_shares(view, selection, off.off)
    for item in off.off:
        if item.eligible:
            gain = largest.get(item.group)
            share = forecast.get(item.group) if item.reason.remedy == "tf32" else None
            found.setdefault(item.group, OpReasons(gain)).reasons.append(_reason(item, gain, share))
    for served in off.served:
        op = found.setdefault(served.group, OpReasons(largest.get(served.group)))
        if served.layout:
            op.layout_ns += served.time_ns
        else:
            op.helpers_ns += served.time_ns
    return found


def _forecast_shares(view: ProfileView, selection: Selection, off: list[OffTime]) -> dict[int, float]:
    """By op group, the share of its FP32 time off the Tensor Cores that TF32 saves by the run's forecast."""
    in_tf32 = forecasts(view).get("tf32")
    if in_tf32 is None:
        return {}
    times: dict[int, int] = {}
    for item in off:
        if item.reason.remedy == "tf32":
            times[item.group] = times.get(item.group, 0) + item.time_ns
    return {
        op.group: max(0.0, min(1.0, (op.measured_ns - op.predicted_ns) * selection.count / times[op.group]))
        for op in in_tf32.ops
        # An op without a new precision is not covered by the forecast: its FLOPs are unknown.
        if op.precision and times.get(op.group)
    }


def reason_totals(view: ProfileView, by_group: dict[int, OpReasons], eligible_ns: int) -> list[ReasonTotal]:
    """Reasons over all eligible ops by falling time; remarks last. Times sum to what does not use Tensor Cores."""
    reasons: dict[OffReason, list[TensorCoreReason]] = {}
    ops: dict[OffReason, set[int]] = {}
    for group, op in by_group.items():
        for reason in op.reasons:
            reasons.setdefault(reason.id, []).append(reason)
            ops.setdefault(reason.id, set()).update({group} - {-1})
    result = []
    for id, items in reasons.items():
        time = sum(item.time_ns for item in items)
        saved = [item.saved_ns for item in items if item.saved_ns is not None]
        largest = max(items, key=lambda item: item.time_ns)
        text = largest.text if len({item.text for item in items}) == 1 else f"Most of all: {largest.text}"
        result.append(
            ReasonTotal(
                id, largest.label, False, len(ops[id]), time, percent(time, eligible_ns),
                sum(saved) if saved else None, _bound(items), text,
            )
        )  # fmt: skip
    result.sort(key=lambda total: -total.time_ns)
    return result + _remarks(view, by_group, eligible_ns)


def ineligible_work(view: ProfileView, selection: Selection) -> list[IneligibleWork]:
    """Matrix work that cannot use Tensor Cores, by falling time."""
    strings, groups = view.profile.strings, view.groups
    found: dict[tuple[str, Reason], list[OffTime]] = {}
    for item in off_tensor_cores(view, selection).off:
        # Vector ops are not matrix ops: only reasons from a rule are shown.
        if not item.eligible and item.reason.id in NEVER:
            found.setdefault((strings[groups.op_type[item.group]], item.reason), []).append(item)
    work = [
        IneligibleWork(
            op_type=op_type,
            id=reason.id,
            label=LABELS[reason.id],
            text=reason.text,
            ops=len({item.group for item in items}),
            time_ns=sum(item.time_ns for item in items),
        )
        for (op_type, reason), items in found.items()
    ]
    return sorted(work, key=lambda item: -item.time_ns)


def most_time_off(view: ProfileView, selection: Selection, groups: Bools) -> str:
    """Why most eligible kernel time of these rows of `ProfileView.groups` is off the Tensor Cores; "" if unknown."""
    times: dict[str, int] = {}
    texts: dict[str, Reason] = {}
    for item in off_tensor_cores(view, selection).off:
        if item.eligible and item.group >= 0 and groups[item.group]:
            times[item.reason.id] = times.get(item.reason.id, 0) + item.time_ns
            texts.setdefault(item.reason.id, item.reason)
    return with_short_kernel(texts[max(times, key=lambda id: times[id])]) if times else ""


def step_saving(view: ProfileView, selection: Selection) -> SavingItem | None:
    """What the known remedies together should save per step; None where none is known to save anything.

    Where TF32 is the only one, that is the run's forecast, if there is one.
    """
    repairable = [item for item in off_tensor_cores(view, selection).off if item.eligible and item.reason.remedy]
    if not repairable or not len(view.profile.iterations):
        return None
    times: dict[str, int] = {}
    for item in repairable:
        remedy = str(item.reason.remedy)
        times[remedy] = times.get(remedy, 0) + item.time_ns // selection.count
    context = RuleContext(view, selection)
    forecast = forecasts(view).get("tf32") if set(times) == {"tf32"} else None
    if forecast is not None:
        saving = of_forecast(context, forecast)
        return saving.item if gains(forecast) and not saving.unknown_because else None
    derivation = ", ".join(
        f"{time / 1e6:.2f} ms of kernels become {_FACTORS[remedy].low:g} to {_FACTORS[remedy].high:g} (expected "
        f"{_FACTORS[remedy].expected:g}) times as fast with {_REMEDIES[remedy]}"
        for remedy, time in times.items()
    )
    low, expected, high = (_faster(context, repairable, which) for which in ("low", "expected", "high"))
    saving = shorter_step(context, low, expected, high, f"{derivation}.")
    return None if saving.unknown_because else saving.item


def _faster(context: RuleContext, known: list[OffTime], which: str) -> Change:
    """Remaining share of the matrix kernels off the Tensor Cores of each op, after the remedies of its parts."""
    off = context.matrix_launches & ~context.on_tensor_cores
    # Kernels without an op have the row behind the last op's.
    group = np.where(context.view.launch_group >= 0, context.view.launch_group, len(context.view.groups))
    time = sums(group[off], context.profile.launches.duration_ns[off], len(context.view.groups) + 1)
    gone = np.zeros(len(time))
    for item in known:
        gone[item.group] += item.time_ns * (1 - 1 / getattr(_FACTORS[str(item.reason.remedy)], which))
    stays = np.ones(len(group))
    stays[off] = np.clip(1 - gone / np.maximum(time, 1), 0.0, 1.0)[group[off]]
    return Change(gpu=stays)


def _bound(items: list[TensorCoreReason]) -> int | None:
    """Of all items without a factor together: one whose bound is unknown could at most save its own time."""
    bounded = [item for item in items if item.saved_ns is None]
    if all(item.at_most_ns is None for item in bounded):
        return None
    return sum(item.time_ns if item.at_most_ns is None else item.at_most_ns for item in bounded)


def _reason(item: OffTime, gain_ns: int | None, forecast_share: float | None) -> TensorCoreReason:
    """``forecast_share`` of the time is saved by the run's forecast; None without one."""
    most = None if gain_ns is None else min(item.time_ns, gain_ns)
    factor = _FACTORS.get(item.reason.remedy)
    saved = low = high = None
    if factor:
        low, saved, high = (_saved(item.time_ns, f, most) for f in (factor.low, factor.expected, factor.high))
        if forecast_share is not None:
            forecast = round(item.time_ns * forecast_share)
            saved = forecast if most is None else min(forecast, most)
            low, high = min(low, saved), max(high, saved)
    return TensorCoreReason(
        id=cast(OffReason, item.reason.id),
        label=LABELS[item.reason.id],
        text=with_short_kernel(item.reason),
        time_ns=item.time_ns,
        shapes=shapes_text(item.shapes),
        saved_ns=saved,
        saved_low_ns=low,
        saved_high_ns=high,
        at_most_ns=None if factor else most,
    )


def _saved(time_ns: int, factor: float, most_ns: int | None) -> int:
    """By the factor, and no more than the GPU allows."""
    saved = round(time_ns * (1 - 1 / factor))
    return saved if most_ns is None else min(saved, most_ns)


def _remarks(view: ProfileView, by_group: dict[int, OpReasons], eligible_ns: int) -> list[ReasonTotal]:
    layout = {group: op.layout_ns for group, op in by_group.items() if op.layout_ns}
    helpers = {group: op.helpers_ns for group, op in by_group.items() if op.helpers_ns}
    layout_at_most = sum(op.layout_at_most_ns for op in by_group.values())
    advice = (
        "although the model is in channels_last."
        if view.profile.facts.channels_last
        else "which the memory format torch.channels_last of model and input avoids."
    )
    texts: tuple[tuple[OffReason, str, str, dict[int, int], int | None], ...] = (
        ("layout", _LAYOUT, f"Ops on Tensor Cores turn NCHW into NHWC and back, {advice}", layout, layout_at_most),
        ("helpers", _HELPERS, "Ops on Tensor Cores prepare the product or add up its parts.", helpers, None),
    )
    return [
        ReasonTotal(id, label, True, len(times.keys() - {-1}), whole, percent(whole, eligible_ns), None, at_most, text)
        for id, label, text, times, at_most in texts
        if (whole := sum(times.values()))
    ]
