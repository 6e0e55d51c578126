"""Gives the kernels of a replayed CUDA graph the ops in which their nodes were captured.

With ``--cuda-graph-trace=node`` each kernel, copy and set has the id of its node, but all have the correlation id of
one ``cudaGraphLaunch``. Nsight Systems records when and on which thread a node was created, and of an instantiated
graph which node it was made from (``CUDA_GRAPH_NODE_EVENTS``; ``CUDA_GRAPH_EVENTS`` of older versions). The ranges
pushed while the graph was captured are repeated inside each of its launches, one nanosecond from edge to edge, because
a replay runs nothing of them on the CPU, and the activities get the op_id of theirs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.model.lookup import joined, take_rows
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.model.timeline import Ints, TraceNote
from tb_dlprof_plugin.readers.cupti.recording import Activities, CudaCalls
from tb_dlprof_plugin.readers.nsys.machine import process_key
from tb_dlprof_plugin.readers.nvtx.nesting import parent_rows
from tb_dlprof_plugin.readers.nvtx.ranges import NvtxRanges
from tb_dlprof_plugin.readers.sqlite_tables import MISSING, Database

_NODE_TABLES = ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS")
_BEGIN_CAPTURE = "StreamBeginCapture"
_MOST_CLONES = 8
"""How often a node is followed to the one it was made from: a graph is instantiated, and child graphs are cloned."""
_MOST_REPEATED = 20
"""Repeated ranges for each activity of graphs, at most: what nests deeper is left as it is."""


def with_replayed_ranges(
    database: Database, ranges: NvtxRanges, calls: CudaCalls, call_names: list[str], work: Activities
) -> tuple[NvtxRanges, list[TraceNote]]:
    """The ranges with those that graphs replay, and a note on nodes whose op is not known.

    Args:
        database: for the creation of nodes.
        ranges: of all processes.
        calls: CUDA calls.
        call_names: what their ``name`` indexes.
        work: activities; ``external_id`` is set where the op is known.
    """
    of_graph = work.node >= 0
    if not of_graph.any():
        return ranges, []
    nodes = _Nodes(database)
    root = nodes.origin(work.process, work.node)
    parts = [ranges]
    next_id, next_sequence = int(ranges.op_id.max(initial=0)) + 1, int(ranges.sequence_number.max(initial=0)) + 1
    capture = np.array([name.endswith(_BEGIN_CAPTURE) for name in call_names], dtype=np.bool_)
    capture_calls = np.flatnonzero(capture[calls.name]) if len(calls) else np.zeros(0, dtype=np.int64)
    left = _MOST_REPEATED * int(of_graph.sum())
    for process in np.unique(work.process[of_graph]).tolist():
        mine = np.flatnonzero(of_graph & (work.process == process) & (root >= 0))
        own_ranges = np.flatnonzero((ranges.process == process) & ranges.nested & (ranges.stop_ns != MISSING))
        if not len(mine) or not len(own_ranges):
            continue
        began = np.sort(calls.start_ns[capture_calls[calls.process[capture_calls] == process]])
        around = _Around(take_rows(ranges, own_ranges), nodes, began)
        own_calls = np.flatnonzero(calls.process == process)
        call_of = dict(zip(calls.correlation[own_calls].tolist(), own_calls.tolist(), strict=True))
        for correlation, rows in _groups(work.correlation, mine):
            call = call_of.get(correlation)
            if call is None:
                continue
            inner, used = around.of_graph(root[rows])
            rows, inner = rows[inner >= 0], inner[inner >= 0]
            if not len(rows):
                continue
            left -= len(used)
            if left < 0:
                break
            copies = take_rows(around.ranges, used)
            opens, closes = _edges(copies, int(calls.start_ns[call]), int(calls.stop_ns[call]))
            numbered = copies.sequence_number >= 0
            ids = next_id + np.arange(len(used), dtype=np.int64)
            thread = np.full(len(used), calls.thread[call])
            parts.append(
                replace(
                    copies, start_ns=opens, stop_ns=closes, thread=thread, end_thread=thread, op_id=ids,
                    # Autograd's numbers pair a forward op with its nodes: of one replay.
                    sequence_number=np.where(numbered, copies.sequence_number + next_sequence, -1),
                )
            )  # fmt: skip
            work.external_id[rows] = ids[np.searchsorted(used, inner)]
            next_id += len(used)
            next_sequence += int(copies.sequence_number.max(initial=0)) + 1
    return joined(parts, NvtxRanges), _notes(work, of_graph)


def _notes(work: Activities, of_graph: Bools) -> list[TraceNote]:
    lost = of_graph & (work.external_id < 0)
    if not lost.any():
        return []
    why = (
        "their capture was not recorded, or no range was pushed in it. Record from the start of the program, without "
        "--capture-range, and with ranges, to have their ops"
    )
    text = f"Kernels and copies of CUDA graphs belong to the launch of their graph: {why}."
    return [TraceNote("graph_nodes", text, int(lost.sum()))]


class _Nodes:
    """Where nodes were created: rows sorted by process and node."""

    def __init__(self, database: Database) -> None:
        wanted = ("start", "globalTid", "graphNodeId", "originalGraphNodeId")
        table = next((one for one in _NODE_TABLES if database.has(one, "graphNodeId")), _NODE_TABLES[0])
        columns = database.columns(table, wanted)
        kept = (columns["graphNodeId"] >= 0) & (columns["start"] != MISSING)
        self.start_ns, self.thread, node, original = (columns[name][kept] for name in wanted)
        process = process_key(self.thread)
        order = np.lexsort((self.start_ns, node, process))
        self._process, self._node, self._original = process[order], node[order], original[order]
        self.start_ns, self.thread = self.start_ns[order], self.thread[order]
        self._keys = {key: row for row, key in enumerate(zip(self._process.tolist(), self._node.tolist(), strict=True))}

    def origin(self, process: Ints, node: Ints) -> Ints:
        """Row of the node that each was made from in the end; -1 where that is not recorded."""
        pairs: dict[tuple[int, int], int] = {}
        result = np.full(len(node), -1, dtype=np.int64)
        for at in np.flatnonzero(node >= 0).tolist():
            key = (int(process[at]), int(node[at]))
            if key not in pairs:
                pairs[key] = self._follow(*key)
            result[at] = pairs[key]
        return result

    def _follow(self, process: int, node: int) -> int:
        row = self._keys.get((process, node), -1)
        for _ in range(_MOST_CLONES):
            if row < 0 or self._original[row] < 0:
                return row
            row = self._keys.get((process, int(self._original[row])), -1)
        return -1


class _Around:
    """The ranges of a process around the creation of nodes, sorted by thread, start and falling duration."""

    def __init__(self, ranges: NvtxRanges, nodes: _Nodes, captures_ns: Ints) -> None:
        order = np.lexsort((-ranges.stop_ns, ranges.start_ns, ranges.thread))
        self.ranges, self._nodes, self._captures = take_rows(ranges, order), nodes, captures_ns
        threads = np.unique(self.ranges.thread)
        number = np.searchsorted(threads, self.ranges.thread)
        self._parent = parent_rows(number, self.ranges.start_ns, self.ranges.stop_ns)
        self._known: dict[bytes, tuple[Ints, Ints]] = {}

    def of_graph(self, node: Ints) -> tuple[Ints, Ints]:
        """Per node of a graph the row of the innermost range that was pushed while it was captured, -1 for none; and
        the rows of these and of those around them, sorted.

        A range around all nodes of a graph that was built without a capture does not count.
        """
        different, place = np.unique(node, return_inverse=True)
        key = different.tobytes()
        if key not in self._known:
            inside = self._inside(self._nodes.start_ns[different])
            inner = self._innermost(different)
            inner = np.where((inner >= 0) & inside[inner], inner, -1)
            self._known[key] = inner, self._with_parents(inner[inner >= 0], inside)
        inner, used = self._known[key]
        return inner[place], used

    def _innermost(self, node: Ints) -> Ints:
        time, thread = self._nodes.start_ns[node], self._nodes.thread[node]
        ranges = self.ranges
        row = np.full(len(node), -1, dtype=np.int64)
        for number in np.unique(thread).tolist():
            first, last = np.searchsorted(ranges.thread, (number, number + 1))
            here = thread == number
            at = first + np.searchsorted(ranges.start_ns[first:last], time[here], side="right") - 1
            row[here] = np.where(at >= first, at, -1)
        while (ended := (row >= 0) & (ranges.stop_ns[row] < time)).any():
            row = np.where(ended, self._parent[row], row)
        return row

    def _with_parents(self, row: Ints, inside: Bools) -> Ints:
        found = set(row.tolist())
        for one in list(found):
            above = int(self._parent[one])
            while above >= 0 and inside[above] and above not in found:
                found.add(above)
                above = int(self._parent[above])
        return np.array(sorted(found), dtype=np.int64)

    def _inside(self, time: Ints) -> Bools:
        """Which ranges may be part of the graph whose nodes were created at these times."""
        first, last = int(time.min()), int(time.max())
        at = int(np.searchsorted(self._captures, first, side="right")) - 1
        if at >= 0:
            return self.ranges.start_ns >= self._captures[at]
        return (self.ranges.start_ns > first) | (self.ranges.stop_ns < last)


def _edges(copies: NvtxRanges, start: int, stop: int) -> tuple[Ints, Ints]:
    """Starts and ends in the order of the originals', a nanosecond apart as far as the launch's extent goes."""
    count = len(copies)
    time = np.concatenate((copies.start_ns, copies.stop_ns))
    closing = np.repeat((0, 1), count)
    # At one time an inner range closes before an outer one, and opens after it: they stand outer first.
    inner = np.concatenate((np.arange(count), -np.arange(count)))
    rank = np.empty(2 * count, dtype=np.int64)
    rank[np.lexsort((inner, closing, time))] = np.arange(2 * count)
    room = max(0, stop - start - 1)
    place = start + (rank + 1 if room > 2 * count else rank * room // max(1, 2 * count))
    return place[:count], place[count:]


def _groups(keys: Ints, rows: Ints) -> list[tuple[int, Ints]]:
    """The rows of each key, in the order of the keys."""
    order = rows[np.argsort(keys[rows], kind="stable")]
    edges = np.flatnonzero(np.diff(keys[order])) + 1
    return [(int(keys[part[0]]), part) for part in np.split(order, edges)]
