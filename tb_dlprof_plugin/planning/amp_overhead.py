"""What mixed precision adds to a step: casts, and for FP16 the GradScaler.

A cast is a kernel and a few ops of the CPU, before the op that needs it and, where it is differentiated, once more in
the backward pass of that op. The GradScaler unscales all gradients in one pass and makes the CPU wait for the result
before the optimizer begins (``GradScaler.step`` reads ``found_inf``).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.flops import matrix_calls
from tb_dlprof_plugin.model.lookup import joined, take_or
from tb_dlprof_plugin.model.profile import Bools, Ints, Role
from tb_dlprof_plugin.planning.calibration import Calibration
from tb_dlprof_plugin.planning.compiled import compiled_code
from tb_dlprof_plugin.planning.dtype_flow import Flow
from tb_dlprof_plugin.planning.kernel_times import Launched
from tb_dlprof_plugin.planning.target import Target
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import NOTHING_ADDED, Added

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
    view: ProfileView,
    work: Launched,
    flow: Flow,
    target: Target,
    host_ns_per_op: float,
    calibration: Calibration,
    host_ns_per_launch: float = 0.0,
) -> AddedWork:
    """The casts of ``flow``, those of weights in compiled code and, for FP16, the GradScaler's work.

    Args:
        view: the run.
        work: its launches.
        flow: the data types of its tensors.
        target: the precision of the forecast.
        host_ns_per_op: CPU time of an op of the run, without waits, in the replayed time.
        calibration: what casts cost.
        host_ns_per_launch: CPU time of a launch by a compiled graph's wrapper, in the replayed time.
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
    group_ns = {one: sum(some) for one, some in kernels.items()}
    if compiled_code(view):
        converted = _of_weights(view, work, flow, rate, host_ns_per_launch, calibration)
        before, gpu_ns = joined([before, converted], Added), np.append(gpu_ns, converted.gpu_ns)
        groups = view.call_group[view.profile.launches.call[converted.launch]]
        for group_of, time_ns in zip(groups.tolist(), converted.gpu_ns.tolist(), strict=True):
            group_ns[group_of] = group_ns.get(group_of, 0.0) + time_ns / max(len(view.profile.iterations), 1)
    iterations = max(len(view.profile.iterations), 1)
    cast_ns, casts = sum(gpu_ns.tolist()) / iterations, len(gpu_ns) / iterations
    unscale = max(calibration.forward_cast_ns, _UNSCALE_BYTES * flow.parameter_elements / rate)
    if target.precision == "fp16":
        first = work.launch[_first_optimizer_rows(view, work)]
        every = np.ones(len(first))
        scaler = Added(first, host_ns * SCALER_OPS * every, unscale * every, every > 0)
        before = joined([before, scaler], Added)
    return AddedWork(before, casts, cast_ns, unscale if target.precision == "fp16" else 0.0, group_ns)


def _of_weights(
    view: ProfileView, work: Launched, flow: Flow, rate: float, host_ns: float, calibration: Calibration
) -> Added:
    """The conversions of weights that products of compiled code take, and of their gradients: kernels of their own."""
    matrix, code, role = matrix_calls(view, view.selection()), compiled_code(view), view.profile.ops.role
    weights = code.weights(matrix, flow.parameter_shapes)
    if not weights:
        return NOTHING_ADDED
    # The first launch of each product.
    product = take_or(matrix.call, matrix.of_call[work.call], -1)
    rows = np.flatnonzero((product >= 0) & code.calls[work.call])
    rows = rows[np.sort(np.unique(product[rows], return_index=True)[1])]
    row_of = dict(zip(product[rows].tolist(), rows.tolist(), strict=True))
    known = [(row_of[call], elements, bias) for call, elements, bias in weights if call in row_of]
    forward = np.array(known, dtype=np.int64).reshape(-1, 3)
    biases = forward[forward[:, 2] > 0, 0]
    backward = rows[role[view.profile.calls.op[product[rows]]] == Role.BACKWARD]
    moved = _CAST_BYTES * forward[:, 1] / rate
    added = [
        (forward[:, 0], calibration.forward_cast_ns + moved),
        (biases, np.full(len(biases), calibration.forward_cast_ns)),
    ]
    for iteration in np.unique(work.iteration[backward]).tolist():
        own = backward[work.iteration[backward] == iteration]
        # Gradients come in the opposite order, each with its product.
        of_step = np.flatnonzero(work.iteration[forward[:, 0]] == iteration)[::-1]
        at = np.linspace(0, len(own) - 1, len(of_step)).astype(np.int64)
        added.append((own[at], np.maximum(calibration.forward_cast_ns, moved[of_step])))
    row, gpu_ns = (np.concatenate(columns) for columns in zip(*added, strict=True))
    return Added(work.launch[row], np.full(len(row), host_ns), gpu_ns, np.zeros(len(row), np.bool_))


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
