"""Calls that make the CPU wait for the GPU, and the ops and modules that made them.

Three kinds: calls whose purpose is to wait, copies that return only when they are done, and asynchronous copies of
pageable memory, which the driver stages and which therefore wait all the same ("API synchronization behavior" in the
CUDA Runtime API's reference). A scalar that is read from the GPU (``.item()``) shows as the calls inside it; where the
trace lacks those, as the op itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, KernelKind
from tb_dlprof_plugin.model.tree import any_in_subtree, inherit
from tb_dlprof_plugin.names.cuda_calls import SYNCHRONIZES, CudaCall
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.call_names import calls_named, launching_calls


class SyncKind(IntEnum):
    """Why a call waits."""

    NONE = 0
    WAIT = 1
    COPY = 2
    PAGEABLE_COPY = 3
    SCALAR = 4
    PROFILER = 5
    """The profiler's own wait at its start or stop: no part of the training."""


_SCALAR_OPS = ("aten::item", "aten::_local_scalar_dense")


@dataclass(frozen=True, slots=True)
class SyncGroups:
    """The synchronising calls of a selection by name, op and kind: one row per group, by falling time.

    Attributes:
        name: string index of the call's name.
        op: string index of the innermost op around it, -1 for a call from Python.
        group: row of `ProfileView.groups` of the outermost op around it, -1 for none.
        module: string index of the module path; its text is "" where none was recorded.
        role: the `Role` of the calls.
        kind: the `SyncKind`.
        calls: number of calls.
        time_ns: time from their starts to their ends, summed.
        max_ns: the longest.
    """

    name: Ints
    op: Ints
    group: Ints
    module: Ints
    role: Ints
    kind: Ints
    calls: Ints
    time_ns: Ints
    max_ns: Ints

    def __len__(self) -> int:
        return len(self.name)


@per_selection
def sync_kinds(view: ProfileView, _: Selection) -> Ints:
    """Per row of `Profile.calls` its `SyncKind`."""
    profile = view.profile
    calls, ops = profile.calls, profile.ops
    kind = np.zeros(len(calls), dtype=np.int64)
    kind[view.is_cuda_call(*SYNCHRONIZES)] = SyncKind.WAIT
    kind[view.is_cuda_call(CudaCall.MEMCPY)] = SyncKind.COPY

    pageable = _pageable_kernels(view)[profile.launches.kernel] & (profile.launches.call >= 0)
    copies = profile.launches.call[pageable]
    copies = copies[(ops.kind[calls.op[copies]] == CallKind.RUNTIME) & (kind[copies] == SyncKind.NONE)]
    kind[copies] = SyncKind.PAGEABLE_COPY
    kind[_profilers_own(view, kind)] = SyncKind.PROFILER
    kind[_unexplained_scalars(view, kind)] = SyncKind.SCALAR
    return kind


@per_selection
def sync_groups(view: ProfileView, selection: Selection) -> SyncGroups:
    """The synchronising calls that started in the selected iterations, without those of the profiler."""
    profile = view.profile
    calls, ops = profile.calls, profile.ops
    kind = sync_kinds(view, view.selection())
    synchronises = (kind != SyncKind.NONE) & (kind != SyncKind.PROFILER)
    rows = np.flatnonzero(synchronises & view.selected_calls(selection))
    op = calls.op[rows]
    keys = np.stack(
        (
            ops.name[op],
            _around(view)[rows],
            view.call_group[rows],
            ops.module[op],
            ops.role[op],
            kind[rows],
        )
    )
    unique, inverse = np.unique(keys, axis=1, return_inverse=True)
    inverse = inverse.reshape(-1)
    count = unique.shape[1]
    duration = calls.duration_ns[rows]
    time_ns, max_ns = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    np.add.at(time_ns, inverse, duration)
    np.maximum.at(max_ns, inverse, duration)
    number = np.bincount(inverse, minlength=count).astype(np.int64)
    order = np.lexsort((-number, -time_ns))
    name, around, group, module, role, why = unique[:, order]
    return SyncGroups(name, around, group, module, role, why, number[order], time_ns[order], max_ns[order])


def scalar_reads(view: ProfileView, kind: Ints) -> Bools:
    """Which calls are ops that read a scalar from the GPU: something in them was launched or waited for.

    Args:
        view: the profile.
        kind: per call its `SyncKind`.
    """
    reads = calls_named(view, CallKind.OP, _SCALAR_OPS.__contains__)
    if not reads.any():
        return reads
    return reads & any_in_subtree(launching_calls(view) | (kind != SyncKind.NONE), view.call_end)


def _unexplained_scalars(view: ProfileView, kind: Ints) -> Bools:
    """Outermost scalar reads that launched something and hold no synchronising call: the trace lacks it."""
    reads = calls_named(view, CallKind.OP, _SCALAR_OPS.__contains__)
    if not reads.any():
        return reads
    parent = view.call_parent
    waits = any_in_subtree(kind != SyncKind.NONE, view.call_end)
    launches = any_in_subtree(launching_calls(view), view.call_end)
    inner = take_or(reads, parent, False)
    return reads & launches & ~waits & ~inner


def _profilers_own(view: ProfileView, kind: Ints) -> Bools:
    """Waits for the whole device before the first op or after the last one, outside every annotation.

    The profiler waits for the device when it starts and stops; a recording without steps has them in its one iteration.
    """
    profile = view.profile
    calls = profile.calls
    is_op: Bools = profile.ops.kind[calls.op] == CallKind.OP
    device: Bools = (kind == SyncKind.WAIT) & (calls.depth == 0)
    device &= view.is_cuda_call(CudaCall.DEVICE_SYNCHRONIZE)
    if not device.any() or not is_op.any():
        return device
    starts = calls.start_ns[is_op]
    device &= (calls.start_ns < starts.min()) | (calls.start_ns > starts.max())
    return device


def _pageable_kernels(view: ProfileView) -> Bools:
    """Per row of `Profile.kernels` whether it is a copy from or to pageable memory."""
    pageable = view.profile.kernels_where(name=lambda name: "Pageable" in name)
    return pageable & (view.profile.kernels.kind == KernelKind.MEMCPY)


def _around(view: ProfileView) -> Ints:
    """Per call the string index of the innermost op around it (itself included), -1 for none."""
    calls, ops = view.profile.calls, view.profile.ops
    is_op = (ops.kind == CallKind.OP)[calls.op]
    return inherit(np.where(is_op, ops.name[calls.op], -1), is_op, view.call_parent)
