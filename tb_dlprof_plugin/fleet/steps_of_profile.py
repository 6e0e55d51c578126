"""The recorded iterations of one profile with their account of time: columns for `RankFacts.steps`."""

from __future__ import annotations

import hashlib

import numpy as np

from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, KernelTimes, Steps
from tb_dlprof_plugin.metrics.communication import is_collective
from tb_dlprof_plugin.metrics.flops import matrix_calls
from tb_dlprof_plugin.model.grouping import group_rows
from tb_dlprof_plugin.model.intervals import Intervals, covered, exclusive, union, union_of
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints
from tb_dlprof_plugin.model.tree import any_in_subtree
from tb_dlprof_plugin.names.ops import PROCESS_GROUP_OPS
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.pauses import loading_times, times_outside

_MOST_KERNELS = 200
"""Kernels whose mean times are kept: they have over 95 % of the GPU time of the recorded demos."""


def steps_of(view: ProfileView, device: int | None, work: Intervals, communication: Intervals) -> Steps:
    """The iterations of a profile.

    Args:
        view: of it.
        device: the GPU; None for a process without one.
        work: where the process computes: kernels that are no communication.
        communication: where collectives and point-to-point calls run.
    """
    iterations = view.profile.iterations
    copies = _running(view, device, ~view.launch_is_kernel) if device is not None else _nothing()
    # A copy during a collective is the GPU's own work, as in `Collectives.exposed_ns`.
    account = exclusive([work, copies, communication], iterations.start_ns, iterations.stop_ns)
    matrix_ns, matrix_flops = _matrix(view, device)
    return Steps(
        number=iterations.number,
        start_ns=iterations.start_ns,
        end_ns=iterations.stop_ns,
        compute_ns=account[:, 0],
        copy_ns=account[:, 1],
        communication_ns=account[:, 2],
        idle_ns=iterations.duration_ns - account.sum(axis=1),
        input_ns=_input(view),
        garbage_ns=_garbage(view),
        work_hash=_work_hash(view, device),
        matrix_ns=matrix_ns,
        matrix_flops=matrix_flops,
        outside_ns=_outside(view),
    )


def kernels_on(view: ProfileView, device: int) -> Intervals:
    """Times in which a GPU ran kernels that are no communication."""
    return _running(view, device, view.launch_is_kernel & ~is_collective(view))


def kernel_times(view: ProfileView, device: int, communication: Intervals) -> KernelTimes:
    """The kernels that take most time at equal launches, as means of those during which no collective ran.

    One that always runs during a collective has an unknown mean.
    """
    launches = view.profile.launches
    chosen, key = _own_kernels(view, device)
    duration = launches.duration_ns[chosen]
    alone = covered(communication, launches.start_ns[chosen], launches.start_ns[chosen] + duration) == 0
    unique, place = np.unique(key, return_inverse=True)
    place = place.reshape(-1)
    count = np.bincount(place, minlength=len(unique))
    total = np.bincount(place, weights=duration, minlength=len(unique))
    alone_count = np.bincount(place, weights=alone, minlength=len(unique))
    alone_ns = np.bincount(place, weights=np.where(alone, duration, 0), minlength=len(unique))
    mean = np.where(alone_count > 0, np.rint(alone_ns / np.maximum(alone_count, 1)), UNKNOWN).astype(np.int64)
    most = np.sort(np.lexsort((unique, -total))[:_MOST_KERNELS])
    return KernelTimes(unique[most], count[most].astype(np.int64), mean[most])


def _own_kernels(view: ProfileView, device: int) -> tuple[Ints, Ints]:
    """Rows of the kernels of recorded iterations that are no communication, and their `_keys`."""

    def found() -> tuple[Ints, Ints]:
        own = view.launch_is_kernel & ~is_collective(view) & (view.profile.launches.device == device)
        rows = np.flatnonzero(own & (view.launch_iteration >= 0))
        return rows, _keys(view, rows)

    return view.kept((f"{__name__}._own_kernels", device), found)


def _keys(view: ProfileView, rows: Ints) -> Ints:
    """Per launch a hash of its kernel, grid, block and the shapes and data types of its op's inputs."""
    launches, strings, configs = view.profile.launches, view.profile.strings, view.profile.launch_configs
    op = view.launch_op[rows]
    shapes = take_or(view.profile.ops.shapes, op, 0)
    (kernel, config, shape), place = group_rows(launches.kernel[rows], launches.config[rows], shapes)
    hashes = [
        _hash(
            strings[view.profile.kernels.name[k]],
            configs.grid[c].tolist() if len(configs) else None,
            configs.block[c].tolist() if len(configs) else None,
            view.profile.input_shapes[s],
        )
        for k, c, s in zip(kernel.tolist(), config.tolist(), shape.tolist(), strict=True)
    ]
    return np.array(hashes, dtype=np.int64)[place] if hashes else np.zeros(0, dtype=np.int64)


def _hash(*parts: object) -> int:
    """The same in each process, positive."""
    return int.from_bytes(hashlib.blake2s(repr(parts).encode(), digest_size=8).digest(), "little") >> 1


def _work_hash(view: ProfileView, device: int | None) -> Ints:
    """Of the launches of an iteration as a set: streams interleave otherwise on each rank."""
    count = len(view.profile.iterations)
    result = np.zeros(count, dtype=np.uint64)
    if device is None:
        rows = np.flatnonzero((view.call_iteration >= 0) & _aten(view))
        op, iteration = view.profile.calls.op[rows], view.call_iteration[rows]
        names, strings = view.profile.ops.name, view.profile.strings
        of_op = np.array(
            [_hash(strings[names[row]], view.profile.shapes_of(row)) for row in range(len(names))], dtype=np.int64
        )
        np.add.at(result, iteration, of_op[op].astype(np.uint64))
    else:
        rows, keys = _own_kernels(view, device)
        np.add.at(result, view.launch_iteration[rows], keys.astype(np.uint64))
    return (result >> np.uint64(1)).astype(np.int64)


def _matrix(view: ProfileView, device: int | None) -> tuple[Ints, Ints]:
    """Time and FLOPs of matrix products by iteration, of those whose FLOPs are known; UNKNOWN where none are."""
    count = len(view.profile.iterations)
    nothing = np.full(count, UNKNOWN, dtype=np.int64)
    matrix = matrix_calls(view, view.selection())
    known = matrix.flops >= 0
    if device is None or not known.any():
        return nothing, nothing
    flops = np.zeros(count, dtype=np.int64)
    np.add.at(flops, view.call_iteration[matrix.call[known]], matrix.flops[known])
    launches = view.profile.launches
    rows = np.flatnonzero((launches.device == device) & (launches.call >= 0) & (view.launch_iteration >= 0))
    of_call = matrix.of_call[launches.call[rows]]
    rows = rows[take_or(known, of_call, False)]
    time = np.zeros(count, dtype=np.int64)
    np.add.at(time, view.launch_iteration[rows], launches.duration_ns[rows])
    return time, flops


def _input(view: ProfileView) -> Ints:
    """Known where the CPU's ops were recorded: PyTorch puts a range around each wait of its DataLoader."""
    iterations = view.profile.iterations
    if not (view.profile.ops.kind == CallKind.OP).any() or view.profile.source.framework != "pytorch":
        return np.full(len(iterations), UNKNOWN, dtype=np.int64)
    times = loading_times(view, view.selection())
    return covered(times, iterations.host_start_ns, iterations.host_stop_ns)


def _outside(view: ProfileView) -> Ints:
    """Known where the CPU's ops were recorded."""
    iterations = view.profile.iterations
    if not (view.profile.ops.kind == CallKind.OP).any():
        return np.full(len(iterations), UNKNOWN, dtype=np.int64)
    return covered(times_outside(view), iterations.host_start_ns, iterations.host_stop_ns)


def _garbage(view: ProfileView) -> Ints:
    """Known where the hook noted the runs of the collector."""
    iterations, facts = view.profile.iterations, view.profile.facts
    if not facts.garbage_recorded:
        return np.full(len(iterations), UNKNOWN, dtype=np.int64)
    starts = np.array([pause.start_unix_ns for pause in facts.garbage_collections], dtype=np.int64)
    starts -= view.profile.base_time_unix_ns
    durations = np.array([pause.duration_ns for pause in facts.garbage_collections], dtype=np.int64)
    return covered(union(starts, starts + durations), iterations.host_start_ns, iterations.host_stop_ns)


def cpu_work(view: ProfileView) -> Intervals:
    """Times in which a process without a GPU computes: its tensor ops."""
    return union_of(view.profile.calls, _aten(view))


def _aten(view: ProfileView) -> Bools:
    """Calls of tensor ops in which nothing communicates."""
    profile, op = view.profile, view.profile.calls.op
    tensor = profile.ops_named(lambda name: name.startswith("aten::"))[op]
    waits = profile.ops_named(lambda name: name.startswith(PROCESS_GROUP_OPS))[op]
    return tensor & ~any_in_subtree(waits, view.call_end)


def _running(view: ProfileView, device: int, rows: Bools) -> Intervals:
    launches = view.profile.launches
    return union_of(launches, rows & (launches.device == device))


def _nothing() -> Intervals:
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
