"""One run as the Compare page reads it, and its measures with those of another run."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from tb_dlprof_plugin.metrics.iterations import StepTotals, percent, step_totals
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.columns import Quantity
from tb_dlprof_plugin.pages.common import SelectedRange, Slice, run_title, selected_range
from tb_dlprof_plugin.pages.compare_text import (
    recorded_text,
)
from tb_dlprof_plugin.pages.overview import CATEGORIES
from tb_dlprof_plugin.pages.quantities import (
    GPU_BUSY,
    GPU_BUSY_TIME,
    JOULES,
    JOULES_PER_SAMPLE,
    KERNEL_TIME,
    LAUNCHES,
    MEMORY_TIME,
    PEAK_ALLOCATED,
    PEAK_RESERVED,
    RECORDED_STEP,
    SAMPLES,
    STEP,
    TENSOR_CORE_TIME,
    TENSOR_CORE_UTILIZATION,
    WATTS,
)
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.estimate import StepEstimate, step_estimate
from tb_dlprof_plugin.store.header import header_of
from tb_dlprof_plugin.store.run_ref import RunRef

_Unit = Literal["ns", "percent", "count", "bytes", "per_second", "joules", "watts"]


_Better = Literal["lower", "higher", ""]
_ENERGY = ("joules_per_step", "joules_per_sample", "watts")
_WITHOUT_GPU = ("step_time", "recorded_step", "samples_per_second")


class CompareSide(msgspec.Struct, frozen=True):
    """One of the two runs; ``step_text`` gives the source of its step and the recorder's overhead."""

    ref: RunRef
    title: str
    precision: str
    model: str
    device: str
    range: SelectedRange
    step_text: str


class CompareMetric(msgspec.Struct, frozen=True):
    """One measure of both runs; ``ratio`` is a / b for times (above 1: b is faster), None where either is unknown.

    ``gain`` is the factor by which b is better, above 1 for better with any measure: a / b where lower is better and
    b / a where higher is. None where neither is better, a side is unknown or the divisor is 0.
    """

    key: str
    label: str
    unit: _Unit
    a: float | None
    b: float | None
    ratio: float | None
    gain: float | None
    better: _Better


class CompareInput:
    """One run with everything the page needs of it."""

    def __init__(self, view: ProfileView, ref: RunRef, selection: Selection) -> None:
        self.view, self.ref, self.selection = view, ref, selection
        self.steps: StepTotals = step_totals(view, selection)
        self.step: StepEstimate = step_estimate(view, selection)

    def side(self) -> CompareSide:
        return struct_from(
            CompareSide,
            header_of(self.view.profile),
            ref=self.ref,
            title=run_title(self.view),
            range=selected_range(self.view, self.selection),
            step_text=recorded_text(self.step),
        )

    def categories(self) -> list[Slice]:
        count, step = self.selection.count, self.steps.average_ns
        per_step = {name: None if value is None else value // count for name, value in self.steps.category_ns.items()}
        return [Slice(name, CATEGORIES[name][0], value, percent(value, step)) for name, value in per_step.items()]


class Metric(NamedTuple):
    """A quantity of both runs, its unit and the better direction."""

    quantity: Quantity
    unit: _Unit
    better: _Better


METRICS: dict[str, Metric] = {
    "step_time": Metric(STEP, "ns", "lower"),
    "recorded_step": Metric(RECORDED_STEP, "ns", ""),
    "gpu_busy": Metric(GPU_BUSY_TIME, "ns", "lower"),
    "kernel_time": Metric(KERNEL_TIME, "ns", "lower"),
    "tensor_core_time": Metric(TENSOR_CORE_TIME, "ns", ""),
    "memory_time": Metric(MEMORY_TIME, "ns", "lower"),
    "kernel_calls": Metric(LAUNCHES, "count", "lower"),
    "gpu_utilization": Metric(GPU_BUSY, "percent", "higher"),
    "tensor_core_utilization": Metric(TENSOR_CORE_UTILIZATION, "percent", "higher"),
    "samples_per_second": Metric(SAMPLES, "per_second", "higher"),
    "peak_memory": Metric(PEAK_ALLOCATED, "bytes", "lower"),
    "peak_memory_reserved": Metric(PEAK_RESERVED, "bytes", "lower"),
    "joules_per_step": Metric(JOULES, "joules", "lower"),
    "joules_per_sample": Metric(JOULES_PER_SAMPLE, "joules", "lower"),
    "watts": Metric(WATTS, "watts", ""),
}
"""By key, in the order of the table."""


def metrics_of(a: CompareInput, b: CompareInput) -> list[CompareMetric]:
    has_gpu = a.view.profile.has_gpu or b.view.profile.has_gpu
    steps_known = not (a.step.whole_recording or b.step.whole_recording)
    rows = []
    for key, (quantity, unit, better) in METRICS.items():
        left, right = (quantity.value(side.view, side.selection) for side in (a, b))
        # Few recordings hold energy: without it, no rows for it.
        if (key in _ENERGY and left is None and right is None) or not (has_gpu or key in _WITHOUT_GPU):
            continue
        ratio = left / right if left is not None and right else None
        gain = _gain(left, right, better) if steps_known else None
        rows.append(CompareMetric(key, quantity.label, unit, left, right, ratio, gain, better))
    return rows


def _gain(a: float | None, b: float | None, better: _Better) -> float | None:
    if a is None or b is None or better == "":
        return None
    over, under = (a, b) if better == "lower" else (b, a)
    return over / under if under else None
