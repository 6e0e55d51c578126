"""The communication calls of one profile, each with what is known of it: columns for `RankFacts.collectives`.

On a GPU a call is a kernel of the family "communication"; without a GPU it is a range that gloo puts around it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.operations import buffer_bytes, operation_of, whole_bytes
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Group, Operation
from tb_dlprof_plugin.metrics.communication import bytes_of, input_bytes, is_collective
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Attribution, Bools, CallKind, Ints
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.tree import nearest
from tb_dlprof_plugin.names.ops import NCCL_CALL, PROCESS_GROUP_OPS
from tb_dlprof_plugin.names.parallel_ranges import fsdp_unit
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.call_names import calls_named

_RANGES = ("nccl:", NCCL_CALL, "gloo:", *PROCESS_GROUP_OPS, "symm_mem::", "ucc:", "mpi:", "xccl:", "hccl:")
"""Of calls of a process group, and ops that run in one: a name that says the operation."""
_BEFORE_ALL = -(2**62)


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
    """The communication kernels that recorded iterations launched on a GPU, and once more for each further call that
    was sent off with another in one kernel.

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
    row, note = notes_of_launches(view, rows)
    rows, iteration = rows[row], iteration[row]
    call = launches.call[rows]
    columns = _from_notes(view, note, groups, strings) if len(view.profile.communications) else _unknown(len(rows))
    by_name = _operations(view, rows)
    operation = np.where(columns["operation"] == Operation.UNKNOWN, by_name, columns["operation"])
    # A recording with one group leaves no choice.
    group = np.where((columns["group"] == UNKNOWN) & (len(groups) == 1), 0, columns["group"])
    size = columns["bytes"]
    unknown = np.flatnonzero(size < 0)
    for index, own in zip(unknown.tolist(), bytes_of(view, rows[unknown]).tolist(), strict=True):
        members = len(groups[group[index]].members) if group[index] >= 0 else 0
        size[index] = whole_bytes(Operation(int(operation[index])), own, -1, members)
    return CommunicationCalls(
        launch=rows,
        iteration=iteration,
        group=group,
        operation=operation,
        sequence=columns["sequence"],
        bytes=size,
        dtype=columns["dtype"],
        peer=columns["peer"],
        start_ns=launches.start_ns[rows],
        duration_ns=launches.duration_ns[rows],
        launched_ns=take_or(calls.start_ns, call, UNKNOWN),
        module=modules_of(view, call, strings),
        stream=launches.stream[rows],
    )


def notes_of_launches(view: ProfileView, rows: Ints) -> tuple[Ints, Ints]:
    """For each call of these kernels the index of its kernel among ``rows`` and its row of `Profile.communications`, -1
    for none.

    Calls that are sent off together, as ``batch_isend_irecv`` does, have notes without a kernel before a kernel without
    a note: it is theirs.
    """
    table, launches, calls = view.profile.communications, view.profile.launches, view.profile.calls
    known = np.full(len(launches), -1, dtype=np.int64)
    with_kernel = table.launch >= 0
    known[table.launch[with_kernel]] = np.flatnonzero(with_kernel)
    note = known[rows]
    waiting = np.flatnonzero(~with_kernel & (table.call >= 0))
    waiting = waiting[np.argsort(calls.start_ns[table.call[waiting]], kind="stable")]
    started, of_thread = calls.start_ns[table.call[waiting]], calls.thread[table.call[waiting]]
    waiting_on = {thread: np.flatnonzero(of_thread == thread) for thread in np.unique(of_thread).tolist()}
    pairs: list[tuple[int, int]] = []
    since: dict[int, int] = {}
    in_turn = sorted(range(len(rows)), key=lambda index: _called(view, int(rows[index])))
    for index in in_turn:
        at, thread = _called(view, int(rows[index])), _thread(view, int(rows[index]))
        mine: list[int] = []
        if note[index] < 0 and thread in waiting_on:
            # Before its first launch a thread has only what no other thread had passed.
            after = since[thread] if thread in since else min(since.values(), default=_BEFORE_ALL)
            own = waiting_on[thread]
            first, stop = np.searchsorted(started[own], (after, at), side="right")
            mine = waiting[own[first:stop]].tolist()
        since[thread] = at
        pairs += [(index, one) for one in mine] or [(index, int(note[index]))]
    pairs.sort(key=lambda pair: pair[0])
    result = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return result[:, 0], result[:, 1]


def _called(view: ProfileView, row: int) -> int:
    call = int(view.profile.launches.call[row])
    return int(view.profile.calls.start_ns[call]) if call >= 0 else int(view.profile.launches.start_ns[row])


def _thread(view: ProfileView, row: int) -> int:
    call = int(view.profile.launches.call[row])
    return int(view.profile.calls.thread[call]) if call >= 0 else -1


def _from_notes(view: ProfileView, note: Ints, groups: list[Group], strings: StringTable) -> dict[str, Ints]:
    """Columns from rows of `Profile.communications`, unknown where there is none."""
    table, names = view.profile.communications, view.profile.strings
    operation = np.array([int(operation_of(names[name])) for name in table.name.tolist()], dtype=np.int64)
    size, dtype = [], []
    for row in range(len(table)):
        kind, group = names[table.dtype[row]], int(table.group[row])
        members = len(groups[group].members) if group >= 0 else 0
        bytes_in, bytes_out = (
            buffer_bytes(int(elements), kind) for elements in (table.elements_in[row], table.elements_out[row])
        )
        size.append(whole_bytes(Operation(int(operation[row])), bytes_in, bytes_out, members))
        dtype.append(strings.add(kind) if kind else UNKNOWN)
    return {
        "operation": take_or(operation, note, int(Operation.UNKNOWN)),
        "group": take_or(table.group, note, UNKNOWN),
        "sequence": take_or(table.sequence, note, UNKNOWN),
        "bytes": take_or(np.array(size, dtype=np.int64), note, UNKNOWN),
        "dtype": take_or(np.array(dtype, dtype=np.int64), note, UNKNOWN),
        "peer": take_or(table.peer, note, UNKNOWN),
    }


def _unknown(count: int) -> dict[str, Ints]:
    names = ("group", "sequence", "bytes", "dtype", "peer")
    return {"operation": np.zeros(count, dtype=np.int64)} | {
        name: np.full(count, UNKNOWN, dtype=np.int64) for name in names
    }


def _operations(view: ProfileView, rows: Ints) -> Ints:
    """From the range or op of the process group around the launch, else from the kernel's name."""
    ops, strings, launches = view.profile.ops, view.profile.strings, view.profile.launches
    call = launches.call[rows]
    kernel_names = [strings[name] for name in view.profile.kernels.name[launches.kernel[rows]].tolist()]
    named = view.profile.ops_named(lambda name: name.startswith(_RANGES))
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
    of_op[list(units)] = list(units.values())
    calls = view.profile.calls
    inside = take_or(nearest((of_op >= 0)[calls.op], view.call_parent), call, -1)
    result = np.where(inside >= 0, of_op[take_or(calls.op, inside, 0)], UNKNOWN)
    group = take_or(view.call_group, call, -1)
    for index in np.flatnonzero((result == UNKNOWN) & (group >= 0)).tolist():
        module = names[view.groups.module[group[index]]]
        if module:
            result[index] = strings.add(module)
    return result


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
    is_range = calls_named(view, CallKind.ANNOTATION, lambda name: name.startswith("gloo:"))
    rows = np.flatnonzero(is_range & (view.call_iteration >= 0))
    rows = rows[np.argsort(calls.start_ns[rows], kind="stable")]
    members = len(groups[0].members) if len(groups) == 1 else 0
    asked = _asked(view)
    # In order, where each of the ops in which the process group is asked for a call has a range.
    asked = asked if len(asked) == len(rows) else np.full(len(rows), -1, dtype=np.int64)
    operation, size, dtype = [], [], []
    for op, asking in zip(calls.op[rows].tolist(), take_or(calls.op, asked, -1).tolist(), strict=True):
        # gloo computes a reduce-scatter as an all-reduce.
        what = operation_of(names[ops.name[asking if asking >= 0 else op]])
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
        launched_ns=take_or(calls.start_ns, asked, UNKNOWN),
        module=modules_of(view, asked, strings),
        stream=nothing,
    )


def _asked(view: ProfileView) -> Ints:
    """Rows of the ops in recorded iterations in which a process group is asked for a call, in order of start."""
    calls = view.profile.calls
    is_ask = view.profile.ops_named(lambda name: name.startswith("c10d::") and operation_of(name) != Operation.UNKNOWN)
    rows = np.flatnonzero(is_ask[calls.op] & (view.call_iteration >= 0))
    return rows[np.argsort(calls.start_ns[rows], kind="stable")]
