"""The time of the selected iterations by op type, op and kernel: what the icicle of op types draws."""

from __future__ import annotations

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.op_kernels import op_kernels
from tb_dlprof_plugin.model.direction import Direction
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.common import KernelText, SelectedRange, Verdict, selected_range
from tb_dlprof_plugin.pages.ops import op_rows, time_of
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef

MOST_OPS = 3_000
MOST_PAIRS = 12_000
"""Rows of most time in an answer of 1 MB: about 150 bytes an op and 15 a kernel of an op."""


class TreeKernel(msgspec.Struct, frozen=True):
    """A kernel, once for all ops that launched it."""

    id: str
    short_name: str
    tensor_core: Verdict


class TreeOp(msgspec.Struct, frozen=True):
    """An op with its GPU time, without a GPU its CPU time. ``kernels`` index those of the tree,
    ``kernel_ns`` are their times in this op; they sum to less than its time where the smallest were left out."""

    id: str
    name: str
    module: str
    op_type: str
    direction: Direction
    tc_eligible: Verdict
    time_ns: int
    kernels: list[int]
    kernel_ns: list[int]


class WorkTree(msgspec.Struct, frozen=True):
    """``ops`` by falling time; ``total_ops`` counts those before the limit."""

    ref: RunRef
    range: SelectedRange
    has_gpu: bool
    ops: list[TreeOp]
    total_ops: int
    kernels: list[TreeKernel]


def work_tree(view: ProfileView, ref: RunRef, selection: Selection) -> WorkTree:
    """The ops of the selected iterations with their kernels."""
    has_gpu = view.profile.has_gpu
    rows = sorted(op_rows(view, selection), key=lambda row: -time_of(row, has_gpu))
    found = op_kernels(view, selection)
    groups = len(view.groups)
    pairs = np.flatnonzero(found.op < groups)[:MOST_PAIRS]
    used, place = np.unique(found.kernel[pairs], return_inverse=True)
    of_op: dict[str, tuple[list[int], list[int]]] = {}
    for pair, kernel in zip(pairs.tolist(), place.reshape(-1).tolist(), strict=True):
        indices, times = of_op.setdefault(view.groups.ids[found.op[pair]], ([], []))
        indices.append(kernel)
        times.append(int(found.gpu.total[pair]))
    return WorkTree(
        ref=ref,
        range=selected_range(view, selection),
        has_gpu=has_gpu,
        ops=[
            struct_from(TreeOp, row, time_ns=time_of(row, has_gpu), kernels=kernels, kernel_ns=kernel_ns)
            for row in rows[:MOST_OPS]
            for kernels, kernel_ns in (of_op.get(row.id, ([], [])),)
            if time_of(row, has_gpu)
        ],
        total_ops=len(rows),
        kernels=[struct_from(TreeKernel, KernelText(view, kernel)) for kernel in used.tolist()],
    )
