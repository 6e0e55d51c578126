"""Forecasts the step time of an FP32 run in another precision, with an interval and its parts.

The step is simulated (`simulation`) with new kernel times (`kernel_times`), with the casts that autocast would add and,
for FP16, the GradScaler (`amp_overhead`). Nothing of the other run is used. The interval comes from two more
simulations: one with kernels as fast and a CPU as little slowed down by the profiler as the measurements allow, one
with the opposite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from tb_dlprof_plugin.model.intervals import covered
from tb_dlprof_plugin.model.profile import CallKind, Profile
from tb_dlprof_plugin.model.speedup_change import FasterOrSlower, change_of
from tb_dlprof_plugin.planning.amp_overhead import AddedWork, added_work
from tb_dlprof_plugin.planning.calibration import CALIBRATION
from tb_dlprof_plugin.planning.compiled import compiled_code
from tb_dlprof_plugin.planning.dataloader import Loading, loading
from tb_dlprof_plugin.planning.dtype_flow import flow
from tb_dlprof_plugin.planning.kernel_times import ForecastKernelTimes, KernelTimesOf, launched, recorded_ns
from tb_dlprof_plugin.planning.op_times import OpTimes, measured
from tb_dlprof_plugin.planning.target import ForecastError, Target, target_of
from tb_dlprof_plugin.planning.unmeasured import refusal
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import NOTHING_ADDED, Change
from tb_dlprof_plugin.simulation.estimate import SHORTEST_STEP_NS
from tb_dlprof_plugin.simulation.pauses import loading_times
from tb_dlprof_plugin.simulation.simulator import SimulatedStep, simulation

Limit = Literal["gpu", "cpu", "dataloader", "both"]

_SHORTEST = 1e-3
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

    ``low_ns`` and ``high_ns`` hold what is not known of the base as well. ``least_share`` and ``most_share`` are what
    is left of the step, at least and at most, whatever the base. ``casts`` counts kernels per step. ``pace_drift`` is
    how much the pace of the CPU changes the speedup from run to run, as a logarithm. ``change`` is the change of the
    step, for simulating it together with other changes.
    """

    target: Target
    measured_ns: float
    base_ns: float
    predicted_ns: float
    low_ns: float
    high_ns: float
    least_share: float
    most_share: float
    limited_by: Limit
    gpu_ns: float
    host_ns: float
    base_gpu_ns: float
    casts: float
    cast_ns: float
    scaler_ns: float
    ops: list[OpForecast]
    pace_drift: float
    change: Change = field(compare=False)

    @property
    def speedup(self) -> float:
        """How many times shorter the step gets; below 1 it gets longer."""
        return self.base_ns / self.predicted_ns

    @property
    def speedup_interval(self) -> tuple[float, float]:
        """At least and at most, whatever the base; a CPU that sets the pace works at another one in the next run."""
        return _wider(self.speedup, 1 / self.most_share, 1 / max(self.least_share, _SHORTEST), self.pace_drift)

    @property
    def direction(self) -> FasterOrSlower:
        """Whether the step gets shorter, as far as the interval tells."""
        return change_of(self.speedup_interval)


def forecast(
    run: Profile | ProfileView,
    precision: str,
    batch_size: int | None = None,
    gpu: str | None = None,
    op_times: OpTimes | None = None,
    input_ratio: float = 1.0,
) -> Forecast:
    """What a step of an FP32 run would take in another precision, with another batch size or on another GPU.

    Args:
        run: recorded on a GPU whose peak rates are known, with shapes.
        precision: "fp32" (as it is), "tf32", "fp16" or "bf16"; the last two by ``torch.autocast``.
        batch_size: kernels grow with it, and what the CPU does per step does not.
        gpu: by the name that CUDA reports.
        op_times: measured ops other than those of the package.
        input_ratio: tokens or pixels of a sample, over those of the run's; kernels are taken to grow in a line with it.

    Raises:
        ForecastError: the run lacks data, or the request is invalid; the message says which.
    """
    view = run if isinstance(run, ProfileView) else ProfileView(run)
    target = target_of(view, precision, batch_size, gpu)
    target = replace(target, batch_ratio=input_ratio * target.batch_ratio)
    return _Forecaster(view, target, op_times or measured()).forecast()


def _wider(middle: float, low: float, high: float, drift: float) -> tuple[float, float]:
    """The ends of an interval, wider by ``drift``, whose error is independent; all as logarithms."""
    below, above = math.log(middle / low), math.log(max(high, middle) / middle)
    return middle * math.exp(-math.hypot(below, drift)), middle * math.exp(math.hypot(above, drift))


@dataclass(frozen=True)
class _Changed:
    """The change of the step, with the kernel times and the added work behind it."""

    change: Change
    times: ForecastKernelTimes
    added: AddedWork | None


class _Forecaster:
    def __init__(self, view: ProfileView, target: Target, op_times: OpTimes) -> None:
        self._view, self._target = view, target
        self._flow = flow(view, min(1, len(view.profile.iterations) - 1))
        self._times = KernelTimesOf(view, self._flow, target.precision, op_times, target)
        self._work = launched(view)
        self._simulation = simulation(view, view.selection())
        self._code = compiled_code(view)
        self._pace_drift = CALIBRATION.compiled_pace_drift if self._code else CALIBRATION.pace_drift

    def forecast(self) -> Forecast:
        self._check_measured()
        target, share, least = self._target, self._simulation.share, self._loading.least_step_ns
        base, steps = self._simulation.step(), self._simulation.estimate
        expected = self._changed(share.expected, 0.0)
        middle = self._simulation.step([expected.change])
        low, least_share = self._end(share.low, -CALIBRATION.spreads)
        high, most = self._end(share.high, CALIBRATION.spreads)
        if self._loading.hidden:
            # The workers keep up with the step as it is; a shorter one may have to wait for them.
            high, most = max(high, steps.ns), max(most, 1.0)
        predicted_ns = max(middle.ns, least, SHORTEST_STEP_NS)
        limit: Limit = "dataloader" if middle.ns < least else self._limit(middle)
        if not middle.gpu_paced and self._is_other_step:
            # A step that the CPU paces is another one in the next run.
            low, high = _wider(predicted_ns, max(low, 1.0), high, self._pace_drift)
        return Forecast(
            target=target,
            measured_ns=steps.recorded_ns,
            base_ns=steps.ns,
            predicted_ns=predicted_ns,
            # Steps that were timed too differently have an interval from 0 on.
            low_ns=min(max(low, least, SHORTEST_STEP_NS), predicted_ns),
            high_ns=max(high, predicted_ns),
            least_share=min(max(least_share, least / steps.ns), predicted_ns / steps.ns),
            most_share=max(most, predicted_ns / steps.ns),
            limited_by=limit,
            gpu_ns=middle.gpu_ns,
            host_ns=middle.host_ns,
            base_gpu_ns=base.gpu_ns,
            casts=expected.added.casts if expected.added else 0.0,
            cast_ns=expected.added.cast_ns if expected.added else 0.0,
            scaler_ns=expected.added.scaler_ns if expected.added else 0.0,
            ops=self._ops(expected),
            # Compiled code is launched little slower than the GPU runs it: the pace may be the CPU's before the change.
            pace_drift=self._pace_drift if limit != "gpu" or (self._code and not base.gpu_paced) else 0.0,
            change=expected.change,
        )

    @property
    def _is_other_step(self) -> bool:
        """Whether the forecast is not of the step as it is; another batch alone was calibrated on compiled code."""
        target = self._target
        return target.precision != "fp32" or (bool(self._code) and target.batch_ratio != 1)

    def _check_measured(self) -> None:
        whole = float(recorded_ns(self._view, self._work).sum())
        if why := refusal(self._kernel_times.unmeasured, whole, self._target.precision):
            raise ForecastError(why)

    def _end(self, share: float, spreads: float) -> tuple[float, float]:
        """The step (ns) and its remaining share, with kernels and a CPU as fast, or as slow, as measurements allow."""
        simulated, steps = self._simulation, self._simulation.estimate
        scaled, absolute = simulated.scaled_and_absolute([self._changed(share, spreads).change], share)
        left = scaled.ns / steps.ns
        if steps.source == "measured":
            return left * (steps.low_ns if spreads < 0 else steps.high_ns), left
        return absolute.ns, left

    def _changed(self, share: float, spreads: float) -> _Changed:
        """The change, with all kernel times shifted by so many of their spreads."""
        view, target, work, known = self._view, self._target, self._work, CALIBRATION
        times = self._kernel_times
        doublings = abs(math.log2(target.batch_ratio))
        spread = times.spread + (known.other_gpu_spread if target.new_gpu != target.gpu else 0.0)
        batch_spread = known.compiled_batch_spread if self._code else known.batch_spread
        spread += np.where(times.scaled, batch_spread * doublings, 0.0)
        gpu = np.ones(len(view.profile.launches))
        gpu[work.launch] = times.gpu_ns * np.exp(spreads * spread) / np.maximum(recorded_ns(view, work), 1.0)
        added = None
        if target.precision in ("fp16", "bf16") and not target.as_it_is:
            per_op = self._simulation.replayed_host_ns(share) / max(self._ops_per_step, 1.0)
            # The CPU's cost of a cast differs from host to host.
            cast = per_op * known.cast_cost_range**spreads
            launch = self._code.launch_ns * share * known.cast_cost_range**spreads
            added = added_work(view, work, self._flow, target, cast, known, launch)
        # Waiting for DataLoader workers is not CPU work.
        limits = self._loading.hidden or self._loading.least_step_ns
        waits = self._loading.waits if limits else None
        change = Change(cpu=waits, keep_cpu=0.0, gpu=gpu, added=added.before if added else NOTHING_ADDED)
        return _Changed(change, times, added)

    @cached_property
    def _loading(self) -> Loading:
        return loading(self._view, self._view.selection())

    @cached_property
    def _ops_per_step(self) -> float:
        view = self._view
        is_op = view.profile.ops.kind[view.profile.calls.op] == CallKind.OP
        return float((is_op & (view.call_iteration >= 0)).sum()) / len(view.profile.iterations)

    @cached_property
    def _kernel_times(self) -> ForecastKernelTimes:
        return self._times.of(self._work)

    def _limit(self, step: SimulatedStep) -> Limit:
        if step.gpu_paced:
            return "gpu"
        if step.host_ns < _LIMITS * step.ns:
            return "both"
        return "dataloader" if 2 * self._loading_ns() > step.host_ns else "cpu"

    def _loading_ns(self) -> float:
        """Time per iteration in which the training thread loads data itself."""
        iterations = self._view.profile.iterations
        spans = loading_times(self._view, self._view.selection())
        whole, waits = (
            covered(one, iterations.host_start_ns, iterations.host_stop_ns) for one in (spans, self._loading.waits)
        )
        return float((whole - waits).mean())

    def _ops(self, expected: _Changed) -> list[OpForecast]:
        work, count = self._work, max(len(self._view.profile.iterations), 1)
        group = self._view.call_group[work.call]
        rows = np.flatnonzero(group >= 0)
        size = len(self._view.groups)

        def total(values: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
            return np.bincount(group[rows], weights=values[rows], minlength=size) / count

        measured_ns, predicted_ns = total(recorded_ns(self._view, work)), total(expected.times.gpu_ns)
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
