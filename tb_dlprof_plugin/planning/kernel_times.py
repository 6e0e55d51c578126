"""New kernel times of a run's launches in another precision.

A unit is a matrix routine or another op of the model; all its kernels get the same factor. Matrix routines and ops that
autocast runs in half precision take the factor of the measured ops most like them (`op_times`); everything else keeps
its time. In TF32 only matrix routines change.

A run may compute in FP32, in TF32 or in some of each: a routine whose kernels ran in TF32 takes the ratio to its time
in TF32. One that ran in FP32 although TF32 is on for its kind stays so: the library chose it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.metrics.flops import MatrixCalls
from tb_dlprof_plugin.metrics.tensor_core_reasons import run_settings
from tb_dlprof_plugin.model.grouping import first_rows, numbered
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints, Role
from tb_dlprof_plugin.names.compiled import REPLAYED_LIBRARY
from tb_dlprof_plugin.names.cuda_calls import CudaCall
from tb_dlprof_plugin.names.tensor_core_eligibility import is_convolution, is_recurrent
from tb_dlprof_plugin.planning.calibration import CALIBRATION
from tb_dlprof_plugin.planning.compiled import SHORTEST_NS
from tb_dlprof_plugin.planning.dtype_flow import Flow, rule_of
from tb_dlprof_plugin.planning.features import (
    least_ns,
    other_features,
    parameter_elements,
)
from tb_dlprof_plugin.planning.op_times import Like, OpTimes, Ratio
from tb_dlprof_plugin.planning.target import Precision, Target
from tb_dlprof_plugin.planning.units import units_of
from tb_dlprof_plugin.planning.unmeasured import ELEMENTWISE, SPREAD, extension_kernels
from tb_dlprof_plugin.profile_view import ProfileView, per_view


@dataclass(frozen=True)
class Launched:
    """Rows by iteration and CPU time: ``launch`` is a row of `Profile.launches`, ``call`` of `Profile.calls`."""

    iteration: Ints
    launch: Ints
    call: Ints


@per_view
def launched(view: ProfileView) -> Launched:
    """All launches whose call was recorded, in all iterations."""
    launches, calls = view.profile.launches, view.profile.calls
    rows = np.flatnonzero((launches.call >= 0) & (view.launch_iteration >= 0))
    call, iteration = launches.call[rows], view.launch_iteration[rows]
    order = np.lexsort((launches.start_ns[rows], calls.start_ns[call], iteration))
    return Launched(iteration[order], rows[order], call[order])


def recorded_ns(view: ProfileView, work: Launched) -> Floats:
    """Recorded GPU time of each row."""
    return view.profile.launches.duration_ns[work.launch].astype(np.float64)


SHORTEST_KERNEL_NS = 1_200.0
"""No kernel of the recordings is shorter."""
_POINTWISE = "mul"
"""Measured stand-in for ops that read and write each value once."""
_UNCHANGED = Ratio(1.0, 0.0)
_OF_UNKNOWN_SIZE = Ratio(1.0, 0.5)
_UNMEASURED = Ratio(1.0, SPREAD, measured=False)
_FP32_BYTES = 4


@dataclass(frozen=True)
class ForecastKernelTimes:
    """Per row of `Launched`: new time (ns), its logarithm's spread, whether it changes with the precision, and whether
    with the batch size or the GPU.

    ``unmeasured`` is the recorded time (ns) of kernels whose class was never measured in the precision, by op.
    """

    gpu_ns: np.ndarray  # type: ignore[type-arg]
    spread: np.ndarray  # type: ignore[type-arg]
    changed: np.ndarray  # type: ignore[type-arg]
    scaled: np.ndarray  # type: ignore[type-arg]
    unmeasured: dict[str, float]


class KernelTimesOf:
    """Gives the kernel times of a run's launches in one precision, batch size and GPU."""

    def __init__(self, view: ProfileView, flow: Flow, precision: Precision, times: OpTimes, target: Target) -> None:
        self._view, self._flow, self._target = view, flow, target
        self._precision, self._times = precision, times
        self._units = units_of(view, flow)
        self._is_changed = precision != "fp32" and not target.as_it_is
        self._grown: dict[tuple[str, str, float, float], float] = {}

    def of(self, work: Launched) -> ForecastKernelTimes:
        """In the new precision, with the new batch size, on the new GPU."""
        old = recorded_ns(self._view, work)
        units = np.where(self._view.launch_is_kernel[work.launch], self._units.of_call[work.call], -1)
        new, spread, measured = old.copy(), np.zeros(len(old)), np.ones(len(old), dtype=np.bool_)
        if self._is_changed:
            rows = np.flatnonzero(units >= 0)
            unit, number = np.unique(units[rows], return_inverse=True)
            total: Floats = np.bincount(number, weights=old[rows], minlength=len(unit)).astype(np.float64)
            ratios, group = self._ratios(unit, total)
            number = group[number]
            value = np.array([ratio.value for ratio in ratios])[number]
            new[rows] = np.maximum(old[rows] * value, np.minimum(SHORTEST_KERNEL_NS, old[rows]))
            spread[rows] = np.array([ratio.spread for ratio in ratios])[number]
            measured[rows] = np.array([ratio.measured for ratio in ratios])[number]
            if self._precision != "tf32":
                foreign = extension_kernels(self._view)[work.launch]
                new[foreign], spread[foreign], measured[foreign] = old[foreign], SPREAD, False
            unknown = self._units.compiled.unknown_replays[work.launch]
            new[unknown], spread[unknown], measured[unknown] = old[unknown], SPREAD, False
        generated = np.where(units >= 0, self._units.compiled.generated[units], -1)
        self._change_generated(generated, old, new, spread, measured)
        # What a kernel takes above the shortest grows.
        shortest = np.minimum(new, np.where(generated >= 0, SHORTEST_NS, SHORTEST_KERNEL_NS))
        scaled = shortest + (new - shortest) * self._factor(work, units)
        unmeasured = self._by_op(np.where(units >= 0, units, work.call), ~measured, old)
        return ForecastKernelTimes(scaled, spread, new != old, scaled != new, unmeasured)

    def _change_generated(self, calls: Ints, old: Floats, new: Floats, spread: Floats, measured: Bools) -> None:
        """Set the times of kernels that Inductor generated; ``calls`` are theirs per row, -1 for others."""
        code, precision = self._units.compiled, self._precision
        if not self._is_changed or not code:
            return
        profile = self._view.profile
        rows = np.flatnonzero(calls >= 0)
        rows = rows[profile.ops.role[profile.calls.op[calls[rows]]] != Role.OPTIMIZER]
        op, number = np.unique(profile.calls.op[calls[rows]], return_inverse=True)
        number = number.reshape(-1)
        template = code.is_template[op]
        if precision == "tf32":
            ratios = [_UNMEASURED if one else _UNCHANGED for one in template.tolist()]
        else:
            parameters = self._flow.parameter_shapes
            ratios = [
                _UNMEASURED if one else code.in_half(row, parameters)
                for one, row in zip(template.tolist(), op.tolist(), strict=True)
            ]
        value, spreads = np.array([(one.value, one.spread) for one in ratios]).reshape(-1, 2)[number].T
        shortest = np.minimum(old[rows], SHORTEST_NS)
        new[rows] = shortest + (old[rows] - shortest) * value
        spread[rows], measured[rows] = spreads, ~template[number]

    def _by_op(self, units: Ints, rows: Bools, times: Floats) -> dict[str, float]:
        """Sums of the times of these rows, by the name of the op that is their unit."""
        ops, strings = self._view.profile.ops, self._view.profile.strings
        found: dict[str, float] = defaultdict(float)
        for row in np.flatnonzero(rows).tolist():
            op = int(self._view.profile.calls.op[units[row]])
            backward = " (backward)" if ops.role[op] == Role.BACKWARD else ""
            name = (
                REPLAYED_LIBRARY
                if self._view.call_cuda[units[row]] == CudaCall.GRAPH_LAUNCH
                else strings[ops.op_type[op]]
            )
            found[name + backward] += float(times[row])
        return dict(found)

    def _factor(self, work: Launched, units: Ints) -> np.ndarray:  # type: ignore[type-arg]
        """By the batch size and the GPU."""
        target, precision = self._target, self._precision
        factor = batch_factor(self._view, work, units, target.batch_ratio, self._growth)
        if target.new_gpu != target.gpu:
            factor = factor * gpu_factor(work, self._units.matrix, target, precision)
        return factor

    def _ratios(self, units: Ints, times_ns: Floats) -> tuple[list[Ratio], Ints]:
        """Of groups of units that share an answer, and each unit's group."""
        alike = self._units.alike(units, times_ns)
        found = [
            self._looked_up(unit, time_ns) if time_ns > 0 else _UNCHANGED
            for unit, time_ns in zip(alike.unit, alike.time_ns, strict=True)
        ]
        # Many layers are alike, too.
        measured = self._times.ratios(one for one in found if isinstance(one, Like))
        return [self._of_gpu(one, measured[one]) if isinstance(one, Like) else one for one in found], alike.group

    def _looked_up(self, unit: int, time_ns: float) -> Ratio | Like:
        if self._units.matrix.of_call[unit] >= 0:
            return self._matrix_ratio(unit, time_ns)
        if self._precision == "tf32" or not self._units.half[unit]:
            return _UNCHANGED
        profile, ops = self._view.profile, self._view.profile.ops
        op = int(profile.calls.op[unit])
        name = profile.strings[ops.op_type[op]].rstrip("_")
        direction = "bprop" if ops.role[op] == Role.BACKWARD else "fprop"
        if self._is_measured(kind := f"{name} {direction}"):
            return Like(kind, self._precision, self._units.other_features(unit, time_ns))
        # Next to its routine a product adds, copies and sums.
        pointwise = name in ELEMENTWISE or rule_of(name) == "half"
        if pointwise and self._is_measured(kind := f"{_POINTWISE} {direction}"):
            return Like(kind, self._precision, other_features(time_ns, 1.0, False))
        return _UNMEASURED

    def _is_measured(self, kind: str, base: str = "fp32") -> bool:
        return self._times.table(kind, self._precision, base) is not None

    def _of_gpu(self, like: Like, ratio: Ratio | None) -> Ratio:
        """A ratio of measured ops for the run's GPU."""
        assert ratio is not None
        if self._target.gpu in self._times.gpus[like.kind]:
            return ratio
        return replace(ratio, spread=ratio.spread + CALIBRATION.other_gpu_spread)

    def _matrix_ratio(self, unit: int, time_ns: float) -> Ratio | Like:
        base = self._base(unit)
        if self._precision == "tf32" and (base == "tf32" or self._is_library_choice(unit)):
            return _UNCHANGED
        if self._precision != "tf32" and not self._units.half[unit]:
            return _UNCHANGED
        routine = self._units.routine(unit)
        if routine is None:
            # In compiled code most of the time may be in a few routines: what is not known of them decides.
            return _UNMEASURED if self._units.compiled.calls[unit] else _OF_UNKNOWN_SIZE
        if base == "tf32" and "attention" in routine.kind and not self._is_measured(routine.kind, base):
            # Its kernels of FP32 tensors run the same on Tensor Cores, whatever the settings.
            base = "fp32"
        if not self._is_measured(routine.kind, base):
            return _UNMEASURED
        features = self._units.matrix_features(routine, time_ns, self._target.ceilings)
        return Like(routine.kind, self._precision, features, base)

    def _base(self, unit: int) -> str:
        """What a routine ran in."""
        return "tf32" if self._units.in_tf32[self._view.profile.calls.op[unit]] else "fp32"

    def _is_library_choice(self, call: int) -> bool:
        """Whether TF32 is on for products of this kind."""
        name = self._view.profile.call_name(call)
        of_cudnn = is_convolution(name) or is_recurrent(name)
        settings = run_settings(self._view)
        return bool(settings.cudnn_tf32 if of_cudnn else settings.matmul_tf32)

    def _growth(self, units: Ints) -> Floats:
        """How many times as long each unit takes with the new batch size."""
        known = self._units
        rows = np.flatnonzero(known.matrix.of_call[units] >= 0)
        routines = units[rows]
        matrix, op = known.matrix.of_call[routines], self._view.profile.calls.op[routines]
        grown = np.full(len(units), self._target.batch_ratio)
        # Calls of an op with the same work grow alike.
        group = numbered(
            op, known.matrix.flops[matrix], known.matrix.bytes[matrix], known.half[routines].astype(np.int64)
        )
        first = routines[first_rows(group)].tolist()
        grown[rows] = np.array([self._routine_growth(unit) for unit in first], dtype=np.float64)[group]
        code, profile = known.compiled, self._view.profile
        own = np.flatnonzero(code.generated[units] == units)
        ops, number = np.unique(profile.calls.op[units[own]], return_inverse=True)
        given = self._flow.parameter_shapes, profile.facts.batch_size
        shares = np.array([code.of_batch(op, *given) for op in ops.tolist()], dtype=np.float64)
        grown[own] = 1.0 + (self._target.batch_ratio - 1.0) * shares[number.reshape(-1)]
        return grown

    def _routine_growth(self, unit: int) -> float:
        known, target, routine = self._units, self._target, self._units.routine(unit)
        ratio, ceilings = target.batch_ratio, target.ceilings
        if routine is None:
            return ratio
        fixed = _FP32_BYTES * parameter_elements(routine.kind, routine.shapes, self._flow.parameter_shapes)
        before = least_ns(routine.flops, routine.moved, ceilings)
        after = least_ns(routine.flops * ratio, fixed + (routine.moved - fixed) * ratio, ceilings)
        in_target = target.as_it_is or self._precision == "tf32" or known.half[unit]
        precision = self._precision if in_target else self._base(unit)
        key = (routine.kind, precision, before, after)
        if key not in self._grown:
            self._grown[key] = self._times.growth(*key)
        return self._grown[key]


def batch_factor(
    view: ProfileView, work: Launched, units: Ints, ratio: float, growth: Callable[[Ints], Floats]
) -> np.ndarray:  # type: ignore[type-arg]
    """Per row of ``work``, with a batch ``ratio`` times as large. The optimizer's kernels keep their time.

    Args:
        view: the run.
        work: its launches.
        units: per row the call that is its unit, -1 for none.
        ratio: new batch size over the run's.
        growth: of units.
    """
    if ratio == 1:
        return np.ones(len(work.launch))
    of_batch = view.profile.ops.role[view.profile.calls.op[work.call]] != Role.OPTIMIZER
    factor = np.where(of_batch, ratio, 1.0)
    rows = np.flatnonzero((units >= 0) & of_batch)
    unit, number = np.unique(units[rows], return_inverse=True)
    factor[rows] = growth(unit)[number]
    return factor


def gpu_factor(work: Launched, matrix: MatrixCalls, target: Target, precision: Precision) -> np.ndarray:  # type: ignore[type-arg]
    """Peak rates of the run's GPU over those of the other, for matrix routines; memory bandwidth for the rest.

    A matrix routine counts as compute-bound if its FLOPs per byte exceed the ridge point of the run's GPU.
    """
    old, new = target.ceilings, target.new_ceilings
    factor = np.full(len(work.launch), old.bytes_per_second / new.bytes_per_second)
    on_tensor_cores = precision != "fp32"
    old_rate = old.flops_per_second(precision, on_tensor_cores)
    new_rate = new.flops_per_second(precision, on_tensor_cores)
    if not len(matrix) or old_rate is None or new_rate is None:
        return factor
    at = matrix.of_call[work.call]
    intensity = matrix.flops / np.maximum(matrix.bytes, 1)
    by_arithmetic = (at >= 0) & (intensity[np.maximum(at, 0)] > old_rate / old.bytes_per_second)
    return np.where(by_arithmetic, old_rate / new_rate, factor)
