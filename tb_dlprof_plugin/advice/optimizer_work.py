"""Kernels of the optimizer's steps: for single parameters, over lists of parameters, or fused."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.closures import closure_ends
from tb_dlprof_plugin.model.dtypes import dtype_named
from tb_dlprof_plugin.model.intervals import Intervals, covered, union
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Role
from tb_dlprof_plugin.model.shapes import InputShapes, TensorList, tensors_of
from tb_dlprof_plugin.model.tree import nearest
from tb_dlprof_plugin.names.ops import OPTIMIZER_STEP, ZERO_GRAD
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.call_names import calls_named

_LISTS = "aten::_foreach_"
_FUSED = "aten::_fused_"
_TENSOR_LIST = dtype_named("TensorList")
_LONG = 1_000
"""Elements assumed for a list of unknown length."""


@dataclass(frozen=True, slots=True)
class OptimizerWork:
    """Optimizer work in the selected iterations; masks are over `Profile.launches`.

    Attributes:
        steps: times of the CPU in ``Optimizer.step`` (ns), disjoint and in order; without the closure that it calls.
        single: kernels of ops on one tensor each.
        lists: kernels of ``aten::_foreach_*`` ops.
        fused: kernels of ``aten::_fused_*`` ops.
        others: kernels of other ops, such as those of a CUDA extension.
        cpu_ns: duration of the steps per iteration.
        list_ops: calls of ``aten::_foreach_*`` ops in them per iteration.
        optimizer: the class's name in the annotation, "" for none.
    """

    steps: Intervals
    single: Bools
    lists: Bools
    fused: Bools
    others: Bools
    cpu_ns: float
    list_ops: float
    optimizer: str

    @property
    def kernels(self) -> Bools:
        """All optimizer kernels."""
        return self.single | self.lists | self.fused | self.others


@per_selection
def optimizer_work(view: ProfileView, selection: Selection) -> OptimizerWork:
    """The steps that begin in the selected iterations."""
    profile = view.profile
    calls, strings = profile.calls, profile.strings
    steps = calls_named(view, CallKind.ANNOTATION, lambda name: name.startswith(OPTIMIZER_STEP))
    steps &= view.selected_calls(selection)
    windows = _without_closures(view, union(calls.start_ns[steps], calls.start_ns[steps] + calls.duration_ns[steps]))
    inside = within(view, windows) & view.launch_is_kernel
    of_lists = calls_named(view, CallKind.OP, lambda name: name.startswith(_LISTS))
    lists = _in_op(view, _LISTS)
    fused = _in_op(view, _FUSED)
    names = {strings[i] for i in profile.ops.name[calls.op[steps]].tolist()}
    op = view.launch_op
    return OptimizerWork(
        steps=windows,
        single=inside & (op >= 0) & ~lists & ~fused,
        lists=inside & lists,
        fused=inside & fused,
        others=inside & (op < 0),
        cpu_ns=float((windows[1] - windows[0]).sum()) / selection.count,
        list_ops=int((of_lists & (covered(windows, calls.start_ns, calls.start_ns + 1) > 0)).sum()) / selection.count,
        optimizer=min(names, default="").removeprefix(OPTIMIZER_STEP).partition(".")[0],
    )


def _without_closures(view: ProfileView, steps: Intervals) -> Intervals:
    """The steps from where the closure that they were given has ended."""
    profile = view.profile
    calls = profile.calls
    marks = np.isin(profile.ops.role[calls.op], (Role.FORWARD, Role.BACKWARD))
    start_ns = calls.start_ns[marks]
    return closure_ends(*steps, start_ns, start_ns + calls.duration_ns[marks]), steps[1]


@per_selection
def zeroing(view: ProfileView, selection: Selection) -> Intervals:
    """Times of the CPU in ``Optimizer.zero_grad`` in the selected iterations (ns), disjoint and in order."""
    calls = view.profile.calls
    rows = calls_named(view, CallKind.ANNOTATION, lambda name: name.startswith(ZERO_GRAD))
    rows &= view.selected_calls(selection)
    return union(calls.start_ns[rows], calls.start_ns[rows] + calls.duration_ns[rows])


def within(view: ProfileView, windows: Intervals) -> Bools:
    """Which launches were called in the disjoint windows."""
    calls, launches = view.profile.calls, view.profile.launches
    at = take_or(calls.start_ns, launches.call, -1)
    result: Bools = (launches.call >= 0) & (covered(windows, at, at + 1) > 0)
    return result


def list_sizes(shapes: InputShapes, at: int) -> list[int] | None:
    """Elements of each tensor of an input that is a tensor or a list of tensors; None where it was not recorded."""
    given = shapes[at] if at < len(shapes) else None
    if given is None:
        return None
    return [math.prod(shape) for shape in (given if isinstance(given, TensorList) else (given,))]


def passes_over_parameters(view: ProfileView, launches: Bools) -> float | None:
    """How many elements the ops behind these launches move for each element of a parameter.

    Each input is read once, and one is written. Each op goes through all parameters, some several times: the op with
    the fewest elements gives their number. Shapes of long lists are not recorded; then all lists count as equally long.
    None where data types were not recorded, or for single tensors their shapes.
    """
    profile = view.profile
    moved = 0
    elements: Counter[int] = Counter()
    tensors: Counter[int] = Counter()
    calls = Counter(_calls(view, launches))
    unknown = any(not _list_known(profile.shapes_of(op)) for op in calls)
    for op, number in calls.items():
        shapes, dtypes = profile.shapes_of(op), profile.dtypes_of(op)
        lists, name = dtypes.count(_TENSOR_LIST), int(profile.ops.name[op])
        sizes = [_LONG] if lists and unknown else list_sizes(shapes, 0)
        if sizes is None or not dtypes:
            return None
        first = sum(sizes)
        moved += number * (first + (lists * first if lists else _inputs(shapes)))
        elements[name] += number * first
        tensors[name] += number * len(sizes)
    most = max(tensors.values(), default=0)
    # Steps counted on the GPU go over tensors of one element.
    parameters = [elements[name] for name in elements if 2 * tensors[name] >= most and elements[name] > tensors[name]]
    return moved / min(parameters) if parameters else None


def _list_known(shapes: InputShapes) -> bool:
    """Whether the first input is a list of tensors whose shapes were recorded."""
    return bool(shapes) and isinstance(shapes[0], TensorList)


def _calls(view: ProfileView, launches: Bools) -> list[int]:
    """The op of each call of the optimizer's behind the launches: one over lists launches several kernels."""
    calls = view.profile.calls
    launched = view.profile.launches.call[launches]
    around = nearest(calls_named(view, CallKind.OP, lambda name: name.startswith(_LISTS)), view.call_parent)
    innermost = nearest((view.profile.ops.kind == CallKind.OP)[calls.op], view.call_parent)
    call = np.where(around[launched] >= 0, around[launched], innermost[launched])
    found: list[int] = calls.op[np.unique(call[call >= 0])].tolist()
    return found


def _inputs(shapes: InputShapes) -> int:
    """Elements of all inputs that are tensors with dimensions."""
    return sum(map(math.prod, tensors_of(shapes)))


def _in_op(view: ProfileView, prefix: str) -> Bools:
    """Which launches lie in an op whose name begins so."""
    around = nearest(calls_named(view, CallKind.OP, lambda name: name.startswith(prefix)), view.call_parent)
    call = view.profile.launches.call
    result: Bools = take_or(around >= 0, call, False)
    return result
