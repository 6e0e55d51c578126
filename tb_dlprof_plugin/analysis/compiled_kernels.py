"""Finds which launch of a wrapper each kernel of torch.compile is: by the graph's key and the order of launches.

A compiled graph runs inside a range with its key ("## Call CompiledFxGraph f... ##"). What it launched there, in
order, is the order of its wrapper (`wrapper_order`). A CUDA graph's replay has one call on the CPU: each launch of the
wrapper becomes an op of no duration inside it, because a replay runs nothing of it on the CPU, and the graph's kernels
belong to these ops.

Without wrappers the trace itself tells launches apart: each generated kernel and each library call is an op, with the
shapes of its arguments. Of a replay only generated kernels have a name that says so; what library calls ran between two
of them is one launch.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, TypeVar

import numpy as np

from tb_dlprof_plugin.analysis.wrapper_order import Work, aligned, recorded_name, work_name
from tb_dlprof_plugin.model.call_tree import depths
from tb_dlprof_plugin.model.compiled_graph import CompiledGraph, CompiledKernel, common_path
from tb_dlprof_plugin.model.dtypes import dtype_named
from tb_dlprof_plugin.model.lookup import joined, take_rows
from tb_dlprof_plugin.model.profile import CompiledKernels, Ints, Note, Profile
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import DeviceKind, HostEvents, HostKind, Timeline
from tb_dlprof_plugin.model.tree import any_in_subtree, inherit, parents, subtree_ends
from tb_dlprof_plugin.names.compiled import fused_words, is_generated, replayed_libraries
from tb_dlprof_plugin.names.cuda_calls import LAUNCHES_KERNELS, CudaCall, cuda_call_column
from tb_dlprof_plugin.names.kernel_verdicts import classify_kernel
from tb_dlprof_plugin.names.ops import short_op_name

_Inputs = TypeVar("_Inputs")
_CALL = re.compile(r"## Call CompiledFxGraph (\w+) ##$")


@dataclass(frozen=True, slots=True)
class JoinedLaunches:
    """A timeline with the ops of replayed launches; per host event its depth, the row of its parent, the row in
    ``kernels`` of the wrapper's launch that it is, and the row of the captured op that it repeats, -1 for none.

    ``calls`` counts calls of compiled graphs, ``unknown`` those whose wrapper is not known or came in another order.
    """

    timeline: Timeline
    depth: Ints
    parent: Ints
    kernel: Ints
    repeats: Ints
    kernels: tuple[tuple[str, CompiledKernel], ...]
    calls: int
    unknown: int


def join_wrappers(timeline: Timeline, depth: Ints, parent: Ints) -> JoinedLaunches:
    """Joins the launches of compiled graphs with `Timeline.compiled_graphs`, and replays with captures.

    Args:
        timeline: the trace.
        depth: of its host events.
        parent: per host event the row of its parent, -1 for none.
    """
    kernel = np.full(len(timeline.host), -1, dtype=np.int64)
    graphs = {graph.key: graph for graph in timeline.compiled_graphs}
    calls = list(_calls(timeline))
    known = [(row, graphs[key]) for row, key in calls if key in graphs]
    first: dict[str, int] = {}
    kernels: list[tuple[str, CompiledKernel]] = []
    replays: list[_Replayed] = []
    unknown = len(calls) - len(known)
    reader = _Inside(timeline, parent) if calls else None
    for row, graph in known:
        assert reader is not None
        launches = tuple(recorded_name(one.name) for one in graph.kernels)
        places, work = reader.work(row, frozenset(launches))
        order = aligned(launches, work)
        if order is None:
            unknown += 1
            continue
        if graph.key not in first:
            first[graph.key] = len(kernels)
            kernels += [(graph.key, one) for one in graph.kernels]
        for (host, device), launch in zip(places, order, strict=True):
            if launch >= 0 and device < 0:
                kernel[host] = first[graph.key] + launch
            elif launch >= 0:
                one = graph.kernels[launch]
                replays.append(_Replayed(host, device, first[graph.key] + launch, launches[launch], one))
    if reader is not None and len(timeline.device):
        _join_by_name(timeline, reader, [one for one in calls if one[1] not in graphs], kernel, kernels, replays)
    if any("StreamBeginCapture" in text for text in timeline.strings):
        replays += _of_captures(timeline, parent, [row for row, _ in calls])
    repeats = np.full(len(timeline.host), -1, dtype=np.int64)
    if replays:
        timeline, kernel, repeats = _with_replays(timeline, kernel, replays)
        depth = depths(timeline.host)
        parent = parents(depth)
    return JoinedLaunches(timeline, depth, parent, kernel, repeats, tuple(kernels), len(calls), unknown)


def _of_captures(timeline: Timeline, parent: Ints, calls: Sequence[int]) -> list[_Replayed]:
    """What replays of graphs run that were captured by hand, outside of the calls of compiled graphs."""
    # Hardly a recording holds a capture.
    from tb_dlprof_plugin.analysis.captured_graphs import repeated_ops

    inside = np.zeros(len(timeline.host), dtype=np.bool_)
    inside[list(calls)] = True
    found = repeated_ops(timeline, parent, inherit(inside, inside, parent))
    names = [timeline.strings[timeline.host.name[one.op]] for one in found]
    return [
        _Replayed(one.host, one.device, -1, name, CompiledKernel(name), one.op)
        for one, name in zip(found, names, strict=True)
    ]


def _join_by_name(
    timeline: Timeline,
    reader: _Inside,
    calls: Sequence[tuple[int, str]],
    kernel: Ints,
    kernels: list[tuple[str, CompiledKernel]],
    replays: list[_Replayed],
) -> None:
    """Joins the calls of graphs whose wrappers are not known: equal sequences of launches of a graph are the same."""
    first: dict[tuple[str, tuple[str, ...]], int] = {}
    for row, key in calls:
        places, names = reader.named(row)
        if not names:
            continue
        if (key, names) not in first:
            first[key, names] = len(kernels)
            of = {launch: host for host, device, launch in places if device < 0}
            kernels += [(key, _named_launch(timeline, of.get(number, -1), name)) for number, name in enumerate(names)]
        for host, device, launch in places:
            number = first[key, names] + launch
            if device < 0:
                kernel[host] = number
            else:
                replays.append(_Replayed(host, device, number, names[launch], kernels[number][1]))


def _named_launch(timeline: Timeline, host: int, name: str) -> CompiledKernel:
    """A launch by its name alone: a library call's is that of its op. With the bytes of its arguments, -1 where a size
    or a type is not recorded, or the host row is -1."""
    op = short_op_name(name)
    ops = (f"aten.{op}",) if name == f"aten::{op}" else ()
    total = 0
    if host >= 0:
        dtypes = timeline.input_dtypes[timeline.host.dtypes[host]]
        for shape, dtype in zip(timeline.input_shapes[timeline.host.shapes[host]], dtypes, strict=False):
            if shape and dtype.element_bytes is None:
                return CompiledKernel(name, ops)
            total += math.prod(shape) * (dtype.element_bytes or 0) if shape else 0
    return CompiledKernel(name, ops, bytes=total or -1)


def compiled_table(kernels: Sequence[tuple[str, CompiledKernel]], strings: list[str]) -> CompiledKernels:
    """The profile's table of the wrappers' launches. Appends to the strings."""
    table = StringTable.over(strings)
    columns = [
        (table.add(key), table.add(one.name), *(table.add(_SEPARATOR.join(x)) for x in (one.ops, one.places)),
         table.add(_SEPARATOR.join(one.modules)), len(one.modules),
         table.add(_SEPARATOR.join(map(str, one.module_bytes))), one.bytes, table.add(one.arguments))
        for key, one in kernels
    ]  # fmt: skip
    return CompiledKernels(*np.array(columns, dtype=np.int64).reshape(-1, 9).T)


_SEPARATOR = ", "


def compiled_notes(found: JoinedLaunches) -> list[Note]:
    """What is missing of compiled code, and what to do about it."""
    if not found.unknown:
        return []
    if not found.timeline.compiled_graphs:
        text = (
            "Of kernels of torch.compile the trace has names and shapes alone. Missing are the ops, lines and modules "
            "that they compute: record with the hook before the first call of the model (torch 2.9 or later), or with "
            "TORCH_TRACE and INDUCTOR_PROVENANCE=1 set, and import with --torch-trace."
        )
        return [Note("compiled_names_only", text, found.unknown)]
    text = (
        "Calls of compiled graphs ran launches in another order than their wrapper, or their wrapper was not recorded: "
        "what these kernels compute is unknown."
    )
    return [Note("compiled_unknown", text, found.unknown)]


def stored_graphs(profile: Profile) -> tuple[CompiledGraph, ...]:
    """The compiled graphs that a profile's table was made of; not those that only the names in the trace gave."""
    kernels, strings = profile.compiled_kernels, profile.strings
    graphs: dict[str, list[CompiledKernel]] = {}

    def parts(index: int) -> tuple[str, ...]:
        return tuple(strings[index].split(_SEPARATOR)) if strings[index] else ()

    for row, graph in enumerate(kernels.graph.tolist()):
        known = bool(kernels.module_count[row] > 0)
        one = CompiledKernel(
            name=strings[kernels.name[row]],
            ops=parts(int(kernels.ops[row])),
            places=parts(int(kernels.places[row])),
            modules=tuple(strings[kernels.modules[row]].split(_SEPARATOR)) if known else (),
            module_bytes=tuple(map(int, parts(int(kernels.module_bytes[row])))),
            bytes=int(kernels.bytes[row]),
            arguments=strings[kernels.arguments[row]],
        )
        graphs.setdefault(strings[graph], []).append(one)
    return tuple(
        CompiledGraph(key, tuple(launches))
        for key, launches in graphs.items()
        if any(one.places or one.modules for one in launches)
    )


def _calls(timeline: Timeline) -> Iterator[tuple[int, str]]:
    """The ranges of compiled graphs, each with its key."""
    keys = {index: found[1] for index, text in enumerate(timeline.strings) if (found := _CALL.match(text))}
    if not keys:
        return
    host = timeline.host
    for row in np.flatnonzero(np.isin(host.name, list(keys)) & (host.kind == HostKind.ANNOTATION)).tolist():
        yield row, keys[int(host.name[row])]


class _Inside:
    """What ran inside a call of a graph."""

    def __init__(self, timeline: Timeline, parent: Ints) -> None:
        self._timeline = timeline
        self._ends = subtree_ends(parent)
        host, device = timeline.host, timeline.device
        named = cuda_call_column(timeline.strings, host.name[host.kind == HostKind.RUNTIME].tolist())
        replays = (host.kind == HostKind.RUNTIME) & (named[host.name] == CudaCall.GRAPH_LAUNCH)
        self._is_replay = replays
        launches = (host.kind == HostKind.RUNTIME) & np.isin(named[host.name], LAUNCHES_KERNELS)
        self._launches = any_in_subtree(launches, self._ends)
        of_replay = np.isin(device.correlation, host.correlation[replays]) & (device.correlation > 0)
        self._activities: dict[int, list[int]] = {}
        # Events of a device are in order of start, which is that of capture on one stream.
        for at in np.flatnonzero(of_replay).tolist():
            self._activities.setdefault(int(device.correlation[at]), []).append(at)

    def work(self, call: int, launches: frozenset[str]) -> tuple[list[tuple[int, int]], tuple[Work, ...]]:
        """The host row and the device row of each (-1 for none), and what ran, in order."""
        host, device, strings = self._timeline.host, self._timeline.device, self._timeline.strings
        places: list[tuple[int, int]] = []
        work: list[Work] = []
        row, end = call + 1, int(self._ends[call])
        while row < end:
            following = row + 1
            if self._is_replay[row]:
                for at in self._activities.get(int(host.correlation[row]), ()):
                    places.append((row, at))
                    is_kernel = bool(device.kind[at] != DeviceKind.MEMSET)
                    work.append(Work(strings[device.name[at]], replayed=True, is_kernel=is_kernel))
            elif host.kind[row] == HostKind.OP:
                name = work_name(strings[host.name[row]])
                if name in launches or is_generated(name):
                    places.append((row, -1))
                    work.append(Work(name))
                    following = int(self._ends[row])
            row = following
        return places, tuple(work)

    def named(self, call: int) -> tuple[list[tuple[int, int, int]], tuple[str, ...]]:
        """Of what ran its host row, its device row (-1 for none) and its launch; the launches by their own names."""
        host, strings = self._timeline.host, self._timeline.strings
        places: list[tuple[int, int, int]] = []
        names: list[str] = []
        row, end = call + 1, int(self._ends[call])
        while row < end:
            following = row + 1
            if self._is_replay[row]:
                before = ""
                for at, name in self._replayed_names(self._activities.get(int(host.correlation[row]), ())):
                    if name != before or is_generated(name):
                        names.append(name)
                    before = name
                    places.append((row, at, len(names) - 1))
            elif host.kind[row] == HostKind.OP and (self._launches[row] or is_generated(strings[host.name[row]])):
                names.append(strings[host.name[row]])
                places.append((row, -1, len(names) - 1))
                following = int(self._ends[row])
            row = following
        return places, tuple(names)

    def _replayed_names(self, activities: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Each activity of a replay with its own name if it is generated, else what stands for library kernels."""
        device, strings = self._timeline.device, self._timeline.strings
        named = [(at, strings[device.name[at]]) for at in activities]
        for generated, some in groupby(named, lambda one: is_generated(one[1])):
            if generated:
                yield from some
                continue
            together = list(some)
            families = [
                classify_kernel(name).kind if device.kind[at] == DeviceKind.KERNEL else "" for at, name in together
            ]
            yield from zip((at for at, _ in together), replayed_libraries(families), strict=True)


@dataclass(frozen=True, slots=True)
class _Replayed:
    """An activity of a replay: its graph's launch, its device row, its launch in the wrapper, that one's name as ops
    have it, what is known of it, and the host row of the op that it repeats; -1 for none."""

    host: int
    device: int
    kernel: int
    name: str
    launch: CompiledKernel
    op: int = -1


def _with_replays(timeline: Timeline, kernel: Ints, replays: Sequence[_Replayed]) -> tuple[Timeline, Ints, Ints]:
    """The timeline with an op for each launch, and per host event the launch and the captured op that it is."""
    host, table = timeline.host, StringTable.over(timeline.strings)
    external, correlation = timeline.device.external_id.copy(), timeline.device.correlation.copy()
    next_id = int(max(host.external_id.max(initial=0), external.max(initial=0))) + 1
    shapes, dtypes = _InputRows(timeline.input_shapes), _InputRows(timeline.input_dtypes)
    rows: list[tuple[int, ...]] = []  # graph's launch, name, start, id, kernel, captured op, shapes, dtypes
    before: _Replayed | None = None
    inside = 0
    for one in replays:
        if before is None or before.host != one.host:
            inside = 0
        if before is None or (before.host, before.kernel, before.op) != (one.host, one.kernel, one.op):
            inside += 1
            start = int(host.start_ns[one.host]) + min(inside, int(host.duration_ns[one.host]))
            inputs = (
                (int(host.shapes[one.op]), int(host.dtypes[one.op]))
                if one.op >= 0
                else (shapes.row(one.launch.shapes), dtypes.row(tuple(map(dtype_named, one.launch.dtypes))))
            )
            rows.append((one.host, table.add(one.name), start, next_id + len(rows), one.kernel, one.op, *inputs))
        external[one.device], correlation[one.device] = rows[-1][3], -1
        before = one
    launch, name, start, ids, of_kernel, of_op, of_shapes, of_dtypes = np.array(rows, dtype=np.int64).T
    nothing, zero = np.full(len(rows), -1, dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    ops = HostEvents(
        name=name,
        kind=np.full(len(rows), int(HostKind.OP), dtype=np.int64),
        thread=host.thread[launch],
        start_ns=start,
        duration_ns=zero,
        correlation=nothing,
        external_id=ids,
        sequence_number=nothing,
        forward_thread=nothing,
        shapes=of_shapes,
        dtypes=of_dtypes,
    )
    both = joined([host, ops], HostEvents)
    order = np.lexsort((-both.duration_ns, both.start_ns, both.thread))
    device = dataclasses.replace(timeline.device, external_id=external, correlation=correlation)
    changed = dataclasses.replace(
        timeline, host=take_rows(both, order), device=device, input_shapes=shapes.values, input_dtypes=dtypes.values
    )
    new_row = np.empty_like(order)
    new_row[order] = np.arange(len(order))
    repeats = np.concatenate((np.full(len(host), -1), np.where(of_op >= 0, new_row[of_op], -1)))[order]
    return changed, np.concatenate((kernel, of_kernel))[order], repeats


class _InputRows(Generic[_Inputs]):
    """The lists of inputs of a timeline, with more of them."""

    def __init__(self, values: Sequence[_Inputs]) -> None:
        self.values = list(values)
        self._rows = {inputs: row for row, inputs in reversed(list(enumerate(self.values)))}

    def row(self, inputs: _Inputs) -> int:
        if inputs not in self._rows:
            self._rows[inputs] = len(self.values)
            self.values.append(inputs)
        return self._rows[inputs]


def fused_names(kernels: Sequence[tuple[str, CompiledKernel]]) -> dict[int, str]:
    """The op type of generated kernels by their row: the ATen ops that each computes, joined; where the wrapper is not
    known, as far as the kernel's name has them."""
    types = {
        row: "+".join(short_op_name(name.replace(".", "::")) for name in one.ops) or fused_words(one.name)
        for row, (_, one) in enumerate(kernels)
        if is_generated(one.name)
    }
    return {row: text for row, text in types.items() if text}


def modules_of(kernels: Sequence[tuple[str, CompiledKernel]], strings: list[str]) -> Ints:
    """String index of the path of each row's module, -1 for unknown: of several modules, of the one that holds all."""
    table = StringTable.over(strings)
    paths = [common_path(one.modules) if one.modules else None for _, one in kernels]
    return np.array([-1 if path is None else table.add(path) for path in paths], dtype=np.int64)
