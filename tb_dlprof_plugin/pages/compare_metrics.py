"""One run as the Compare page reads it, and its measures with those of another run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from tb_dlprof_plugin.metrics.energy import StepEnergy, step_energy
from tb_dlprof_plugin.metrics.iterations import StepTotals, percent, step_totals
from tb_dlprof_plugin.metrics.kernels import TimeSplit, time_split
from tb_dlprof_plugin.metrics.memory import DeviceMemory, recorded_devices
from tb_dlprof_plugin.metrics.tensor_cores import TensorCoreTotals, tensor_core_totals
from tb_dlprof_plugin.pages.common import (
    SelectedRange,
    Slice,
    run_title,
    selected_range,
    struct_from,
)
from tb_dlprof_plugin.pages.compare_text import (
    recorded_text,
)
from tb_dlprof_plugin.pages.overview import CATEGORIES
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
        self.split: TimeSplit = time_split(view, selection)
        self.tensor_cores: TensorCoreTotals = tensor_core_totals(view, selection)
        self.energy: StepEnergy | None = step_energy(view, selection)
        self.kernel_calls = int(view.selected_launches(selection).sum())

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

    def peak_memory(self, reserved: bool = False) -> int | None:
        """Most bytes allocated, or reserved, on the GPU: from the hook, else from the allocator's events."""
        facts = self.view.profile.facts
        read = facts.peak_memory_reserved_bytes if reserved else facts.peak_memory_allocated_bytes
        gpus = [device for device in recorded_devices(self.view.profile) if device >= 0]
        if read is not None or not gpus:
            return read
        memory = DeviceMemory(self.view, gpus[0])
        if not memory.has_totals:
            return None
        window = memory.window(self.selection.first, self.selection.last)
        return memory.peak_reserved(window) if reserved else memory.peak(window).allocated

    def tensor_core_ns(self) -> float | None:
        """Tensor Core kernel time per step."""
        return self.per_step(self.split.tensor_core_ns)

    def samples_per_second(self) -> float | None:
        """Of one process; None where the batch size is unknown."""
        batch = self.view.profile.facts.batch_size
        return batch * 1e9 / self.step.ns if batch and self.step.ns else None

    def per_step(self, value_ns: int | None) -> float | None:
        return None if value_ns is None or not self.view.profile.has_gpu else value_ns / self.selection.count


_METRICS: tuple[tuple[str, str, _Unit, _Better, Callable[[CompareInput], float | None]], ...] = (
    ("step_time", "Step time", "ns", "lower", lambda side: side.step.ns),
    ("recorded_step", "Recorded step", "ns", "", lambda side: side.step.recorded_ns),
    ("gpu_busy", "GPU busy per step", "ns", "lower", lambda side: side.per_step(side.steps.gpu_busy_ns)),
    ("kernel_time", "Kernel time per step", "ns", "lower", lambda side: side.per_step(side.split.kernel_ns)),
    ("tensor_core_time", "Tensor Core kernel time per step", "ns", "", CompareInput.tensor_core_ns),
    ("memory_time", "Copies and sets per step", "ns", "lower", lambda side: side.per_step(side.split.memory_ns)),
    ("kernel_calls", "GPU launches per step", "count", "lower", lambda side: side.per_step(side.kernel_calls)),
    ("gpu_utilization", "GPU utilization", "percent", "higher", lambda side: side.steps.gpu_utilization),
    (
        "tensor_core_utilization", "Tensor Core Kernel Utilization", "percent", "higher",
        lambda side: side.tensor_cores.utilization,
    ),
    ("samples_per_second", "Samples per second", "per_second", "higher", CompareInput.samples_per_second),
    ("peak_memory", "Peak memory allocated", "bytes", "lower", CompareInput.peak_memory),
    ("peak_memory_reserved", "Peak memory reserved", "bytes", "lower", lambda side: side.peak_memory(reserved=True)),
    (
        "joules_per_step", "Energy per step", "joules", "lower",
        lambda side: None if side.energy is None else side.energy.joules,
    ),
    (
        "joules_per_sample", "Energy per sample", "joules", "lower",
        lambda side: None if side.energy is None else side.energy.joules_per_sample,
    ),
    ("watts", "Power", "watts", "", lambda side: None if side.energy is None else side.energy.watts),
)  # fmt: skip
"""Key, label, unit, the better direction and the value of a run."""


def metrics_of(a: CompareInput, b: CompareInput) -> list[CompareMetric]:
    has_gpu = a.view.profile.has_gpu or b.view.profile.has_gpu
    rows = []
    for key, label, unit, better, read in _METRICS:
        left, right = read(a), read(b)
        # Few recordings hold energy: without it, no rows for it.
        if (key in _ENERGY and left is None and right is None) or not (has_gpu or key in _WITHOUT_GPU):
            continue
        ratio = left / right if left is not None and right else None
        rows.append(CompareMetric(key, label, unit, left, right, ratio, _gain(left, right, better), better))
    return rows


def _gain(a: float | None, b: float | None, better: _Better) -> float | None:
    if a is None or b is None or better == "":
        return None
    over, under = (a, b) if better == "lower" else (b, a)
    return over / under if under else None
