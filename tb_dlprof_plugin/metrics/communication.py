"""Collectives between GPUs on one rank: their time, the part that overlaps with nothing, and their bytes.

What of them waits for other ranks takes several of these to know: `fleet.answers`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.grouping import numbered
from tb_dlprof_plugin.model.intervals import Intervals, covered, union
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints
from tb_dlprof_plugin.model.shapes import InputShapes, TensorList
from tb_dlprof_plugin.model.tree import nearest
from tb_dlprof_plugin.names.ops import NCCL_CALL
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

_RANGES = ("nccl:", "gloo:")
"""Of PyTorch's process groups."""
_ONE_BYTE = 1


@dataclass(frozen=True, slots=True)
class CollectiveKernels:
    """The collective kernels of a selection in order of their start: columns.

    Attributes:
        launch: row of `Profile.launches`.
        iteration: index of the iteration that launched it.
        duration_ns: time from start to end.
        exposed_ns: the part of it in which nothing else ran on its GPU.
        bytes: input of each rank, -1 where not recorded.
    """

    launch: Ints
    iteration: Ints
    duration_ns: Ints
    exposed_ns: Ints
    bytes: Ints

    def __len__(self) -> int:
        return len(self.launch)


def is_collective(view: ProfileView) -> Bools:
    """Per row of `Profile.launches`."""
    return view.launch_is_collective


@per_selection
def collectives(view: ProfileView, selection: Selection) -> CollectiveKernels:
    """The collective kernels that the selected iterations launched."""
    launches = view.profile.launches
    rows = np.flatnonzero(is_collective(view) & view.selected_launches(selection))
    start = launches.start_ns[rows]
    return CollectiveKernels(
        launch=rows,
        iteration=view.launch_iteration[rows],
        duration_ns=launches.duration_ns[rows],
        exposed_ns=exposed_ns(view, rows, start),
        bytes=bytes_of(view, rows),
    )


def other_work(view: ProfileView, device: int) -> Intervals:
    """Times in which a GPU ran anything but collectives."""
    launches = view.profile.launches
    rows = ~is_collective(view) & (launches.device == device)
    return union(launches.start_ns[rows], launches.start_ns[rows] + launches.duration_ns[rows])


def exposed_ns(view: ProfileView, rows: Ints, start: Ints) -> Ints:
    """Of each activity from ``start`` to its end, the time in which its GPU ran nothing but collectives."""
    launches = view.profile.launches
    stop = launches.start_ns[rows] + launches.duration_ns[rows]
    result = stop - start
    for device in np.unique(launches.device[rows]).tolist():
        here = launches.device[rows] == device
        result[here] -= covered(other_work(view, device), start[here], stop[here])
    return result


def bytes_of(view: ProfileView, rows: Ints) -> Ints:
    """From the range that the process group puts around each collective."""
    calls, ops, strings = view.profile.calls, view.profile.ops, view.profile.strings
    sizes = np.array(
        [
            input_bytes(view.profile.shapes_of(op), view.profile.dtypes_of(op))
            if strings[name].startswith((*_RANGES, NCCL_CALL))
            else -1
            for op, name in enumerate(ops.name.tolist())
        ],
        dtype=np.int64,
    )
    # NCCL's own ranges lie in those of the process group, and may have no size.
    named = np.array([strings[name].startswith(_RANGES) for name in ops.name.tolist()], dtype=np.bool_) | (sizes >= 0)
    if not named.any():
        return np.full(len(rows), -1, dtype=np.int64)
    around = nearest(named[calls.op] & (ops.kind[calls.op] == CallKind.ANNOTATION), view.call_parent)
    call = view.profile.launches.call[rows]
    holder = take_or(around, call, -1)
    return np.where(holder >= 0, sizes[calls.op[np.maximum(holder, 0)]], -1)


def input_bytes(shapes: InputShapes, dtypes: InputDtypes) -> int:
    """Bytes of all inputs; -1 where they were not recorded."""
    if not shapes or len(shapes) != len(dtypes):
        return -1
    total = 0
    for shape, dtype in zip(shapes, dtypes, strict=True):
        if shape is None:
            return -1
        tensors = shape if isinstance(shape, TensorList) else (shape,)
        total += (dtype.element_bytes or _ONE_BYTE) * sum(map(math.prod, tensors))
    return total


@dataclass(frozen=True, slots=True)
class Slowdown:
    """Of the kernels that ran during a collective and also, with the same launch and op, without one (ns per step).

    Attributes:
        during_ns: time of collectives in which they ran.
        extra_ns: by how much they took longer than their likes without a collective.
    """

    during_ns: float
    extra_ns: float

    @property
    def share(self) -> float | None:
        """Time that a collective adds to other kernels, per time that it runs in parallel; None where none shows it."""
        return max(self.extra_ns, 0.0) / self.during_ns if self.during_ns else None


@per_selection
def communication_slowdown(view: ProfileView, selection: Selection) -> Slowdown:
    """Measured on kernels of the selected steps."""
    launches, collective = view.profile.launches, view.launch_is_collective
    rows = np.flatnonzero(view.launch_is_kernel & ~collective & view.selected_launches(selection))
    during = np.zeros(len(rows), dtype=np.int64)
    for device in np.unique(launches.device[rows]).tolist():
        running = collective & (launches.device == device)
        times = union(launches.start_ns[running], launches.start_ns[running] + launches.duration_ns[running])
        here = launches.device[rows] == device
        start = launches.start_ns[rows[here]]
        during[here] = covered(times, start, start + launches.duration_ns[rows[here]])
    which = numbered(launches.kernel[rows], launches.config[rows], view.launch_op[rows])
    alone = during == 0
    duration = launches.duration_ns[rows]
    count = np.bincount(which, weights=alone)
    mean = np.bincount(which, weights=np.where(alone, duration, 0)) / np.maximum(count, 1)
    known = ~alone & (count[which] > 0) if len(rows) else alone
    extra = float((duration - mean[which])[known].sum()) if len(rows) else 0.0
    return Slowdown(float(during[known].sum()) / selection.count, extra / selection.count)
