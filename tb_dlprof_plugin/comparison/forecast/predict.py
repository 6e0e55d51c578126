"""The forecast: an FP32 run in, the step time in another precision out, with an interval and what it consists of.

The recorded launches are replayed (`replay`) with new kernel times (`kernel_times`), with the casts that autocast would
add and, for FP16, the GradScaler (`added`). Nothing of the other run is known. The interval comes from two more
replays: one with kernels as fast and a CPU as little slowed down by the profiler as the measurements allow, one with
the opposite. On the recorded pairs it holds the truth in 73 of 75 cases (docs/forecast.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from tb_dlprof_plugin.comparison.forecast.added import AddedWork, added_work
from tb_dlprof_plugin.comparison.forecast.dtype_flow import Flow, flow
from tb_dlprof_plugin.comparison.forecast.kernel_times import KernelTimes, KernelTimesOf
from tb_dlprof_plugin.comparison.forecast.loading import Loading, loading
from tb_dlprof_plugin.comparison.forecast.op_times import OpTimes, measured
from tb_dlprof_plugin.comparison.forecast.target import Target, target_of
from tb_dlprof_plugin.frame import Frame, per_selection
from tb_dlprof_plugin.measures.iterations import step_totals
from tb_dlprof_plugin.simulation.calibration import CALIBRATION, Calibration
from tb_dlprof_plugin.simulation.host import HostClock, host_clock
from tb_dlprof_plugin.simulation.launched import Launched, events, launched, recorded_ns, replay_as_recorded
from tb_dlprof_plugin.simulation.replay import Replayed, replay
from tb_dlprof_plugin.storage.intervals import covered, union
from tb_dlprof_plugin.storage.model import Profile, Role

Limit = Literal["gpu", "cpu", "dataloader", "both"]

_CPU_PACED = 1.2
"""A step this many times as long as its kernels is paced by the CPU."""
_LIMITS = 0.9
"""What is busy for this share of a step limits it."""


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
    """Times of a step in ns; ``measured_ns`` is the recorded step, ``base_ns`` the same without the profiler, replayed.

    ``speedup`` is base over predicted, with the ends of its interval. ``casts`` counts kernels per step.
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
    calibration: Calibration = CALIBRATION,
) -> Forecast:
    """What a step of an FP32 run would take in another precision, with another batch size or on another GPU.

    Args:
        run: recorded on a GPU whose peak rates are known, with shapes.
        precision: "fp32" (as it is), "tf32", "fp16" or "bf16"; the last two by ``torch.autocast``.
        batch_size: kernels grow with it, and what the CPU does per step does not.
        gpu: by the name that CUDA reports.
        op_times: measured ops other than those of the package.
        calibration: numbers other than those of the package.

    Raises:
        ForecastError: what the run lacks, or what is wrong with what is asked.
    """
    frame = run if isinstance(run, Frame) else Frame(run)
    target = target_of(frame, precision, batch_size, gpu)
    return _Forecaster(frame, target, op_times or measured(), calibration).forecast()


def calibration_of(frame: Frame, known: Calibration = CALIBRATION) -> Calibration:
    """``known``, or the CPU's share by the run's own steps before the profiler, where its own work paces those."""
    measured_ns = frame.profile.facts.unprofiled_step_ns
    if not measured_ns or loading(frame, frame.selection()).least_step_ns:
        return known
    own = replay_as_recorded(frame, 1.0)
    if measured_ns < _CPU_PACED * own.gpu_ns or own.host_ns <= 0:
        return known
    factor = min(measured_ns / own.host_ns, 1.0) / known.unprofiled
    return replace(
        known,
        unprofiled=known.unprofiled * factor,
        unprofiled_low=known.unprofiled_low * factor,
        unprofiled_high=known.unprofiled_high * factor,
    )


@dataclass(frozen=True)
class _Simulated:
    replayed: Replayed
    work: Launched
    times: KernelTimes
    added: AddedWork | None


@per_selection
def _flow(frame: Frame, selection: object) -> Flow:
    return flow(frame, min(1, len(frame.profile.iterations) - 1))


class _Forecaster:
    def __init__(self, frame: Frame, target: Target, op_times: OpTimes, calibration: Calibration) -> None:
        self._frame, self._target, self._calibration = frame, target, calibration
        self._flow = _flow(frame, frame.selection())
        self._measured_on = op_times.gpu
        self._times = KernelTimesOf(frame, self._flow, target.precision, op_times, target)

    def forecast(self) -> Forecast:
        frame, target = self._frame, self._target
        steps = step_totals(frame, frame.selection())
        known = calibration_of(frame, self._calibration)
        base = self._as_recorded(known.unprofiled)
        expected = self._simulate(known.unprofiled, 0.0)
        low = self._simulate(known.unprofiled_low, -known.spreads).replayed.step_ns
        high = self._simulate(known.unprofiled_high, known.spreads).replayed.step_ns
        middle = expected.replayed
        least = self._loading.least_step_ns
        if self._loading.hidden:
            # The workers keep up with the step as it is; a shorter one may have to wait for them.
            high = max(high, base.step_ns)
        base_ns, predicted_ns = max(base.step_ns, least), max(middle.step_ns, least)
        return Forecast(
            target=target,
            measured_ns=float(steps.recorded_ns),
            base_ns=base_ns,
            predicted_ns=predicted_ns,
            low_ns=min(max(low, least), predicted_ns),
            high_ns=max(high, predicted_ns),
            limited_by="dataloader" if middle.step_ns < least else self._limit(middle),
            gpu_ns=middle.gpu_ns,
            host_ns=middle.host_ns,
            base_gpu_ns=base.gpu_ns,
            casts=expected.added.casts if expected.added else 0.0,
            cast_ns=expected.added.cast_ns if expected.added else 0.0,
            scaler_ns=expected.added.scaler_ns if expected.added else 0.0,
            ops=self._ops(expected),
        )

    @cached_property
    def _loading(self) -> Loading:
        return loading(self._frame, self._frame.selection())

    def _clock(self, unprofiled: float) -> HostClock:
        """What the workers of the DataLoader are waited for is no work of the CPU."""
        return self._loading.without(host_clock(self._frame, unprofiled))

    def _as_recorded(self, unprofiled: float) -> Replayed:
        """The recorded launches once more."""
        if not len(self._loading.waits[0]):
            return replay_as_recorded(self._frame, unprofiled)
        work = launched(self._frame, self._clock(unprofiled))
        return replay(events(work, recorded_ns(self._frame, work), {}), work.gap_ns)

    def _simulate(self, unprofiled: float, spreads: float) -> _Simulated:
        """One replay as asked about."""
        frame, target = self._frame, self._target
        work = launched(frame, self._clock(unprofiled))
        times = self._kernel_times
        moved, known = target.new_gpu != target.gpu, self._calibration
        extra = known.other_gpu_spread if moved or target.gpu != self._measured_on else 0.0
        doublings = abs(math.log2(target.batch_ratio))
        spread = times.spread + np.where(times.changed | moved, extra, 0.0)
        spread += np.where(times.scaled, known.batch_spread * doublings, 0.0)
        gpu_ns = times.gpu_ns * np.exp(spreads * spread)
        added = None
        if target.precision in ("fp16", "bf16"):
            added = added_work(frame, work, self._flow, target, known)
        before = added.before if added else {}
        return _Simulated(replay(events(work, gpu_ns, before), work.gap_ns), work, times, added)

    @cached_property
    def _kernel_times(self) -> KernelTimes:
        """The same in all three replays: so are the rows of `Launched`, whatever the CPU's speed."""
        return self._times.of(launched(self._frame, host_clock(self._frame, 1.0)))

    def _limit(self, replayed: Replayed) -> Limit:
        if replayed.gpu_ns >= _LIMITS * replayed.step_ns:
            return "gpu"
        if replayed.host_ns < _LIMITS * replayed.step_ns:
            return "both"
        return "dataloader" if 2 * self._loading_ns() > replayed.host_ns else "cpu"

    def _loading_ns(self) -> float:
        """Time per iteration in which the training thread loads data itself."""
        calls, iterations = self._frame.profile.calls, self._frame.profile.iterations
        loads = self._frame.profile.ops.role[calls.op] == Role.DATALOADER
        spans = union(calls.start_ns[loads], calls.start_ns[loads] + calls.duration_ns[loads])
        whole, waits = (
            covered(one, iterations.host_start_ns, iterations.host_stop_ns) for one in (spans, self._loading.waits)
        )
        return float((whole - waits).mean())

    def _ops(self, expected: _Simulated) -> list[OpForecast]:
        work = expected.work
        count = max(len(work.begin_ns), 1)
        group = self._frame.call_group[work.call]
        rows = np.flatnonzero((work.launch >= 0) & (group >= 0))
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
