"""Ties GPU activities to ops: each names the instruction or node that it was launched for.

- A launch call inside the event of a TensorFlow op on its thread needs nothing.
- Around launch calls that belong to one op the reader puts a call of that op.
- The activities of a command buffer have one launch call in common: each op gets a call without duration at its start,
  because the CPU did nothing for it alone.
- An op that TensorFlow recorded on another thread is found by its name and the time of the launch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.shapes import InputShapes, InputTable
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import Bools, Ints, StatedOp
from tb_dlprof_plugin.readers import op_names
from tb_dlprof_plugin.readers.xplane.command_buffers import align
from tb_dlprof_plugin.readers.xplane.device_events import XPlaneDeviceRows
from tb_dlprof_plugin.readers.xplane.event_table import EventTable, distinct
from tb_dlprof_plugin.readers.xplane.hlo import Instruction, Programs
from tb_dlprof_plugin.readers.xplane.host_events import Classified, HostEventKind, tf_op

_COMMAND_BUFFER = "command_buffer"
_NO_OP = 0


def _none() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class HostOpCalls:
    """Calls that the reader adds, as columns, and what ties activities to calls.

    ``external_id`` has a row for each GPU activity, ``of_event`` one for each host event: 0 where there is none.
    ``device`` is the GPU that a call worked for. ``unnamed_in_graphs`` counts activities of command buffers whose
    instruction was not found.
    """

    external_id: Ints
    of_event: Ints
    name: Ints = field(default_factory=_none)
    thread: Ints = field(default_factory=_none)
    start_ns: Ints = field(default_factory=_none)
    duration_ns: Ints = field(default_factory=_none)
    own_id: Ints = field(default_factory=_none)
    device: Ints = field(default_factory=_none)
    in_graphs: int = 0
    unnamed_in_graphs: int = 0

    def add(self, name: Ints, thread: Ints, start_ns: Ints, duration_ns: Ints, own_id: Ints, device: Ints) -> None:
        """Appends calls."""
        self.name = np.concatenate((self.name, name))
        self.thread = np.concatenate((self.thread, thread))
        self.start_ns = np.concatenate((self.start_ns, start_ns))
        self.duration_ns = np.concatenate((self.duration_ns, duration_ns))
        self.own_id = np.concatenate((self.own_id, own_id))
        self.device = np.concatenate((self.device, device))


class OpTable:
    """The ops of a recording: the string of each one's name, and what is stated of it."""

    def __init__(self, strings: StringTable, programs: Programs) -> None:
        self.strings, self.programs = strings, programs
        self.stated: dict[int, StatedOp] = {}
        self.shapes: InputTable[InputShapes] = InputTable(())
        self.dtypes: InputTable[InputDtypes] = InputTable(())
        self.inputs: dict[int, tuple[int, int]] = {}
        self._differentiated = any(op_names.is_gradient(text) for text in strings.values)
        self._owner: dict[str, str] = {}
        self._of_key: dict[tuple[int, int, int, int], int] = {}

    def of_labels(self, module: int, op: int, program_id: int, path: int) -> int:
        """The op that stats name, by the strings of module, instruction and path of names."""
        key = (module, op, program_id, path)
        if key not in self._of_key:
            values = self.strings.values
            self._of_key[key] = self._xla(values[module], values[op], program_id, values[path])
        return self._of_key[key]

    def _xla(self, module: str, op: str, program_id: int, path: str) -> int:
        program = self.programs.find(program_id, module)
        instruction = program.instructions.get(op) if program is not None else None
        if instruction is not None and program is not None:
            return self.of_instruction(program.name or module, instruction)
        stated = op_names.of_xla(module, path, "", op_names.base_of(op), self._differentiated)
        return self._named(module, op, stated)

    def of_instruction(self, module: str, instruction: Instruction) -> int:
        """The op of an instruction of a program."""
        name = self._named(module, instruction.name, instruction.stated)
        if name not in self.inputs and instruction.shapes:
            self.inputs[name] = (self.shapes.add(instruction.shapes), self.dtypes.add(instruction.dtypes))
        return name

    def _named(self, module: str, op: str, stated: StatedOp) -> int:
        """The string of an op's name: the instruction's, after its program's where another has one of the same name."""
        owner = self._owner.setdefault(op, module)
        name = self.strings.add(op if owner == module else f"{module}/{op}")
        self.stated.setdefault(name, stated)
        return name

    def of_tensorflow(self, name: str) -> int:
        """The op of a name like "model/dense/MatMul:MatMul"; 0 for what is none."""
        found = tf_op(name)
        if found is None:
            return _NO_OP
        index = self.strings.add(name)
        if index not in self.stated:
            self.stated[index] = op_names.of_tensorflow(*found, self._differentiated)
        return index


def label_host_ops(events: EventTable, classified: Classified, table: OpTable) -> None:
    """States the ops among host events, and names XLA's instructions as ops: changes ``classified.name``."""
    rows = np.flatnonzero(classified.kind == HostEventKind.OP)
    named = [events.stats[name][rows] for name in ("hlo_module", "hlo_op", "program_id", "name")]
    unique, row = distinct(*named, events.name[rows])
    names = []
    for module, op, program, path, name in unique.tolist():
        if op:
            names.append(table.of_labels(module, op, program, path))
        else:
            names.append(table.of_tensorflow(table.strings.values[name]) or name)
    if names:
        classified.name[rows] = np.array(names, dtype=np.int64)[row]
    for name in np.unique(events.name[classified.kind == HostEventKind.ANNOTATION]).tolist():
        text = table.strings.values[name]
        if op_names.is_input_pipeline(text):
            table.stated[name] = op_names.of_tensorflow(text, "IteratorGetNext", differentiated=False)


def tie(rows: XPlaneDeviceRows, host: EventTable, classified: Classified, table: OpTable) -> HostOpCalls:
    """The calls and ties of all activities."""
    events = rows.events
    result = HostOpCalls(np.zeros(len(events), dtype=np.int64), np.zeros(len(host), dtype=np.int64))
    if not len(events):
        return result
    launch = _launches(events, host, classified.kind)
    op = _labels(events, host, launch, table)
    order = np.argsort(events.start_ns, kind="stable")
    in_graph = _in_graphs(events, table.strings)
    _name_in_graphs(rows, order[in_graph[order]], op, table, result)
    by_name = _ties_to_recorded_ops(events, host, classified, launch, op, result)
    ids = int(result.external_id.max(initial=0))

    pending = order[((op != _NO_OP) & ~by_name & (in_graph | (launch < 0)))[order]]
    _add_calls_without_duration(pending, rows, host, launch, op, in_graph, result, ids)
    direct = np.flatnonzero(~in_graph & (launch >= 0) & (op != _NO_OP) & ~by_name)
    direct = direct[np.lexsort((host.start_ns[launch[direct]], host.line[launch[direct]]))]
    _add_calls_around(direct, rows, host, launch[direct], op[direct], result)
    return result


def _add_calls_around(
    direct: Ints, rows: XPlaneDeviceRows, host: EventTable, call: Ints, op: Ints, result: HostOpCalls
) -> None:
    """A call of an op around launch calls that follow each other. The same kernel again is the op's next call.

    Args:
        direct: activities, by thread and start of their launch calls.
        rows: all activities.
        host: events of the host.
        call: per activity of ``direct`` its launch call.
        op: per activity of ``direct`` its op.
        result: the calls are added to it.
    """
    if not len(direct):
        return
    thread, device, kernel = host.line[call], rows.device[direct], rows.name[direct]
    start, stop = host.start_ns[call], host.start_ns[call] + host.duration_ns[call]
    begins = np.ones(len(direct), dtype=np.bool_)
    begins[1:] = (thread[1:] != thread[:-1]) | (op[1:] != op[:-1]) | (device[1:] != device[:-1])
    before = _same_kernel_before(np.cumsum(begins), kernel)
    opened = -1
    # A row before the call that was opened last is in an earlier call. Rows of other sequences are before it, too.
    for row, other in zip(*(one.tolist() for one in (np.flatnonzero(before >= 0), before[before >= 0])), strict=True):
        if other >= opened:
            begins[row], opened = True, row
    first = np.flatnonzero(begins)
    # A call of no duration could hold nothing.
    duration = np.maximum(np.maximum.reduceat(stop, first) - start[first], 1)
    result.add(op[first], thread[first], start[first], duration, np.zeros(len(first), dtype=np.int64), device[first])


def _same_kernel_before(sequence: Ints, kernel: Ints) -> Ints:
    """Per row the last one before it with the same kernel in its sequence; -1 for none."""
    order = np.lexsort((np.arange(len(kernel)), kernel, sequence))
    same = (sequence[order][1:] == sequence[order][:-1]) & (kernel[order][1:] == kernel[order][:-1])
    result = np.full(len(kernel), -1, dtype=np.int64)
    result[order[1:][same]] = order[:-1][same]
    return result


def _add_calls_without_duration(
    pending: Ints,
    rows: XPlaneDeviceRows,
    host: EventTable,
    launch: Ints,
    op: Ints,
    in_graph: Bools,
    result: HostOpCalls,
    ids: int,
) -> None:
    """A call for each op of a command buffer's launch, and for each activity whose launch was not recorded.

    Args:
        pending: these activities, by start.
        rows: all activities.
        host: events of the host.
        launch: per activity its launch call, -1 for none.
        op: per activity its op.
        in_graph: per activity whether a command buffer launched it.
        result: the calls are added to it.
        ids: the external ids up to this one are taken.
    """
    if not len(pending):
        return
    # Only within one launch do activities of an op belong together.
    one_launch = np.where(in_graph[pending], rows.events.stats["correlation_id"][pending], -1 - pending)
    calls, call_of = distinct(one_launch, op[pending])
    result.external_id[pending] = call_of + ids + 1
    first = np.full(len(calls), -1, dtype=np.int64)
    first[call_of[::-1]] = pending[::-1]
    launched = launch[first] >= 0
    at = np.maximum(launch[first], 0)
    known = len(host) > 0
    # What no thread launched stands on a thread of its own, so that it lies within no other call.
    thread = np.where(launched, host.line[at], len(host.lines)) if known else np.full(len(first), len(host.lines))
    own_start = rows.events.start_ns[first]
    start = np.where(launched, host.start_ns[at], own_start) if known else own_start
    own_id = np.arange(ids + 1, ids + 1 + len(first))
    result.add(op[first], thread, start, np.zeros(len(first), dtype=np.int64), own_id, rows.device[first])


def _launches(events: EventTable, host: EventTable, kind: Ints) -> Ints:
    """Per activity the host event of its launch call, -1 for none."""
    calls = np.flatnonzero((kind == HostEventKind.RUNTIME) & (host.stats["correlation_id"] > 0))
    wanted = events.stats["correlation_id"]
    if not len(calls):
        return np.full(len(events), -1, dtype=np.int64)
    calls = calls[np.argsort(host.stats["correlation_id"][calls], kind="stable")]
    keys = host.stats["correlation_id"][calls]
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((keys[at] == wanted) & (wanted > 0), calls[at], -1)


def _labels(events: EventTable, host: EventTable, launch: Ints, table: OpTable) -> Ints:
    """The op of each activity by its own stats, else by those of its launch call; 0 where neither names one."""
    names = ("hlo_module", "hlo_op", "program_id", "name", "tf_op", "annotation")
    own = {name: events.stats[name].copy() for name in names}
    silent = (own["hlo_op"] == 0) & (own["tf_op"] == 0) & (own["annotation"] == 0) & (launch >= 0)
    for name in names:
        own[name][silent] = host.stats[name][launch[silent]]
    unique, row = distinct(*own.values())
    values = table.strings.values
    labels = []
    for module, op, program, path, node, annotation in unique.tolist():
        if op:
            labels.append(table.of_labels(module, op, program, path))
        else:
            labels.append(
                table.of_tensorflow(values[node]) or table.of_tensorflow(values[annotation].partition("#")[0])
            )
    return np.array(labels, dtype=np.int64)[row]


def _in_graphs(events: EventTable, strings: StringTable) -> Bools:
    """Which activities were launched by a command buffer."""
    buffers = [index for index, text in enumerate(strings.values) if text.startswith(_COMMAND_BUFFER)]
    return (events.stats["cuda_graph_id"] > 0) | np.isin(events.stats["hlo_op"], buffers)


def _name_in_graphs(rows: XPlaneDeviceRows, order: Ints, op: Ints, table: OpTable, result: HostOpCalls) -> None:
    """Replaces the command buffer by the instruction, for the activities of each launch: changes ``op``."""
    stats, values = rows.events.stats, table.strings.values
    columns = [stats[name][order] for name in ("program_id", "hlo_module", "correlation_id")]
    launches, of_launch = distinct(*columns, rows.device[order])
    by_launch = np.argsort(of_launch, kind="stable")
    bounds = np.searchsorted(of_launch[by_launch], np.arange(len(launches) + 1)).tolist()
    found: dict[tuple[int, int, tuple[int, ...]], list[int]] = {}
    for at, (program_id, module, _, _) in enumerate(launches.tolist()):
        members = order[by_launch[bounds[at] : bounds[at + 1]]]
        result.in_graphs += len(members)
        program = table.programs.find(program_id, values[module])
        if program is None:
            result.unnamed_in_graphs += len(members)
            continue
        # Every step launches the same graph.
        names = tuple(rows.events.name[members].tolist())
        key_of = (program_id, module, names)
        if key_of not in found:
            instructions = align([values[one] for one in names], program.schedule)
            found[key_of] = [
                _NO_OP if instruction is None else table.of_instruction(program.name or values[module], instruction)
                for instruction in instructions
            ]
        aligned = np.array(found[key_of], dtype=np.int64)
        result.unnamed_in_graphs += int((aligned == _NO_OP).sum())
        op[members] = np.where(aligned == _NO_OP, op[members], aligned)


def _ties_to_recorded_ops(
    events: EventTable, host: EventTable, classified: Classified, launch: Ints, op: Ints, result: HostOpCalls
) -> Bools:
    """Ties activities to host events of their ops by name and time, and says which need no call of their own."""
    done = np.zeros(len(events), dtype=np.bool_)
    is_op = classified.kind == HostEventKind.OP
    wanted = np.flatnonzero((op != _NO_OP) & np.isin(op, classified.name[is_op]))
    if not len(wanted):
        return done
    recorded: dict[int, Ints] = {}
    ids = 0
    stop = host.start_ns + host.duration_ns
    for row in wanted.tolist():
        name = int(op[row])
        if name not in recorded:
            same = np.flatnonzero(is_op & (classified.name == name))
            recorded[name] = same[np.argsort(host.start_ns[same], kind="stable")]
        calls = recorded[name]
        call = int(launch[row])
        when = int(host.start_ns[call] if call >= 0 else events.start_ns[row])
        before = int(np.searchsorted(host.start_ns[calls], when, side="right")) - 1
        if before < 0:
            continue
        event = int(calls[before])
        if call >= 0 and stop[event] < when:
            continue
        done[row] = True
        if call >= 0 and host.line[event] == host.line[call]:
            continue
        if not result.of_event[event]:
            ids += 1
            result.of_event[event] = ids
        result.external_id[row] = result.of_event[event]
    return done
