"""What mixed precision adds to a step: casts, and for FP16 the GradScaler.

A cast is a kernel and a few ops of the CPU, before the op that needs it and, where it is differentiated, once more in
the backward pass of that op. The GradScaler unscales all gradients in one pass and makes the CPU wait for the result
before the optimizer begins (``GradScaler.step`` reads ``found_inf``).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.lookup import joined, take_or
from tb_dlprof_plugin.model.profile import Bools, Ints, Role
from tb_dlprof_plugin.planning.calibration import Calibration
from tb_dlprof_plugin.planning.dtype_flow import Flow
from tb_dlprof_plugin.planning.kernel_times import Launched
from tb_dlprof_plugin.planning.target import Target
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Added

FORWARD_CAST_OPS, BACKWARD_CAST_OPS = 4, 6
"""Ops that a cast adds to a trace: to, _to_copy, empty_strided, copy_; in the backward pass the autograd node and its
function as well."""
SCALER_OPS = 12
_CAST_BYTES = 6
_UNSCALE_BYTES = 8


@dataclass(frozen=True)
class AddedWork:
    """``before`` is what is added; times and counts are per iteration.

    ``group_ns`` is the kernel time of casts by op group.
    """

    before: Added
    casts: float
    cast_ns: float
    scaler_ns: float
    group_ns: dict[int, float]


def added_work(
    view: ProfileView, work: Launched, flow: Flow, target: Target, host_ns_per_op: float, calibration: Calibration
) -> AddedWork:
    """The casts of ``flow`` and, for FP16, the GradScaler's work.

    Args:
        view: the run.
        work: its launches.
        flow: the data types of its tensors.
        target: the precision of the forecast.
        host_ns_per_op: CPU time of an op of the run, without waits, in the replayed time.
        calibration: what casts cost.
    """
    rate = target.new_ceilings.bytes_per_second * calibration.cast_bandwidth / 1e9
    host_ns = calibration.cast_op_share * host_ns_per_op
    forward: dict[int, list[float]] = defaultdict(list)
    backward: dict[int, list[float]] = defaultdict(list)
    partner = _backward_groups(view)
    for op in flow.ops:
        own = int(view.call_group[op.call])
        for cast in op.casts:
            elements = cast.elements * (1.0 if cast.parameter else target.batch_ratio)
            forward[own].append(calibration.forward_cast_ns + _CAST_BYTES * elements / rate)
            if cast.differentiated and own in partner:
                backward[partner[own]].append(calibration.backward_cast_ns + _CAST_BYTES * elements / rate)
    # The kernels of each group, one group behind the other.
    kernels = backward | forward
    count = np.zeros(len(view.groups), dtype=np.int64)
    count[list(kernels)] = [len(some) for some in kernels.values()]
    begin = np.zeros(len(count), dtype=np.int64)
    begin[list(kernels)] = np.cumsum(count[list(kernels)]) - count[list(kernels)]
    ops = np.full(len(count), BACKWARD_CAST_OPS)
    ops[list(forward)] = FORWARD_CAST_OPS
    row, group = _first_rows(view, work, count > 0)
    place = np.repeat(np.arange(len(row)), count[group])
    within = np.arange(len(place)) - np.repeat(np.cumsum(count[group]) - count[group], count[group])
    gpu_ns = np.array([one for some in kernels.values() for one in some], dtype=np.float64)[
        begin[group][place] + within
    ]
    before = Added(work.launch[row][place], (host_ns * ops)[group][place], gpu_ns, np.zeros(len(place), np.bool_))
    iterations = max(len(view.profile.iterations), 1)
    cast_ns, casts = sum(gpu_ns.tolist()) / iterations, len(gpu_ns) / iterations
    unscale = max(calibration.forward_cast_ns, _UNSCALE_BYTES * flow.parameter_elements / rate)
    if target.precision == "fp16":
        first = work.launch[_first_optimizer_rows(view, work)]
        every = np.ones(len(first))
        scaler = Added(first, host_ns * SCALER_OPS * every, unscale * every, every > 0)
        before = joined([before, scaler], Added)
    group_ns = {one: sum(some) for one, some in kernels.items()}
    return AddedWork(before, casts, cast_ns, unscale if target.precision == "fp16" else 0.0, group_ns)


def _backward_groups(view: ProfileView) -> dict[int, int]:
    """Forward op group to the backward group of the same module and op type."""
    groups = view.groups
    rows = list(zip(groups.module.tolist(), groups.op_type.tolist(), groups.role.tolist(), strict=True))
    backward = {(module, op): index for index, (module, op, role) in enumerate(rows) if role == Role.BACKWARD}
    return {
        index: backward[module, op]
        for index, (module, op, role) in enumerate(rows)
        if role != Role.BACKWARD and (module, op) in backward
    }


def _first_rows(view: ProfileView, work: Launched, wanted: Bools) -> tuple[Ints, Ints]:
    """The first row of each wanted op group in each iteration, in order, and its group."""
    group, groups = view.call_group[work.call], len(view.groups)
    rows = np.flatnonzero(take_or(wanted, group, False))
    first = np.sort(rows[np.unique(work.iteration[rows] * groups + group[rows], return_index=True)[1]])
    return first, group[first]


def _first_optimizer_rows(view: ProfileView, work: Launched) -> Ints:
    role = view.profile.ops.role[view.profile.calls.op]
    rows = np.flatnonzero(role[work.call] == Role.OPTIMIZER)
    return rows[np.unique(work.iteration[rows], return_index=True)[1]]
