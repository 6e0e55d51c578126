"""New kernel times of a run's launches in another precision.

A unit is a matrix routine or another op of the model; all its kernels get the same factor. Matrix routines and ops that
autocast runs in half precision take the factor of the measured ops most like them (`op_times`); everything else keeps
its time. In TF32 only matrix routines change.

A run may compute in FP32, in TF32 or in some of each: a routine whose kernels ran in TF32 takes the ratio to its time
in TF32. One that ran in FP32 although TF32 is on for its kind stays so: the library chose it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tb_dlprof_plugin.metrics.flops import UNKNOWN, MatrixCalls, matrix_calls
from tb_dlprof_plugin.metrics.tensor_core_reasons import run_settings
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints, Role
from tb_dlprof_plugin.model.shapes import InputShapes, tensors_of
from tb_dlprof_plugin.model.tree import inherit, nearest
from tb_dlprof_plugin.names.tensor_core_eligibility import is_convolution, is_recurrent
from tb_dlprof_plugin.planning.calibration import CALIBRATION
from tb_dlprof_plugin.planning.dtype_flow import Flow, rule_of
from tb_dlprof_plugin.planning.features import (
    Features,
    least_ns,
    matrix_features,
    matrix_kind,
    other_features,
    parameter_elements,
)
from tb_dlprof_plugin.planning.op_times import OpTimes, Ratio
from tb_dlprof_plugin.planning.target import Precision, Target
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
_SAME_TIME = 0.02
"""Logarithms of times are rounded to this: kernels of one op differ by as much from iteration to iteration."""
_FP32_BYTES = 4
_NEAR = 8
"""Calls below an autograd node among which the op itself is found."""


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


@dataclass(frozen=True, slots=True)
class _Routine:
    """A matrix routine: its kind among the measured ones, shapes of its inputs, FLOPs, and least bytes."""

    kind: str
    name: str
    shapes: InputShapes
    flops: int
    moved: int


class _Like(NamedTuple):
    """Of a unit what it has in common with measured ops: their kind, its features, and what it ran in."""

    kind: str
    features: Features
    base: str = "fp32"


class KernelTimesOf:
    """Gives the kernel times of a run's launches in one precision, batch size and GPU."""

    def __init__(self, view: ProfileView, flow: Flow, precision: Precision, times: OpTimes, target: Target) -> None:
        self._view, self._flow, self._target = view, flow, target
        self._precision, self._times = precision, times
        self._matrix = matrix_calls(view, view.selection())
        self._channels_last = self._modules_with_channels_last()
        self._half_calls = self._half()
        self._grown: dict[tuple[str, str, float, float], float] = {}

    def of(self, work: Launched) -> ForecastKernelTimes:
        """In the new precision, with the new batch size, on the new GPU."""
        old, units = recorded_ns(self._view, work), self._units(work)
        new, spread, measured = old.copy(), np.zeros(len(old)), np.ones(len(old), dtype=np.bool_)
        if self._precision != "fp32":
            rows = np.flatnonzero(units >= 0)
            unit, number = np.unique(units[rows], return_inverse=True)
            total = np.bincount(number, weights=old[rows], minlength=len(unit))
            ratios = self._ratios(unit.tolist(), total.tolist())
            value = np.array([ratio.value for ratio in ratios])[number]
            new[rows] = np.maximum(old[rows] * value, np.minimum(SHORTEST_KERNEL_NS, old[rows]))
            spread[rows] = np.array([ratio.spread for ratio in ratios])[number]
            measured[rows] = np.array([ratio.measured for ratio in ratios])[number]
            if self._precision != "tf32":
                foreign = extension_kernels(self._view)[work.launch]
                new[foreign], spread[foreign], measured[foreign] = old[foreign], SPREAD, False
        # What a kernel takes above the shortest grows.
        shortest = np.minimum(new, SHORTEST_KERNEL_NS)
        scaled = shortest + (new - shortest) * self._factor(work, units)
        unmeasured = self._by_op(np.where(units >= 0, units, work.call), ~measured, old)
        return ForecastKernelTimes(scaled, spread, new != old, scaled != new, unmeasured)

    def _by_op(self, units: Ints, rows: Bools, times: Floats) -> dict[str, float]:
        """Sums of the times of these rows, by the name of the op that is their unit."""
        ops, strings = self._view.profile.ops, self._view.profile.strings
        found: dict[str, float] = defaultdict(float)
        for row in np.flatnonzero(rows).tolist():
            op = int(self._view.profile.calls.op[units[row]])
            backward = " (backward)" if ops.role[op] == Role.BACKWARD else ""
            found[strings[ops.op_type[op]] + backward] += float(times[row])
        return dict(found)

    def _factor(self, work: Launched, units: Ints) -> np.ndarray:  # type: ignore[type-arg]
        """By the batch size and the GPU."""
        target, precision = self._target, self._precision
        factor = batch_factor(self._view, work, units, target.batch_ratio, self._growth)
        if target.new_gpu != target.gpu:
            factor = factor * gpu_factor(work, self._matrix, target, precision)
        return factor

    def _half(self) -> Ints:
        """Per call 1 in an op that runs in half precision, 0 in one that does not, -1 where nothing decided."""
        ops, calls = self._view.profile.ops, self._view.profile.calls
        votes: dict[int, list[bool]] = defaultdict(list)
        for op in self._flow.ops:
            votes[int(calls.op[op.call])].append(op.half)
        of_op = np.full(len(ops), -1, dtype=np.int64)
        for row, answers in votes.items():
            of_op[row] = int(2 * sum(answers) > len(answers))
        return inherit(of_op[calls.op], of_op[calls.op] >= 0, self._view.call_parent)

    def _units(self, work: Launched) -> Ints:
        """Per row the call that is its unit, -1 for none: the matrix routine, else the outermost op."""
        matrix = self._matrix.of_call[work.call]
        routine = take_or(self._matrix.call, matrix, -1)
        other = self._unit_of_call[work.call]
        is_kernel = self._view.launch_is_kernel[work.launch]
        return np.where(is_kernel, np.where(routine >= 0, routine, other), -1)

    @cached_property
    def _unit_of_call(self) -> Ints:
        """The op that autocast decides on around a forward call; the outermost op around a backward one."""
        view = self._view
        decides = np.zeros(len(view.profile.calls.op), dtype=np.bool_)
        decides[[op.call for op in self._flow.ops]] = True
        deciding = nearest(decides, view.call_parent)
        return np.where(deciding >= 0, deciding, view.call_top)

    def _ratios(self, units: list[int], times_ns: list[float]) -> list[Ratio]:
        """Of units; those of one op whose times are hardly different share an answer."""
        keys = list(map(self._key, units, times_ns))
        found: dict[tuple[int, int, int] | None, Ratio | _Like] = {None: _UNCHANGED}
        for key, call in zip(keys, units, strict=True):
            if key is not None and key not in found:
                found[key] = self._looked_up(call, math.exp(key[2] * _SAME_TIME))
        # Many layers are alike, too.
        measured = self._measured(dict.fromkeys(one for one in found.values() if isinstance(one, _Like)))
        return [measured[one] if isinstance(one, _Like) else one for one in map(found.__getitem__, keys)]

    def _key(self, call: int, time_ns: float) -> tuple[int, int, int] | None:
        """The op of a unit, the outermost one around it, and its time; None without one."""
        if time_ns <= 0:
            return None
        calls, top = self._view.profile.calls, int(self._view.call_top[call])
        return int(calls.op[call]), int(calls.op[top]) if top >= 0 else -1, round(math.log(time_ns) / _SAME_TIME)

    def _looked_up(self, call: int, time_ns: float) -> Ratio | _Like:
        matrix = int(self._matrix.of_call[call]) if len(self._matrix) else -1
        if matrix >= 0:
            return self._matrix_ratio(matrix, call, time_ns)
        if self._precision == "tf32" or not self._is_half(call):
            return _UNCHANGED
        view, ops, strings = self._view, self._view.profile.ops, self._view.profile.strings
        op = int(view.profile.calls.op[call])
        backward = int(ops.role[op]) == Role.BACKWARD
        name = strings[ops.op_type[op]].rstrip("_")
        direction = "bprop" if backward else "fprop"
        last = int(ops.module[op]) in self._channels_last
        if self._is_measured(kind := f"{name} {direction}"):
            return _Like(kind, other_features(time_ns, self._per_channel(call), last))
        # Next to its routine a product adds, copies and sums.
        pointwise = name in ELEMENTWISE or rule_of(name) == "half"
        if pointwise and self._is_measured(kind := f"{_POINTWISE} {direction}"):
            return _Like(kind, other_features(time_ns, 1.0, False))
        return _UNMEASURED

    def _is_measured(self, kind: str, base: str = "fp32") -> bool:
        return self._times.table(kind, self._precision, base) is not None

    def _measured(self, likes: Iterable[_Like]) -> dict[_Like, Ratio]:
        """The ratios by the measured ops."""
        alike: dict[tuple[str, str], list[_Like]] = defaultdict(list)
        for one in likes:
            alike[one.kind, one.base].append(one)
        found: dict[_Like, Ratio] = {}
        for (kind, base), ops in alike.items():
            table = self._times.table(kind, self._precision, base)
            assert table is not None
            further = 0.0 if self._target.gpu in self._times.gpus[kind] else CALIBRATION.other_gpu_spread
            for one, ratio in zip(ops, table.ratios([one.features for one in ops]), strict=True):
                found[one] = replace(ratio, spread=ratio.spread + further)
        return found

    def _matrix_ratio(self, matrix: int, call: int, time_ns: float) -> Ratio | _Like:
        base = self._base(call)
        if self._precision == "tf32" and (base == "tf32" or self._is_library_choice(call)):
            return _UNCHANGED
        if self._precision != "tf32" and not self._is_half(call):
            return _UNCHANGED
        routine = self._routine(matrix, call)
        if routine is None:
            return _OF_UNKNOWN_SIZE
        last = int(self._view.profile.ops.module[self._view.profile.calls.op[call]]) in self._channels_last
        features = matrix_features(
            routine.name, routine.shapes, routine.flops, routine.moved, time_ns, self._target.ceilings, last
        )
        return _Like(routine.kind, features, base) if self._is_measured(routine.kind, base) else _UNMEASURED

    def _base(self, call: int) -> str:
        """What a routine ran in."""
        return "tf32" if self._in_tf32[int(self._view.profile.calls.op[call])] else "fp32"

    @cached_property
    def _in_tf32(self) -> Bools:
        """Per row of `Profile.ops` whether most of the time of the products in its calls was in TF32."""
        view, profile = self._view, self._view.profile
        launches, matrix = profile.launches, self._matrix
        rows = np.flatnonzero(view.launch_computes_product & (launches.call >= 0))
        routine = matrix.of_call[launches.call[rows]] if len(matrix) else np.full(len(rows), -1)
        rows, routine = rows[routine >= 0], routine[routine >= 0]
        op = profile.calls.op[matrix.call[routine]] if len(matrix) else routine
        tf32 = profile.kernels_where(precision="tf32")
        every = np.bincount(op, weights=launches.duration_ns[rows], minlength=len(profile.ops))
        part = np.bincount(
            op, weights=launches.duration_ns[rows] * tf32[launches.kernel[rows]], minlength=len(profile.ops)
        )
        return 2 * part > every

    def _is_library_choice(self, call: int) -> bool:
        """Whether TF32 is on for products of this kind."""
        name = self._view.profile.call_name(call)
        of_cudnn = is_convolution(name) or is_recurrent(name)
        settings = run_settings(self._view)
        return bool(settings.cudnn_tf32 if of_cudnn else settings.matmul_tf32)

    def _growth(self, call: int) -> float:
        """How many times as long a unit takes with the new batch size."""
        target = self._target
        matrix = int(self._matrix.of_call[call]) if len(self._matrix) else -1
        routine = self._routine(matrix, call) if matrix >= 0 else None
        if routine is None:
            return target.batch_ratio
        ratio, ceilings = target.batch_ratio, target.ceilings
        fixed = _FP32_BYTES * parameter_elements(routine.kind, routine.shapes, self._flow.parameter_shapes)
        before = least_ns(routine.flops, routine.moved, ceilings)
        after = least_ns(routine.flops * ratio, fixed + (routine.moved - fixed) * ratio, ceilings)
        precision = self._precision if self._precision == "tf32" or self._is_half(call) else self._base(call)
        key = (routine.kind, precision, before, after)
        if key not in self._grown:
            self._grown[key] = self._times.growth(*key)
        return self._grown[key]

    def _routine(self, matrix: int, call: int) -> _Routine | None:
        """None where its work or its kind is not known."""
        ops, strings = self._view.profile.ops, self._view.profile.strings
        op = int(self._view.profile.calls.op[call])
        flops, moved = int(self._matrix.flops[matrix]), int(self._matrix.bytes[matrix])
        if flops == UNKNOWN or moved == UNKNOWN or flops <= 0 or moved <= 0:
            return None
        name, shapes = strings[ops.name[op]], self._view.profile.shapes_of(op)
        kind = matrix_kind(name, shapes, flops)
        return _Routine(kind, name, shapes, flops, moved) if kind else None

    def _is_half(self, call: int) -> bool:
        view, ops = self._view, self._view.profile.ops
        top = int(view.call_top[call])
        op = int(view.profile.calls.op[top if top >= 0 else call])
        if int(ops.role[op]) == Role.BACKWARD:
            return self._flow.backward_half.get((int(ops.module[op]), int(ops.op_type[op])), False)
        return int(self._half_calls[call]) == 1

    def _per_channel(self, call: int) -> float:
        """Values per channel of a batch norm's images, else 1. Autograd nodes have no shapes: the ops inside have."""
        view, ops, strings = self._view, self._view.profile.ops, self._view.profile.strings
        calls = view.profile.calls
        if strings[ops.op_type[calls.op[call]]] != "batch_norm":
            return 1.0
        for row in range(call, min(call + _NEAR, len(calls.op))):
            if row > call and calls.depth[row] <= calls.depth[call]:
                break
            tensors = tensors_of(view.profile.shapes_of(int(calls.op[row])))
            images = next((shape for shape in tensors if len(shape) == 4), None)
            if images and images[1]:
                return float(math.prod(images)) / int(images[1])
        return 1.0

    def _modules_with_channels_last(self) -> frozenset[int]:
        """Modules whose images have their channels last.

        A forward convolution shows it by its kernels' names; what comes after it takes its layout, until the next one.
        """
        view, profile, ops = self._view, self._view.profile, self._view.profile.ops
        named = profile.kernels_where(name=lambda name: "nhwc" in name.lower())
        if not len(named) or not named.any():
            return frozenset()
        convolution = profile.ops_named(lambda name: "conv" in name) & (ops.role != Role.BACKWARD)
        op = view.launch_op
        # cuDNN's kernels in TF32 want the channels last, whatever the images have: it then converts them itself.
        converts = np.zeros(len(ops), dtype=np.bool_)
        layout = profile.kernels_where(family="transpose")
        converts[op[layout[profile.launches.kernel] & (op >= 0)]] = True
        shows = named[profile.launches.kernel] & (op >= 0)
        shows &= take_or(convolution & ~(converts & self._in_tf32), op, False)
        last = np.unique(ops.module[op[shows]])
        # Calls are in order of time: each takes the answer of the last convolution before it.
        called = profile.calls.op
        rows = np.flatnonzero(convolution[called])
        before = np.searchsorted(rows, np.arange(len(called)), side="right") - 1
        follows = take_or(np.isin(ops.module[called[rows]], last), before, False)
        return frozenset(np.unique(ops.module[called[follows & (ops.role[called] == Role.FORWARD)]]).tolist())


def batch_factor(
    view: ProfileView, work: Launched, units: Ints, ratio: float, growth: Callable[[int], float]
) -> np.ndarray:  # type: ignore[type-arg]
    """Per row of ``work``, with a batch ``ratio`` times as large. The optimizer's kernels keep their time.

    Args:
        view: the run.
        work: its launches.
        units: per row the call that is its unit, -1 for none.
        ratio: new batch size over the run's.
        growth: of a unit.
    """
    if ratio == 1:
        return np.ones(len(work.launch))
    of_batch = view.profile.ops.role[view.profile.calls.op[work.call]] != Role.OPTIMIZER
    factor = np.where(of_batch, ratio, 1.0)
    rows = np.flatnonzero((units >= 0) & of_batch)
    unit, number = np.unique(units[rows], return_inverse=True)
    factor[rows] = np.array([growth(call) for call in unit.tolist()], dtype=np.float64)[number]
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
