"""New kernel times of a run's launches in another precision.

A unit is a matrix routine or another op of the model; all its kernels get the same factor. Matrix routines and ops that
autocast runs in half precision take the factor of the measured ops most like them (`op_times`); everything else keeps
its time. In TF32 only matrix routines change.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from tb_dlprof_plugin.comparison.forecast.dtype_flow import Flow
from tb_dlprof_plugin.comparison.forecast.features import Features, matrix_features, matrix_kind, other_features
from tb_dlprof_plugin.comparison.forecast.launched import Launched, recorded_ns
from tb_dlprof_plugin.comparison.forecast.op_times import OpTimes, Ratio
from tb_dlprof_plugin.comparison.forecast.target import Precision, Target
from tb_dlprof_plugin.measures.flops import UNKNOWN, matrix_calls
from tb_dlprof_plugin.measures.frame import Frame
from tb_dlprof_plugin.storage.model import Ints, KernelKind, Role
from tb_dlprof_plugin.storage.tree import inherit, nearest

SHORTEST_KERNEL_NS = 1_200.0
"""No kernel of the recordings is shorter."""
_POINTWISE = "mul"
"""Measured stand-in for ops that were not measured: reads and writes each value."""
_UNCHANGED = Ratio(1.0, 0.0)
_UNKNOWN_SPREAD = 0.5
_SAME_TIME = 0.02
"""Logarithms of times are rounded to this: kernels of one op differ by as much from iteration to iteration."""
_NEAR = 8
"""Calls below an autograd node among which the op itself is found."""


@dataclass(frozen=True)
class KernelTimes:
    """Per row of `Launched`: new time (ns), its logarithm's spread, and whether it changes."""

    gpu_ns: np.ndarray  # type: ignore[type-arg]
    spread: np.ndarray  # type: ignore[type-arg]
    changed: np.ndarray  # type: ignore[type-arg]


class KernelTimesOf:
    """Gives the kernel times of a run's launches in one precision, batch size and GPU."""

    def __init__(self, frame: Frame, flow: Flow, precision: Precision, times: OpTimes, target: Target) -> None:
        self._frame, self._flow, self._target = frame, flow, target
        self._precision, self._times = precision, times
        self._matrix = matrix_calls(frame, frame.selection())
        self._channels_last = self._modules_with_channels_last()
        self._half_calls = self._half()
        self._ratios: dict[tuple[int, int, int], Ratio] = {}
        self._found: dict[tuple[str, Features], Ratio | None] = {}

    def of(self, work: Launched) -> KernelTimes:
        """In the new precision, with the new batch size, on the new GPU."""
        old = recorded_ns(self._frame, work)
        new, spread = old.copy(), np.zeros(len(old))
        if self._precision != "fp32":
            units = self._units(work)
            rows = np.flatnonzero(units >= 0)
            unit, number = np.unique(units[rows], return_inverse=True)
            total = np.bincount(number, weights=old[rows], minlength=len(unit))
            ratios = [self._ratio(*one) for one in zip(unit.tolist(), total.tolist(), strict=True)]
            value = np.array([ratio.value for ratio in ratios])[number]
            new[rows] = np.maximum(old[rows] * value, np.minimum(SHORTEST_KERNEL_NS, old[rows]))
            spread[rows] = np.array([ratio.spread for ratio in ratios])[number]
        changed = new != old
        return KernelTimes(self._scaled(work, new), spread, changed)

    def _scaled(self, work: Launched, times: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        """With the batch size and the GPU: what a kernel takes above the shortest grows with both."""
        target, frame = self._target, self._frame
        factor = np.ones(len(times))
        if target.batch_ratio != 1:
            of_batch = frame.profile.ops.role[frame.profile.calls.op[work.call]] != Role.OPTIMIZER
            factor = np.where(of_batch, target.batch_ratio, 1.0)
        if target.new_gpu != target.gpu:
            factor = factor * self._gpu_factor(work)
        if (factor == 1).all():
            return times
        shortest: np.ndarray = np.minimum(times, SHORTEST_KERNEL_NS)  # type: ignore[type-arg]
        shortest += (times - shortest) * factor
        return shortest

    def _gpu_factor(self, work: Launched) -> np.ndarray:  # type: ignore[type-arg]
        """Peak rates of the run's GPU over those of the other, for matrix routines; memory bandwidth for the rest.

        A matrix routine is taken for bound by arithmetic where its FLOPs per byte say so on the run's GPU.
        """
        target = self._target
        old, new = target.ceilings, target.new_ceilings
        memory = old.bytes_per_second / new.bytes_per_second
        factor = np.full(len(work.launch), memory)
        if not len(self._matrix):
            return factor
        on_tensor_cores = self._precision != "fp32"
        old_rate = old.flops_per_second(self._precision, on_tensor_cores)
        new_rate = new.flops_per_second(self._precision, on_tensor_cores)
        if old_rate is None or new_rate is None:
            return factor
        at = self._matrix.of_call[work.call]
        intensity = self._matrix.flops / np.maximum(self._matrix.bytes, 1)
        by_arithmetic = (at >= 0) & (intensity[np.maximum(at, 0)] > old_rate / old.bytes_per_second)
        return np.where(by_arithmetic, old_rate / new_rate, factor)

    def _half(self) -> Ints:
        """Per call 1 in an op that runs in half precision, 0 in one that does not, -1 where nothing decided."""
        ops, calls = self._frame.profile.ops, self._frame.profile.calls
        votes: dict[int, list[bool]] = defaultdict(list)
        for op in self._flow.ops:
            votes[int(calls.op[op.call])].append(op.half)
        of_op = np.full(len(ops), -1, dtype=np.int64)
        for row, answers in votes.items():
            of_op[row] = int(2 * sum(answers) > len(answers))
        return inherit(of_op[calls.op], of_op[calls.op] >= 0, self._frame.call_parent)

    def _units(self, work: Launched) -> Ints:
        """Per row the call that is its unit, -1 for none: the matrix routine, else the outermost op."""
        frame = self._frame
        kernels = frame.profile.kernels
        matrix = self._matrix.of_call[work.call]
        routine = np.where(matrix >= 0, self._matrix.call[np.maximum(matrix, 0)], -1) if len(self._matrix) else matrix
        other = self._unit_of_call[work.call]
        is_kernel = kernels.kind[frame.profile.launches.kernel[np.maximum(work.launch, 0)]] == KernelKind.KERNEL
        return np.where((work.launch >= 0) & is_kernel, np.where(routine >= 0, routine, other), -1)

    @cached_property
    def _unit_of_call(self) -> Ints:
        """The op that autocast decides on around a forward call; the outermost op around a backward one."""
        frame = self._frame
        decides = np.zeros(len(frame.profile.calls.op), dtype=np.bool_)
        decides[[op.call for op in self._flow.ops]] = True
        deciding = nearest(decides, frame.call_parent)
        return np.where(deciding >= 0, deciding, frame.call_top)

    def _ratio(self, call: int, time_ns: float) -> Ratio:
        """Of a unit; those of one op whose times are hardly different share an answer."""
        if time_ns <= 0:
            return _UNCHANGED
        step = round(math.log(time_ns) / _SAME_TIME)
        calls, top = self._frame.profile.calls, int(self._frame.call_top[call])
        key = (int(calls.op[call]), int(calls.op[top]) if top >= 0 else -1, step)
        if key not in self._ratios:
            self._ratios[key] = self._looked_up(call, math.exp(step * _SAME_TIME))
        return self._ratios[key]

    def _looked_up(self, call: int, time_ns: float) -> Ratio:
        matrix = int(self._matrix.of_call[call]) if len(self._matrix) else -1
        if matrix >= 0:
            return self._matrix_ratio(matrix, call, time_ns)
        if self._precision == "tf32" or not self._is_half(call):
            return _UNCHANGED
        frame, ops, strings = self._frame, self._frame.profile.ops, self._frame.profile.strings
        op = int(frame.profile.calls.op[call])
        backward = int(ops.role[op]) == Role.BACKWARD
        name = strings[ops.op_type[op]].rstrip("_")
        direction = "bprop" if backward else "fprop"
        last = int(ops.module[op]) in self._channels_last
        found = self._measured(f"{name} {direction}", other_features(time_ns, self._per_channel(call), last))
        if found is None:
            found = self._measured(f"{_POINTWISE} {direction}", other_features(time_ns, 1.0, False))
        return found or _UNCHANGED

    def _measured(self, kind: str, features: Features) -> Ratio | None:
        """By the measured ops; layers that are alike ask for the same."""
        key = (kind, features)
        if key not in self._found:
            self._found[key] = self._times.ratio(kind, self._precision, features)
        return self._found[key]

    def _matrix_ratio(self, matrix: int, call: int, time_ns: float) -> Ratio:
        frame, ops, strings = self._frame, self._frame.profile.ops, self._frame.profile.strings
        op = int(frame.profile.calls.op[call])
        if self._precision != "tf32" and not self._is_half(call):
            return _UNCHANGED
        name = strings[ops.name[op]]
        flops, moved = int(self._matrix.flops[matrix]), int(self._matrix.bytes[matrix])
        if flops == UNKNOWN or moved == UNKNOWN or flops <= 0 or moved <= 0:
            return Ratio(1.0, _UNKNOWN_SPREAD)
        shapes = msgspec.json.decode(strings[ops.shapes[op]].encode())
        kind = matrix_kind(name, shapes, flops)
        last = int(ops.module[op]) in self._channels_last
        if not kind:
            return Ratio(1.0, _UNKNOWN_SPREAD)
        features = matrix_features(name, shapes, flops, moved, time_ns, self._target.ceilings, last)
        return self._measured(kind, features) or Ratio(1.0, _UNKNOWN_SPREAD)

    def _is_half(self, call: int) -> bool:
        frame, ops = self._frame, self._frame.profile.ops
        top = int(frame.call_top[call])
        op = int(frame.profile.calls.op[top if top >= 0 else call])
        if int(ops.role[op]) == Role.BACKWARD:
            return self._flow.backward_half.get((int(ops.module[op]), int(ops.op_type[op])), False)
        return int(self._half_calls[call]) == 1

    def _per_channel(self, call: int) -> float:
        """Values per channel of a batch norm's images, else 1. Autograd nodes have no shapes: the ops inside have."""
        frame, ops, strings = self._frame, self._frame.profile.ops, self._frame.profile.strings
        calls = frame.profile.calls
        if strings[ops.op_type[calls.op[call]]] != "batch_norm":
            return 1.0
        for row in range(call, min(call + _NEAR, len(calls.op))):
            if row > call and calls.depth[row] <= calls.depth[call]:
                break
            text = strings[ops.shapes[calls.op[row]]]
            shapes = msgspec.json.decode(text.encode()) if text else []
            images = next((s for s in shapes if isinstance(s, list) and len(s) == 4), None)
            if images and images[1]:
                return float(math.prod(images)) / int(images[1])
        return 1.0

    def _modules_with_channels_last(self) -> frozenset[int]:
        """Modules whose images have their channels last.

        A forward convolution shows it by its kernels' names; what comes after it takes its layout, until the next one.
        """
        frame, strings = self._frame, self._frame.profile.strings
        profile, ops = frame.profile, frame.profile.ops
        named = np.array(["nhwc" in strings[name].lower() for name in profile.kernels.name], dtype=np.bool_)
        if not len(named) or not named.any():
            return frozenset()
        is_convolution = np.array(["conv" in strings[name] for name in ops.name.tolist()], dtype=np.bool_)
        convolution = is_convolution & (ops.role != Role.BACKWARD)
        op = frame.launch_op
        shows = named[profile.launches.kernel] & (op >= 0) & convolution[np.maximum(op, 0)]
        last = np.unique(ops.module[op[shows]])
        # Calls are in order of time: each takes the answer of the last convolution before it.
        called = profile.calls.op
        rows = np.flatnonzero(convolution[called])
        before = np.searchsorted(rows, np.arange(len(called)), side="right") - 1
        follows = (before >= 0) & np.isin(ops.module[called[rows]], last)[np.maximum(before, 0)]
        return frozenset(np.unique(ops.module[called[follows & (ops.role[called] == Role.FORWARD)]]).tolist())
