"""What another precision or batch does to code of torch.compile: its generated kernels, and the casts it would have.

A generated kernel reads its arguments and writes them, and takes as long as their bytes do; a short one takes as long
as the shortest does. Under autocast Inductor keeps in half precision what its products take and give; parameters and
statistics stay in FP32. So a kernel's time follows its bytes, where the trace has the shapes of its arguments, else it
is half of what it was to all of it. Library calls (products, convolutions, attention) are units like those of an eager
run, all of which run in half precision: autocast's casts are fused into the kernels around them. What is not fused is
the conversion of each weight and, in the backward pass, of its gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_dlprof_plugin.metrics.amp_calls import compiled_calls, in_calls
from tb_dlprof_plugin.metrics.flops import MatrixCalls
from tb_dlprof_plugin.model.dtypes import FLOAT, InputDtypes
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, Role
from tb_dlprof_plugin.model.shapes import InputShapes, Shape, TensorList
from tb_dlprof_plugin.model.tree import inherit
from tb_dlprof_plugin.names.compiled import is_generated, is_replayed_library
from tb_dlprof_plugin.names.cuda_calls import CudaCall
from tb_dlprof_plugin.names.tensor_core_eligibility import is_triton_template
from tb_dlprof_plugin.planning.op_times import Ratio
from tb_dlprof_plugin.profile_view import ProfileView, per_view

HALVED = 0.8
"""Share of a generated kernel's FP32 bytes, without parameters and statistics, that half precision halves: residuals
and what a norm keeps for its backward pass stay in FP32. With it, the generated kernels of seven models on an H100
(`lab.compiled.forecasts`, those opened), casts included, are forecast to take 0.85 to 1.00 of their time in BF16."""
HALVED_SPREAD = 0.15
"""Of the logarithm of the time that is left."""
_UNKNOWN_ARGUMENTS = Ratio(0.65, 0.25)
"""From half of the time to all of it. Ours; of the same models as CUDA graphs the forecast is 0.86 to 1.11."""
_SMALL = 16
"""Tensors this many times smaller than the largest one are parameters and statistics. Ours."""
SHORTEST_NS = 1_500.0
"""What a generated kernel takes that moves next to nothing, on an H100 and an H200."""
_COMPILING = " (dynamo_timed)"
_BY_HAND_PERCENT = 3.0
"""Of the GPU time in CUDA graphs outside of compiled code: beyond it nothing is said."""
_FEW_LAUNCHES = 16
"""With fewer the pace of a wrapper is unknown."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor that a generated kernel takes, its bytes, and whether it is in FP32."""

    shape: Shape
    bytes: int
    fp32: bool


class CompiledCode:
    """The compiled code of a run."""

    def __init__(self, view: ProfileView) -> None:
        self._view = view
        self.calls = compiled_calls(view)
        """Per row of `Profile.calls` whether it lies in compiled code."""
        profile = view.profile
        ops = profile.ops_named(is_generated) & (profile.ops.kind == CallKind.OP)
        own = ops[profile.calls.op] & self.calls
        rows = np.where(own, np.arange(len(own)), -1)
        self.generated: Ints = inherit(rows, own, view.call_parent)
        """Per row of `Profile.calls` the call of a generated kernel that it is or lies in, -1 for none."""
        self._arguments: dict[int, tuple[Argument, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self.calls.any())

    @cached_property
    def is_template(self) -> Bools:
        """Per row of `Profile.ops` whether it is a generated product, of which times were never measured."""
        return self._view.profile.ops_named(is_triton_template)

    @cached_property
    def unknown_replays(self) -> Bools:
        """Per row of `Profile.launches` whether a replay ran it as no known launch of a wrapper."""
        view = self._view
        direct = in_calls(view.is_cuda_call(CudaCall.GRAPH_LAUNCH) & self.calls, view.profile.launches.call)
        return direct | take_or(view.profile.ops_named(is_replayed_library), view.launch_op, False)

    def arguments(self, op: int) -> tuple[Argument, ...]:
        """The tensors of a generated kernel; () where they were not recorded."""
        if op not in self._arguments:
            profile = self._view.profile
            self._arguments[op] = _tensors(profile.shapes_of(op), profile.dtypes_of(op))
        return self._arguments[op]

    def in_half(self, op: int, parameters: frozenset[Shape]) -> Ratio:
        """What is left of the time of a generated kernel in half precision."""
        arguments = self.arguments(op)
        total = sum(one.bytes for one in arguments)
        if not total:
            return _UNKNOWN_ARGUMENTS
        largest = max(one.bytes for one in arguments)
        halved = sum(
            one.bytes
            for one in arguments
            if one.fp32 and _SMALL * one.bytes >= largest and not _is_one_of(one.shape, parameters)
        )
        if not halved and all(_is_one_of(one.shape, parameters) for one in arguments if one.fp32):
            # A weight in another layout: in half precision it is converted at the same time.
            return Ratio(0.75, HALVED_SPREAD) if len(arguments) == 2 else Ratio(1.0, 0.0)
        left = 1.0 - 0.5 * HALVED * halved / total
        return Ratio(left, HALVED_SPREAD * halved / total)

    def of_batch(self, op: int, parameters: frozenset[Shape], batch: int | None) -> float:
        """Share of a generated kernel's bytes that grows with the batch; 1 where its arguments were not recorded."""
        arguments = self.arguments(op)
        total = sum(one.bytes for one in arguments)
        if not total:
            return 1.0
        fixed = sum(
            one.bytes for one in arguments if _is_one_of(one.shape, parameters) or not _has_batch(one.shape, batch)
        )
        return 1.0 - fixed / total

    @cached_property
    def launch_ns(self) -> float:
        """Recorded CPU time from one launch of a wrapper to its next, the median; 0 where replays launch."""
        view, calls, launches = self._view, self._view.profile.calls, self._view.profile.launches
        replays = view.is_cuda_call(CudaCall.GRAPH_LAUNCH)
        wrapped = view.launch_is_kernel & in_calls(
            self.calls & ~inherit(replays, replays, view.call_parent), launches.call
        )
        rows = np.unique(launches.call[wrapped])
        if len(rows) < _FEW_LAUNCHES:
            return 0.0
        rows = rows[np.lexsort((calls.start_ns[rows], calls.thread[rows]))]
        return float(np.median(np.diff(calls.start_ns[rows])))

    def weights(self, matrix: MatrixCalls, parameters: frozenset[Shape]) -> list[tuple[int, int, bool]]:
        """The products of the forward pass that take a weight: the call of each, the weight's elements, and whether it
        takes a bias.

        Convolutions whose weight a generated kernel brings into another layout have none: it converts it as well.
        """
        profile = self._view.profile
        converted = {
            math.prod(arguments[0].shape)
            for op in np.unique(profile.calls.op[self.generated[self.generated >= 0]]).tolist()
            if len(arguments := self.arguments(op)) == 2 and arguments[0].shape == arguments[1].shape
        }
        found = list[tuple[int, int, bool]]()
        for call in matrix.call[self.calls[matrix.call]].tolist():
            op = int(profile.calls.op[call])
            if profile.ops.role[op] == Role.BACKWARD:
                continue
            name, shapes = profile.strings[profile.ops.name[op]], profile.shapes_of(op)
            weight = _weight(name, [one for one in shapes if one is not None and not isinstance(one, TensorList)])
            if weight is None or (parameters and not _is_one_of(weight, parameters)):
                continue
            if not ("conv" in name and math.prod(weight) in converted):
                found.append((call, math.prod(weight), name.endswith("::addmm")))
        return found


@per_view
def compiled_code(view: ProfileView) -> CompiledCode:
    """The compiled code of a run, kept with it."""
    return CompiledCode(view)


def why_not(view: ProfileView) -> str:
    """Why nothing can be said of the run's compiled code and CUDA graphs; "" where something can."""
    profile, launches, code = view.profile, view.profile.launches, compiled_code(view)
    inside = (view.launch_iteration >= 0) & (launches.call >= 0)
    call = launches.call
    replays = view.is_cuda_call(CudaCall.GRAPH_LAUNCH)
    replayed = inherit(replays, replays, view.call_parent)
    total = int(launches.duration_ns[inside].sum())
    outside = inside & in_calls(replayed & ~code.calls, call)
    if _BY_HAND_PERCENT * total < 100 * int(launches.duration_ns[outside].sum()):
        return (
            "its CUDA graphs were captured by hand, and autocast decides while they are captured: what they would "
            "hold cannot be forecast. Record the run without them."
        )
    selected = view.call_iteration >= 0
    if (profile.ops_named(lambda name: name.endswith(_COMPILING))[profile.calls.op] & selected).any():
        return (
            "cannot be said: code was compiled in the recorded steps, which then are longer than others. Record "
            "after the last compilation (the rule recompiles names its guard)."
        )
    captures = profile.ops_named(lambda name: "StreamBeginCapture" in name)[profile.calls.op]
    if (captures & selected & code.calls).any():
        return (
            "cannot be said: CUDA graphs were captured in the recorded steps. Record after three steps of warm-up, "
            "when they are replayed."
        )
    return ""


def _tensors(shapes: InputShapes, dtypes: InputDtypes) -> tuple[Argument, ...]:
    """None where a data type is not known."""
    found = []
    for shape, dtype in zip(shapes, dtypes, strict=False):
        if not shape or isinstance(shape, TensorList):
            continue
        if dtype.element_bytes is None:
            return ()
        found.append(Argument(shape, math.prod(shape) * dtype.element_bytes, dtype == FLOAT))
    return tuple(found)


def _is_one_of(shape: Shape, parameters: frozenset[Shape]) -> bool:
    return shape in parameters or shape[::-1] in parameters


def _has_batch(shape: Shape, batch: int | None) -> bool:
    """Whether the first size above 1 is that of batches, or of their rows."""
    first = next((size for size in shape if size > 1), 1)
    return first > 1 and (not batch or first % batch == 0)


def _weight(name: str, shapes: list[Shape]) -> Shape | None:
    """The weight among the inputs of a forward product."""
    if "conv" in name:
        return shapes[1] if len(shapes) > 1 and len(shapes[1]) > 2 else None
    matrices = [shape for shape in shapes if len(shape) == 2]
    if name.endswith(("::mm", "::addmm")) and len(matrices) >= 2:
        # An output may follow the two factors, a bias that was expanded may come before them.
        for at in range(len(matrices) - 1):
            if matrices[at][1] == matrices[at + 1][0]:
                return matrices[at + 1]
    return None
