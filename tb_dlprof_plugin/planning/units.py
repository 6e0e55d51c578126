"""The units of a run whose kernels change together with the precision, the batch size or the GPU.

A unit is a matrix routine or another op of the model. What a forecast asks of them depends on the run alone, so that
the forecasts of a run in several precisions and batch sizes share it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_dlprof_plugin.metrics.flops import UNKNOWN, matrix_calls
from tb_dlprof_plugin.metrics.matrix_work import work_of, wrapped_convolution
from tb_dlprof_plugin.model.dtypes import FLOAT
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints, Role
from tb_dlprof_plugin.model.shapes import InputShapes, tensors_of
from tb_dlprof_plugin.model.tree import inherit, nearest
from tb_dlprof_plugin.names.gpu_peaks import Ceilings
from tb_dlprof_plugin.planning.compiled import compiled_code
from tb_dlprof_plugin.planning.dtype_flow import Flow
from tb_dlprof_plugin.planning.features import Features, matrix_kind, matrix_sizes, matrix_times, other_features
from tb_dlprof_plugin.profile_view import ProfileView

_SAME_TIME = 0.02
"""Logarithms of times are rounded to this: kernels of one op differ by as much from iteration to iteration."""
_NEAR = 8
"""Calls below an autograd node among which the op itself is found."""


@dataclass(frozen=True, slots=True)
class Routine:
    """A matrix routine: its kind among the measured ones, shapes of its inputs, FLOPs, least bytes, and the part of its
    features that does not depend on its time."""

    kind: str
    name: str
    shapes: InputShapes
    flops: int
    moved: int
    sizes: Features


@dataclass(frozen=True, slots=True)
class Alike:
    """Units with the same answer: for each group the first unit and its time (ns), 0 without one; and per unit its
    group."""

    unit: list[int]
    time_ns: list[float]
    group: Ints


class Units:
    """The units of a run, as autocast would run them in ``flow``."""

    def __init__(self, view: ProfileView, flow: Flow) -> None:
        self.view, self.flow = view, flow
        self.matrix = matrix_calls(view, view.selection())
        self.compiled = compiled_code(view)
        self.channels_last = self._modules_with_channels_last()
        self._routines: dict[tuple[int, int, int], Routine | None] = {}
        self._features: dict[tuple[int, float], Features] = {}

    @cached_property
    def of_call(self) -> Ints:
        """Per call the call that is its unit, -1 for none: the matrix routine, else the outermost op; in compiled code
        the generated kernel, and none for other library calls."""
        routine = take_or(self.matrix.call, self.matrix.of_call, -1)
        # The op that autocast decides on around a forward call; the outermost op around a backward one.
        view = self.view
        decides = np.zeros(len(view.profile.calls.op), dtype=np.bool_)
        decides[[op.call for op in self.flow.ops]] = True
        deciding = nearest(decides, view.call_parent)
        others = np.where(deciding >= 0, deciding, view.call_top)
        others = np.where(self.compiled.calls, self.compiled.generated, others)
        return np.where(routine >= 0, routine, others)

    def alike(self, units: Ints, times_ns: Floats) -> Alike:
        """The units of one op whose times are hardly different share an answer."""
        calls, top = self.view.profile.calls, self.view.call_top[units]
        timed = times_ns > 0
        steps = np.rint(np.log(np.where(timed, times_ns, 1.0)) / _SAME_TIME).astype(np.int64)
        count, longest = len(self.view.profile.ops) + 1, int(steps.max(initial=0)) + 1
        key = (calls.op[units] * count + take_or(calls.op, top, -1) + 1) * longest + np.maximum(steps, 0)
        _, first, group = np.unique(np.where(timed, key, -1), return_index=True, return_inverse=True)
        times = np.where(timed[first], np.exp(steps[first] * _SAME_TIME), 0.0)
        return Alike(units[first].tolist(), times.tolist(), group.reshape(-1))

    def routine(self, unit: int) -> Routine | None:
        """The matrix routine that a unit is; None where its work or its kind is not known."""
        profile, matrix = self.view.profile, int(self.matrix.of_call[unit])
        key = int(profile.calls.op[unit]), int(self.matrix.flops[matrix]), int(self.matrix.bytes[matrix])
        if key not in self._routines:
            self._routines[key] = self._found_routine(*key)
        return self._routines[key]

    def _found_routine(self, op: int, flops: int, moved: int) -> Routine | None:
        profile = self.view.profile
        if moved == UNKNOWN and profile.ops.compiled[op] >= 0:
            moved = self._bytes_in_fp32(op)
        if flops == UNKNOWN or moved == UNKNOWN or flops <= 0 or moved <= 0:
            return None
        name, shapes = profile.strings[profile.ops.name[op]], profile.shapes_of(op)
        if not (kind := matrix_kind(name, shapes, flops)):
            return None
        last = int(profile.ops.module[op]) in self.channels_last
        return Routine(kind, name, shapes, flops, moved, matrix_sizes(name, shapes, flops, moved, last))

    def _bytes_in_fp32(self, op: int) -> int:
        """Least bytes of a wrapper's call whose arguments the graph was given: a wrapper says their shapes alone."""
        profile = self.view.profile
        name, shapes = profile.strings[profile.ops.name[op]], profile.shapes_of(op)
        arguments = profile.strings[profile.compiled_kernels.arguments[profile.ops.compiled[op]]]
        dtypes = (FLOAT,) * len(shapes)
        work = wrapped_convolution(arguments, shapes, dtypes) if arguments else work_of(name, shapes, dtypes)
        return UNKNOWN if work is None or work.bytes is None else work.bytes

    def matrix_features(self, routine: Routine, time_ns: float, ceilings: Ceilings) -> Features:
        """Of a routine that took this time on a GPU."""
        return matrix_times(routine.flops, routine.moved, time_ns, ceilings) + routine.sizes

    def other_features(self, unit: int, time_ns: float) -> Features:
        """Of a unit that is no matrix routine."""
        key = unit, time_ns
        if key not in self._features:
            profile = self.view.profile
            last = int(profile.ops.module[profile.calls.op[unit]]) in self.channels_last
            self._features[key] = other_features(time_ns, self._per_channel(unit), last)
        return self._features[key]

    @cached_property
    def half(self) -> Bools:
        """Per call whether it would run in half precision."""
        view, ops, calls = self.view, self.view.profile.ops, self.view.profile.calls
        backward = np.array(
            [
                role == Role.BACKWARD and self.flow.backward_half.get((module, op_type), False)
                for role, module, op_type in zip(
                    ops.role.tolist(), ops.module.tolist(), ops.op_type.tolist(), strict=True
                )
            ],
            dtype=np.bool_,
        )
        op = calls.op[np.where(view.call_top >= 0, view.call_top, np.arange(len(calls.op)))]
        half = np.where(ops.role[op] == Role.BACKWARD, backward[op], self._half_forward())
        # What autocast left in compiled code are products and what is fused.
        return np.where(self.compiled.calls, self.matrix.of_call >= 0, half)

    def _half_forward(self) -> Bools:
        """Per call whether it is in an op that runs in half precision, by most of the op's calls in the flow."""
        ops, calls = self.view.profile.ops, self.view.profile.calls
        op = calls.op[np.array([op.call for op in self.flow.ops], dtype=np.int64)]
        half = np.array([op.half for op in self.flow.ops], dtype=np.float64)
        votes = np.bincount(op, minlength=len(ops))
        most = 2 * np.bincount(op, weights=half, minlength=len(ops)) > votes
        return inherit(most[calls.op], (votes > 0)[calls.op], self.view.call_parent)

    @cached_property
    def in_tf32(self) -> Bools:
        """Per row of `Profile.ops` whether most of the time of the products in its calls was in TF32."""
        view, profile, matrix = self.view, self.view.profile, self.matrix
        launches = profile.launches
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

    def _per_channel(self, call: int) -> float:
        """Values per channel of a batch norm's images, else 1. Autograd nodes have no shapes: the ops inside have."""
        view, ops, strings = self.view, self.view.profile.ops, self.view.profile.strings
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
        view, profile, ops = self.view, self.view.profile, self.view.profile.ops
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
        shows &= take_or(convolution & ~(converts & self.in_tf32), op, False)
        last = np.unique(ops.module[op[shows]])
        # Calls are in order of time: each takes the answer of the last convolution before it.
        called = profile.calls.op
        rows = np.flatnonzero(convolution[called])
        before = np.searchsorted(rows, np.arange(len(called)), side="right") - 1
        follows = take_or(np.isin(ops.module[called[rows]], last), before, False)
        return frozenset(np.unique(ops.module[called[follows & (ops.role[called] == Role.FORWARD)]]).tolist())


def units_of(view: ProfileView, flow: Flow) -> Units:
    """The units of a run, kept with the view: an entry holds its flow, so that no other one has the same id."""
    return view.kept((f"{__name__}.units_of", id(flow)), lambda: Units(view, flow))
