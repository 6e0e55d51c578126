"""The forecast: an FP32 run in, the step time in another precision out, with an interval and what it consists of.

The step is simulated (`simulation`) with new kernel times (`kernel_times`), with the casts that autocast would add and,
for FP16, the GradScaler (`added`). Nothing of the other run is known. The interval comes from two more simulations: one
with kernels as fast and a CPU as little slowed down by the profiler as the measurements allow, one with the opposite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from tb_dlprof_plugin.comparison.forecast.added import AddedWork, added_work
from tb_dlprof_plugin.comparison.forecast.calibration import CALIBRATION
from tb_dlprof_plugin.comparison.forecast.dtype_flow import Flow, flow
from tb_dlprof_plugin.comparison.forecast.kernel_times import KernelTimes, KernelTimesOf
from tb_dlprof_plugin.comparison.forecast.launched import launched, recorded_ns
from tb_dlprof_plugin.comparison.forecast.op_times import OpTimes, measured
from tb_dlprof_plugin.comparison.forecast.target import Target, target_of
from tb_dlprof_plugin.frame import Frame, per_selection
from tb_dlprof_plugin.simulation.change import Change
from tb_dlprof_plugin.simulation.pauses import loading_times
from tb_dlprof_plugin.simulation.simulator import SimulatedStep, simulation
from tb_dlprof_plugin.storage.intervals import covered
from tb_dlprof_plugin.storage.model import CallKind, Profile

Limit = Literal["gpu", "cpu", "dataloader", "both"]

_LIMITS = 0.9
"""A CPU that is busy for this share of a step limits it."""


@dataclass(frozen=True, slots=True)
class OpForecast:
    """Kernel time per iteration (ns) of one op group, as measured and as forecast; ``casts_ns`` comes on top.

    ``precision`` is what its kernels would compute in: "" where it keeps its time.
    """

    group: int
    measured_ns: float
    predicted_ns: float
    casts_ns: float
    precision: str


@dataclass(frozen=True)
class Forecast:
    """Times of a step in ns; ``measured_ns`` is the recorded step, ``base_ns`` the one without the profiler.

    ``speedup`` is base over predicted, with the ends of its interval. ``casts`` counts kernels per step. ``change`` is
    what becomes of the step, for simulating it together with other changes.
    """

    target: Target
    measured_ns: float
    base_ns: float
    predicted_ns: float
    low_ns: float
    high_ns: float
    limited_by: Limit
    gpu_ns: float
    host_ns: float
    base_gpu_ns: float
    casts: float
    cast_ns: float
    scaler_ns: float
    ops: list[OpForecast]
    change: Change = field(compare=False)

    @property
    def speedup(self) -> float:
        """How many times shorter the step gets; below 1 it gets longer."""
        return self.base_ns / self.predicted_ns


def forecast(
    run: Profile | Frame,
    precision: str,
    batch_size: int | None = None,
    gpu: str | None = None,
    op_times: OpTimes | None = None,
) -> Forecast:
    """What a step of an FP32 run would take in another precision, with another batch size or on another GPU.

    Args:
        run: recorded on a GPU whose peak rates are known, with shapes.
        precision: "fp32" (as it is), "tf32", "fp16" or "bf16"; the last two by ``torch.autocast``.
        batch_size: kernels grow with it, and what the CPU does per step does not.
        gpu: by the name that CUDA reports.
        op_times: measured ops other than those of the package.

    Raises:
        ForecastError: what the run lacks, or what is wrong with what is asked.
    """
    frame = run if isinstance(run, Frame) else Frame(run)
    target = target_of(frame, precision, batch_size, gpu)
    return _Forecaster(frame, target, op_times or measured()).forecast()


@dataclass(frozen=True)
class _Changed:
    """What becomes of the step, with the kernel times and the added work that make it so."""

    change: Change
    times: KernelTimes
    added: AddedWork | None


@per_selection
def _flow(frame: Frame, selection: object) -> Flow:
    return flow(frame, min(1, len(frame.profile.iterations) - 1))


class _Forecaster:
    def __init__(self, frame: Frame, target: Target, op_times: OpTimes) -> None:
        self._frame, self._target = frame, target
        self._flow = _flow(frame, frame.selection())
        self._measured_on = op_times.gpu
        self._times = KernelTimesOf(frame, self._flow, target.precision, op_times, target)
        self._work = launched(frame, frame.selection())
        self._simulation = simulation(frame, frame.selection())

    def forecast(self) -> Forecast:
        target, share = self._target, self._simulation.share
        base, steps = self._simulation.step(), self._simulation.estimate
        expected = self._changed(share.expected, 0.0)
        middle = self._simulation.step([expected.change])
        low = self._end(share.low, -CALIBRATION.spreads)
        high = self._end(share.high, CALIBRATION.spreads)
        return Forecast(
            target=target,
            measured_ns=steps.recorded_ns,
            base_ns=steps.ns,
            predicted_ns=middle.ns,
            low_ns=min(low, middle.ns),
            high_ns=max(high, middle.ns),
            limited_by=self._limit(middle),
            gpu_ns=middle.gpu_ns,
            host_ns=middle.host_ns,
            base_gpu_ns=base.gpu_ns,
            casts=expected.added.casts if expected.added else 0.0,
            cast_ns=expected.added.cast_ns if expected.added else 0.0,
            scaler_ns=expected.added.scaler_ns if expected.added else 0.0,
            ops=self._ops(expected),
            change=expected.change,
        )

    def _end(self, share: float, spreads: float) -> float:
        """The step at one end: with kernels and a CPU as fast, or as slow, as the measurements allow (ns)."""
        simulated, steps = self._simulation, self._simulation.estimate
        change = self._changed(share, spreads).change
        if steps.source == "measured":
            end = steps.low_ns if spreads < 0 else steps.high_ns
            return simulated.step([change], share).ns * end / steps.ns
        return simulated.absolute([change], share).ns

    def _changed(self, share: float, spreads: float) -> _Changed:
        """The change, with all kernel times shifted by so many of their spreads."""
        frame, target, work, known = self._frame, self._target, self._work, CALIBRATION
        times = self._kernel_times
        moved = target.new_gpu != target.gpu
        extra = known.other_gpu_spread if moved or target.gpu != self._measured_on else 0.0
        doublings = abs(math.log2(target.batch_ratio))
        spread = times.spread + np.where(times.changed | moved, extra, 0.0)
        spread += np.where(times.scaled, known.batch_spread * doublings, 0.0)
        gpu = np.ones(len(frame.profile.launches))
        gpu[work.launch] = times.gpu_ns * np.exp(spreads * spread) / np.maximum(recorded_ns(frame, work), 1.0)
        added = None
        if target.precision in ("fp16", "bf16"):
            per_op = self._simulation.replayed_host_ns(share) / max(self._ops_per_step, 1.0)
            added = added_work(frame, work, self._flow, target, per_op, known)
        return _Changed(Change(gpu=gpu, added=added.before if added else {}), times, added)

    @cached_property
    def _ops_per_step(self) -> float:
        frame = self._frame
        is_op = frame.profile.ops.kind[frame.profile.calls.op] == CallKind.OP
        return float((is_op & (frame.call_iteration >= 0)).sum()) / len(frame.profile.iterations)

    @cached_property
    def _kernel_times(self) -> KernelTimes:
        return self._times.of(self._work)

    def _limit(self, step: SimulatedStep) -> Limit:
        if step.gpu_paced:
            return "gpu"
        if step.host_ns < _LIMITS * step.ns:
            return "both"
        return "dataloader" if 2 * self._loading_ns() > step.host_ns else "cpu"

    def _loading_ns(self) -> float:
        """Time per iteration in which the CPU loads data."""
        iterations = self._frame.profile.iterations
        spans = loading_times(self._frame, self._frame.selection())
        return float(covered(spans, iterations.host_start_ns, iterations.host_stop_ns).mean())

    def _ops(self, expected: _Changed) -> list[OpForecast]:
        work, count = self._work, max(len(self._frame.profile.iterations), 1)
        group = self._frame.call_group[work.call]
        rows = np.flatnonzero(group >= 0)
        size = len(self._frame.groups)

        def total(values: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
            return np.bincount(group[rows], weights=values[rows], minlength=size) / count

        measured_ns, predicted_ns = total(recorded_ns(self._frame, work)), total(expected.times.gpu_ns)
        changed = total(expected.times.changed.astype(np.float64)) > 0
        casts = expected.added.group_ns if expected.added else {}
        result = [
            OpForecast(
                group=which,
                measured_ns=float(measured_ns[which]),
                predicted_ns=float(predicted_ns[which]),
                casts_ns=casts.get(which, 0.0),
                precision=self._target.precision if changed[which] else "",
            )
            for which in range(size)
            if measured_ns[which] > 0 or which in casts
        ]
        return sorted(result, key=lambda op: -(op.measured_ns + op.casts_ns))
