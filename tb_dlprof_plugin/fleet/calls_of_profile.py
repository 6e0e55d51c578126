"""The communication calls of one profile, each with what is known of it: columns for `RankFacts.collectives`.

On a GPU a call is a kernel of the family "communication"; without a GPU it is a range that gloo puts around it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.operations import operation_of, whole_bytes
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Group, Operation
from tb_dlprof_plugin.metrics.communication import bytes_of, input_bytes, is_collective
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Attribution, Bools, CallKind, Ints
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.tree import nearest
from tb_dlprof_plugin.profile_view import ProfileView

_RANGES = ("nccl:", "gloo:", "c10d::", "_c10d_functional::", "symm_mem::", "ucc:", "mpi:", "xccl:", "hccl:")
"""Of calls of a process group, and ops that run in one: a name that says the operation."""
_FSDP = re.compile(r"FSDP::[\w ]+? (?:\((?P<module>[^)]*)\)|for (?P<prefetched>\S+))$")


@dataclass(frozen=True, slots=True)
class CommunicationCalls:
    """One row per call, in order of start. Columns as in `rank_facts.Collectives`; ``launch`` is a row of
    `Profile.launches`, -1 on a CPU."""

    launch: Ints
    iteration: Ints
    group: Ints
    operation: Ints
    sequence: Ints
    bytes: Ints
    dtype: Ints
    peer: Ints
    start_ns: Ints
    duration_ns: Ints
    launched_ns: Ints
    module: Ints
    stream: Ints


def calls_on_gpu(view: ProfileView, device: int, groups: list[Group], strings: StringTable) -> CommunicationCalls:
    """The communication kernels that recorded iterations launched on a GPU.

    Args:
        view: of the profile.
        device: the GPU.
        groups: the process groups of the recording.
        strings: takes the names of data types and modules.
    """
    launches, calls = view.profile.launches, view.profile.calls
    rows = np.flatnonzero(is_collective(view) & (launches.device == device))
    iteration = np.where(launches.call[rows] >= 0, view.launch_iteration[rows], by_time(view, rows))
    rows, iteration = rows[iteration >= 0], iteration[iteration >= 0]
    call, size = launches.call[rows], bytes_of(view, rows)
    only = 0 if len(groups) == 1 else UNKNOWN
    members = len(groups[0].members) if len(groups) == 1 else 0
    kernel_names = [view.profile.strings[name] for name in view.profile.kernels.name[launches.kernel[rows]].tolist()]
    operation = _operations(view, call, kernel_names)
    return CommunicationCalls(
        launch=rows,
        iteration=iteration,
        group=np.full(len(rows), only, dtype=np.int64),
        operation=operation,
        sequence=np.full(len(rows), UNKNOWN, dtype=np.int64),
        bytes=np.array(
            [
                whole_bytes(Operation(what), own, -1, members)
                for what, own in zip(operation.tolist(), size.tolist(), strict=True)
            ],
            dtype=np.int64,
        ),
        dtype=np.full(len(rows), UNKNOWN, dtype=np.int64),
        peer=np.full(len(rows), UNKNOWN, dtype=np.int64),
        start_ns=launches.start_ns[rows],
        duration_ns=launches.duration_ns[rows],
        launched_ns=take_or(calls.start_ns, call, UNKNOWN),
        module=modules_of(view, call, strings),
        stream=launches.stream[rows],
    )


def _operations(view: ProfileView, call: Ints, kernel_names: list[str]) -> Ints:
    """From the range or op of the process group around the launch, else from the kernel's name."""
    ops, strings = view.profile.ops, view.profile.strings
    named = np.array([strings[name].startswith(_RANGES) for name in ops.name.tolist()], dtype=np.bool_)
    of_op = np.array([int(operation_of(strings[name])) for name in ops.name.tolist()], dtype=np.int64)
    around = nearest((named & (of_op != Operation.UNKNOWN))[view.profile.calls.op], view.call_parent)
    holder = take_or(around, call, -1)
    of_kernel = np.array([int(operation_of(name)) for name in kernel_names], dtype=np.int64)
    own_op = take_or(view.profile.calls.op, holder, 0)
    return np.where(holder >= 0, take_or(of_op, own_op, 0), of_kernel) if len(call) else of_kernel


def modules_of(view: ProfileView, call: Ints, strings: StringTable) -> Ints:
    """The module that each call belongs to: FSDP's unit, else that of the op around it; UNKNOWN for none."""
    ops, names = view.profile.ops, view.profile.strings
    units = {
        op: strings.add(unit)
        for op, name in enumerate(ops.name.tolist())
        if names[name].startswith("FSDP::") and (unit := fsdp_unit(names[name]))
    }
    of_op = np.full(max(1, len(ops)), UNKNOWN, dtype=np.int64)
    for op, unit in units.items():
        of_op[op] = unit
    calls = view.profile.calls
    inside = take_or(nearest((of_op >= 0)[calls.op], view.call_parent), call, -1)
    result = np.where(inside >= 0, of_op[take_or(calls.op, inside, 0)], UNKNOWN)
    group = take_or(view.call_group, call, -1)
    for index in np.flatnonzero((result == UNKNOWN) & (group >= 0)).tolist():
        module = names[view.groups.module[group[index]]]
        if module:
            result[index] = strings.add(module)
    return result


def fsdp_unit(name: str) -> str:
    """The module in a range of FSDP2 such as "FSDP::all_gather (layers.3)" or "FSDP::backward_prefetch for layers.2";
    "" for another name."""
    found = _FSDP.match(name)
    return (found["module"] or found["prefetched"] or "").strip() if found else ""


def by_time(view: ProfileView, rows: Ints) -> Ints:
    """The iteration in whose time an activity without a recorded launch ran; -1 outside all, and for one whose launch
    lies before the recording."""
    iterations, launches = view.profile.iterations, view.profile.launches
    start = launches.start_ns[rows]
    index = np.searchsorted(iterations.start_ns, start, side="right") - 1
    inside: Bools = (index >= 0) & (start < iterations.stop_ns[np.maximum(index, 0)])
    inside &= launches.attribution[rows] != Attribution.ORPHAN
    return np.where(inside, index, -1)


def calls_on_cpu(view: ProfileView, groups: list[Group], strings: StringTable) -> CommunicationCalls:
    """gloo's ranges that begin in recorded iterations, in order of start."""
    calls, ops, names = view.profile.calls, view.profile.ops, view.profile.strings
    is_range = np.array([names[name].startswith("gloo:") for name in ops.name.tolist()], dtype=np.bool_)
    is_range &= ops.kind == CallKind.ANNOTATION
    rows = np.flatnonzero(is_range[calls.op] & (view.call_iteration >= 0))
    rows = rows[np.argsort(calls.start_ns[rows], kind="stable")]
    members = len(groups[0].members) if len(groups) == 1 else 0
    operation, size, dtype = [], [], []
    for op in calls.op[rows].tolist():
        what = operation_of(names[ops.name[op]])
        types = view.profile.dtypes_of(op)
        operation.append(int(what))
        size.append(whole_bytes(what, input_bytes(view.profile.shapes_of(op), types), -1, members))
        dtype.append(strings.add(types[0].label) if types and types[0].element_bytes else UNKNOWN)
    nothing = np.full(len(rows), UNKNOWN, dtype=np.int64)
    return CommunicationCalls(
        launch=nothing,
        iteration=view.call_iteration[rows],
        group=np.full(len(rows), 0 if len(groups) == 1 else UNKNOWN, dtype=np.int64),
        operation=np.array(operation, dtype=np.int64),
        sequence=nothing,
        bytes=np.array(size, dtype=np.int64),
        dtype=np.array(dtype, dtype=np.int64),
        peer=nothing,
        start_ns=calls.start_ns[rows],
        duration_ns=calls.duration_ns[rows],
        launched_ns=nothing,
        module=nothing,
        stream=nothing,
    )
