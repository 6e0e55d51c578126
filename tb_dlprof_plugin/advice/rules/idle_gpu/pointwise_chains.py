"""Chains of pointwise kernels over tensors of one size, with nothing but small work between them: what could be fused.

A fused kernel reads what comes into the chain from outside and writes what leaves it; what lies between stays in
registers. Which tensor an op reads is not recorded, only shapes and data types. So three amounts of memory traffic are
given: each op's first input is taken for the result of the op before it, and its further inputs come from outside not
at all, by half, or all; in the last case half of the results between are written as well, for the backward pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.roofline import gpu_name
from tb_dlprof_plugin.model.dtypes import InputDtypes, element_bytes
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints, KernelKind, Role
from tb_dlprof_plugin.model.shapes import InputShapes, shape_at
from tb_dlprof_plugin.names.gpu_peaks import ceilings_of
from tb_dlprof_plugin.names.ops import COPY
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

CHAIN_KERNELS = 3
CHAIN_NS = 5_000
"""Kernels of a chain, and their mean time: shorter ones cost their launches more than the memory they move. Ours."""

_POINTWISE = frozenset(("elementwise", "copy", "random"))
_BARRIERS = frozenset(("gemm", "convolution", "attention"))
_NOT_IN_CHAINS = frozenset(("aten::fill_", "aten::zero_", "aten::ones_like", "aten::zeros_like"))
_FUSED = "triton_"
_REACHED = 0.8
"""Share of the memory bandwidth that a fused kernel over large tensors reaches; recorded pointwise kernels on an H200
reach 0.85 of 4.8 TB/s where all operands have one data type."""


@dataclass(frozen=True, slots=True)
class Chains:
    """Columns of one row per chain, by falling time; ``of_launch`` has the chain of each launch, or -1.

    Attributes:
        kernels: number of kernels in the chain.
        time_ns: their GPU time.
        moved: bytes that they read and write.
        fused_ns: time of a fused kernel, shape (chains, 3): at best, expected, at worst; never more than ``time_ns``.
        elements: of the tensors.
    """

    of_launch: Ints
    kernels: Ints
    time_ns: Ints
    moved: Ints
    fused_ns: Floats
    elements: Ints

    def __len__(self) -> int:
        return len(self.kernels)


@dataclass(frozen=True, slots=True)
class _Traffic:
    """Per row of `Profile.ops`: its name, elements of its largest input, bytes of such inputs, of the first, of the
    result."""

    name: Ints
    elements: Ints
    inputs: Ints
    first: Ints
    result: Ints


@per_selection
def chains(view: ProfileView, selection: Selection) -> Chains:
    """Chains launched in the selected iterations. At least `CHAIN_KERNELS` of their kernels compute, others cast."""
    launches = view.profile.launches
    rows, segment = _segments(view, selection)
    traffic = _traffic(view)
    op = np.maximum(view.launch_op[rows], 0)
    elements = traffic.elements[op] if len(traffic.elements) else np.zeros(len(rows), dtype=np.int64)
    member = _members(view)[rows] & (elements > 0)
    rows, segment, op, elements = rows[member], segment[member], op[member], elements[member]
    of_launch = np.full(len(launches), -1, dtype=np.int64)
    if not len(rows):
        none = np.zeros(0, dtype=np.int64)
        return Chains(of_launch, none, none, none, np.zeros((0, 3)), none)
    _, chain = np.unique(np.stack((segment, elements)), axis=1, return_inverse=True)
    chain = chain.reshape(-1)
    count = int(chain.max()) + 1
    duration = launches.duration_ns[rows]

    def total(values: Ints) -> Ints:
        return sums(chain, values, count)

    number, time = np.bincount(chain, minlength=count).astype(np.int64), total(duration)
    first, last = np.full(count, len(rows), dtype=np.int64), np.zeros(count, dtype=np.int64)
    np.minimum.at(first, chain, np.arange(len(rows)))
    np.maximum.at(last, chain, np.arange(len(rows)))
    inputs, results = traffic.inputs[op], traffic.result[op]
    moved = total(inputs + results)
    ends = traffic.first[op[first]] + results[last]
    further = total(inputs) - total(traffic.first[op])
    between = total(results) - results[last]
    rate = _rate(view, moved, time)
    bytes_moved = np.stack((ends, ends + further / 2, ends + further + between / 2), axis=1)
    fused = np.minimum(bytes_moved / rate[:, None], time[:, None])
    copies = np.isin(traffic.name[op], [i for i, name in enumerate(view.profile.strings) if name == COPY])
    computing = number - np.bincount(chain[copies], minlength=count)
    kept = (computing >= CHAIN_KERNELS) & (time >= CHAIN_NS * number)
    order = np.flatnonzero(kept)[np.argsort(-time[kept], kind="stable")]
    position = np.full(count, -1, dtype=np.int64)
    position[order] = np.arange(len(order))
    of_launch[rows] = position[chain]
    return Chains(of_launch, number[order], time[order], moved[order], fused[order], elements[first[order]])


def _segments(view: ProfileView, selection: Selection) -> tuple[Ints, Ints]:
    """Launches of the selected iterations in the order of their calls, and the number of the stretch that each lies in.

    A stretch ends at a matrix kernel, and where another part of the step, device or stream begins.
    """
    profile = view.profile
    launches, calls, strings = profile.launches, profile.calls, profile.strings
    rows = np.flatnonzero(view.selected_launches(selection) & (launches.call >= 0))
    order = np.lexsort((calls.start_ns[launches.call[rows]], launches.stream[rows], launches.device[rows]))
    rows = rows[order]
    barrier = np.array([strings[i] in _BARRIERS for i in profile.kernels.family.tolist()], dtype=np.bool_)
    role = profile.ops.role[calls.op[launches.call[rows]]]
    # What belongs to no part lies between those that do.
    changes = np.zeros(len(rows), dtype=np.bool_)
    if len(rows):
        changes[1:] = (
            (role[1:] != role[:-1])
            | (launches.stream[rows][1:] != launches.stream[rows][:-1])
            | (launches.device[rows][1:] != launches.device[rows][:-1])
            | (view.launch_iteration[rows][1:] != view.launch_iteration[rows][:-1])
        )
    return rows, np.cumsum(barrier[launches.kernel[rows]] | changes)


def _members(view: ProfileView) -> Bools:
    """Which launches are pointwise kernels of the forward or the backward pass."""
    profile, strings = view.profile, view.profile.strings
    kernels, launches = profile.kernels, profile.launches
    pointwise = np.array([strings[i] in _POINTWISE for i in kernels.family.tolist()], dtype=np.bool_)
    pointwise &= kernels.kind == KernelKind.KERNEL
    pointwise &= np.array([not strings[i].startswith(_FUSED) for i in kernels.name.tolist()], dtype=np.bool_)
    op = view.launch_op
    excluded = np.array([strings[i] in _NOT_IN_CHAINS for i in profile.ops.name.tolist()], dtype=np.bool_)
    excluded |= profile.ops.role == Role.OPTIMIZER
    result: Bools = pointwise[launches.kernel] & (op >= 0)
    if len(excluded):
        result &= ~take_or(excluded, op, False)
    return result


def _traffic(view: ProfileView) -> _Traffic:
    """Each distinct op is looked at once; zeros where shapes or data types were not recorded."""
    ops, strings = view.profile.ops, view.profile.strings
    columns = np.zeros((4, len(ops)), dtype=np.int64)
    for row in np.unique(view.launch_op[view.launch_op >= 0]).tolist():
        columns[:, row] = _of_op(strings[ops.name[row]], view.profile.shapes_of(row), view.profile.dtypes_of(row))
    return _Traffic(ops.name, *columns)


def _of_op(name: str, shapes: InputShapes, dtypes: InputDtypes) -> tuple[int, int, int, int]:
    numbers = [
        (math.prod(shape), size)
        for at, size in enumerate(element_bytes(dtypes))
        if size and (shape := shape_at(shapes, at)) is not None
    ]
    most = max((number for number, _ in numbers), default=0)
    if most <= 1:
        return 0, 0, 0, 0
    full = [size for number, size in numbers if number == most]
    if name == COPY:
        # The destination comes first: it is written, not read.
        read = full[1:2] or full[:1]
        return most, most * read[0], most * read[0], most * full[0]
    inplace = name.endswith("_")
    return most, most * sum(full), most * full[0], most * (full[0] if inplace else max(full))


def _rate(view: ProfileView, moved: Ints, time: Ints) -> Floats:
    """Bytes per ns of a fused kernel: of the GPU's memory, at least what the chain reached, or only that if unknown."""
    own = moved / np.maximum(time, 1)
    ceilings = ceilings_of(gpu_name(view))
    if ceilings is None:
        return np.maximum(own, 1e-9)
    return np.maximum(own, _REACHED * ceilings.bytes_per_second / 1e9)
