"""GPU work launched outside every op: by a CUDA extension inside an annotation or module, or by a CUDA graph.

No operator is recorded for it, but its launching call is known: Apex' FusedAdam inside its ``Optimizer.step``, a graph
inside ``cudaGraphLaunch``. The launching calls then are rows of their own, named after the innermost annotation around
them, else after the call. Those of a thread without ranges, while another waits in one, are named after that range, and
belong to its module and part of the step. What lies in neither stays unattributed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.analysis.roles import Roles
from tb_dlprof_plugin.model.grouping import distinct
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import HostKind, Timeline
from tb_dlprof_plugin.model.tree import inherit
from tb_dlprof_plugin.names.cuda_calls import CudaCall, cuda_call_column
from tb_dlprof_plugin.names.ops import PROFILER_STEP


@dataclass(frozen=True, slots=True)
class Adopted:
    """Roles in which such calls are outermost ops; per host event the string index of the name that one lends them, and
    whether it was found by the clock."""

    roles: Roles
    lent_names: Ints
    by_time: Bools


def adopt_direct_launches(timeline: Timeline, roles: Roles, call: Ints, parent: Ints) -> Adopted:
    """The launching calls outside every op, as ops.

    Args:
        timeline: the trace.
        roles: of its host events.
        call: per device event the row of its launching host event, -1 for none.
        parent: per host event the row of its parent.
    """
    host, strings = timeline.host, timeline.strings
    lent = np.full(len(host), -1, dtype=np.int64)
    by_time = np.zeros(len(host), dtype=np.bool_)
    rows = distinct(call[call >= 0])
    rows = rows[(host.kind[rows] == HostKind.RUNTIME) & (roles.top_call[rows] < 0)]
    if not len(rows):
        return Adopted(roles, lent, by_time)
    step = np.array([text.startswith(PROFILER_STEP) for text in strings], dtype=np.bool_)
    graph = cuda_call_column(strings, host.name[rows].tolist()) == CudaCall.GRAPH_LAUNCH
    marks = timeline.step_marks
    marked = np.isin(host.start_ns, marks.start_ns) if marks is not None else np.zeros(len(host), dtype=np.bool_)
    named = (roles.kind == CallKind.ANNOTATION) & ~step[host.name] & ~marked
    annotation = inherit(np.where(named, host.name, -1), named, parent)[rows]
    adopted = (annotation >= 0) | (roles.module[rows] > 0) | graph[host.name[rows]]
    left = rows[~adopted]
    rows, annotation = rows[adopted], annotation[adopted]
    lent[rows] = np.where(annotation >= 0, annotation, _names_in_modules(timeline, roles, rows))
    module, role = roles.module.copy(), roles.role.copy()
    lending = lending_ranges(timeline, roles.kind, call)
    left = left[lending[left] >= 0]
    if len(left):
        source = lending[left]
        # Of a module's range the launch itself is the op, as it is for a launch inside one.
        of_module = _names_in_modules(timeline, roles, left, source)
        lent[left] = np.where(roles.kind[source] == CallKind.MODULE, of_module, host.name[source])
        module[left], role[left], by_time[left] = roles.module[source], roles.role[source], True
        rows = np.concatenate((rows, left))
    top, top_call = roles.top.copy(), roles.top_call.copy()
    top[rows] = True
    top_call[rows] = rows
    return Adopted(replace(roles, top=top, top_call=top_call, module=module, role=role), lent, by_time)


def _names_in_modules(timeline: Timeline, roles: Roles, rows: Ints, source: Ints | None = None) -> Ints:
    """What launches inside a module are called: as the launch, and where modules are ranges of the program, as the
    innermost. ``source`` has the rows of the modules, where the launches do not lie in them."""
    names = timeline.host.name[rows]
    if not timeline.by_time:
        return names
    module = roles.module[rows if source is None else source]
    table = StringTable.over(timeline.strings)
    of_module = {path: table.add(timeline.strings[path].rpartition(".")[2]) for path in distinct(module).tolist()}
    return np.array(
        [of_module[path] if path else name for path, name in zip(module.tolist(), names.tolist(), strict=True)],
        dtype=np.int64,
    )


def lending_ranges(timeline: Timeline, kind: Ints, call: Ints) -> Ints:
    """Per host event the row of the range that lends its op to it, -1 for none.

    Args:
        timeline: with ``by_time``; of any other, no range lends anything.
        kind: `CallKind` of each host event.
        call: per device event the row of its launching host event, -1 for none.
    """
    host = timeline.host
    result = np.full(len(host), -1, dtype=np.int64)
    launches = distinct(call[call >= 0]) if timeline.by_time else call[:0]
    is_range = (kind == CallKind.OP) | (kind == CallKind.ANNOTATION) | (kind == CallKind.MODULE)
    if not len(launches) or not is_range.any():
        return result
    with_ranges = np.zeros(int(host.thread.max()) + 1, dtype=np.bool_)
    with_ranges[host.thread[is_range]] = True
    without = launches[~with_ranges[host.thread[launches]]]
    if not len(without):
        return result
    time = host.start_ns[without]
    around = np.full(len(without), -1, dtype=np.int64)
    several = np.zeros(len(without), dtype=np.bool_)
    for thread in np.flatnonzero(with_ranges).tolist():
        rows = np.flatnonzero((host.thread == thread) & is_range)
        innermost = _innermost(host.start_ns[rows], (host.start_ns + host.duration_ns)[rows], time)
        inside = innermost >= 0
        several |= inside & (around >= 0)
        around[inside] = rows[innermost[inside]]
    lent = (around >= 0) & ~several
    lent[lent] = _waits(timeline, launches, without[lent], around[lent])
    result[without[lent]] = around[lent]
    return result


def _innermost(start_ns: Ints, stop_ns: Ints, time_ns: Ints) -> Ints:
    """The last of the ranges to start that is around each time, -1 for none. Ranges are in order of start."""
    position = np.searchsorted(start_ns, time_ns, side="right") - 1
    # The range before which is around the whole of each: a chain from the last that began.
    outer = np.full(len(start_ns), -1, dtype=np.int64)
    stack: list[int] = []
    for row, (start, stop) in enumerate(zip(start_ns.tolist(), stop_ns.tolist(), strict=True)):
        while stack and stop_ns[stack[-1]] <= start:
            stack.pop()
        outer[row] = stack[-1] if stack else -1
        stack.append(row)
        del stop
    while True:
        past = (position >= 0) & (stop_ns[np.maximum(position, 0)] <= time_ns)
        if not past.any():
            return position
        position = np.where(past, outer[np.maximum(position, 0)], position)


def _waits(timeline: Timeline, launches: Ints, borrowing: Ints, lending: Ints) -> Bools:
    """Whether the range's own thread launches nothing between the first and the last launch that it would lend to."""
    host = timeline.host
    first, last = (np.full(len(host), value, dtype=np.int64) for value in (2**62, -(2**62)))
    np.minimum.at(first, lending, host.start_ns[borrowing])
    np.maximum.at(last, lending, host.start_ns[borrowing])
    waits = np.zeros(len(host), dtype=np.bool_)
    for thread in distinct(host.thread[lending]).tolist():
        own = np.sort(host.start_ns[launches[host.thread[launches] == thread]])
        rows = distinct(lending[host.thread[lending] == thread])
        between = np.searchsorted(own, last[rows], side="right") - np.searchsorted(own, first[rows], side="left")
        waits[rows] = between == 0
    return waits[lending]
