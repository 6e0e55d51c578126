"""Joins replays of CUDA graphs that were captured by hand with the calls that their capture recorded.

While a stream is captured, ops run on the CPU as ever, and what they launch has no activity on the GPU. A replay runs
just these launches, in their order where the graph is one stream. So where a recording holds the capture, each
activity of a replay belongs to the op that launched it there: `torch.cuda.graph`, ``make_graphed_callables``. Counts
and kinds must agree, and kernels must be those that the same ops launch outside of the capture, as far as it says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.profile import Bools, Ints
from tb_dlprof_plugin.model.timeline import DeviceKind, HostKind, Timeline
from tb_dlprof_plugin.names.cuda_calls import CudaCall, cuda_call_column
from tb_dlprof_plugin.names.ops import MODULE_PREFIX, OPTIMIZER_STEP, PROFILER_STEP, ZERO_GRAD
from tb_dlprof_plugin.names.tensor_core_eligibility import is_matrix_op

_AGREEING = 0.9
"""Share of the kernels that can be compared: cuDNN may choose another algorithm in a capture. Ours."""
_RANGES = (MODULE_PREFIX, PROFILER_STEP, OPTIMIZER_STEP, ZERO_GRAD)
"""Ranges that have the category of ops, some in older versions of torch."""
_KINDS = {
    CudaCall.LAUNCH: DeviceKind.KERNEL,
    CudaCall.MEMCPY: DeviceKind.MEMCPY,
    CudaCall.MEMCPY_ASYNC: DeviceKind.MEMCPY,
    CudaCall.MEMSET: DeviceKind.MEMSET,
    CudaCall.MEMSET_ASYNC: DeviceKind.MEMSET,
}


@dataclass(frozen=True, slots=True)
class RepeatedOp:
    """An activity of a replay: the rows of its graph's launch, of the activity, and of the op that was captured."""

    host: int
    device: int
    op: int


def repeated_ops(timeline: Timeline, parent: Ints, known: Bools) -> list[RepeatedOp]:
    """The activities of replays whose capture was recorded, replay by replay.

    Args:
        timeline: the trace.
        parent: per host event the row of its parent, -1 for none.
        known: host events whose replays are known already.
    """
    host, device, strings = timeline.host, timeline.device, timeline.strings
    runtime = host.kind == HostKind.RUNTIME
    meaning = np.where(runtime, cuda_call_column(strings, host.name[runtime].tolist())[host.name], -1)
    replays = np.flatnonzero((meaning == CudaCall.GRAPH_LAUNCH) & ~known)
    if not len(replays):
        return []
    captures = _captures(timeline, meaning)
    if not captures:
        return []
    activities: dict[int, list[int]] = defaultdict(list)
    for at in np.flatnonzero(
        np.isin(device.correlation, host.correlation[replays]) & (device.correlation > 0)
    ).tolist():
        activities[int(device.correlation[at])].append(at)
    names = _launched_names(timeline, parent)
    by_kinds: dict[tuple[int, ...], list[Ints]] = defaultdict(list)
    for rows in captures:
        by_kinds[tuple(int(_KINDS[CudaCall(one)]) for one in meaning[rows].tolist())].append(rows)
    of_kinds: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for row in replays[np.argsort(host.start_ns[replays], kind="stable")].tolist():
        own = activities.get(int(host.correlation[row]), [])
        if _in_one_line(timeline, own):
            of_kinds[tuple(device.kind[own].tolist())].append(row)
    found: list[RepeatedOp] = []
    for kinds, alike in of_kinds.items():
        candidates = by_kinds.get(kinds, [])
        # Graphs of the same kinds of work, such as equal blocks, are replayed in the order of their captures.
        if not candidates or len(alike) % len(candidates):
            continue
        for number, replay in enumerate(alike):
            captured = candidates[number % len(candidates)]
            own = activities[int(host.correlation[replay])]
            if host.start_ns[replay] >= host.start_ns[captured[-1]] and _agrees(timeline, parent, names, captured, own):
                found += [
                    RepeatedOp(replay, at, op)
                    for launch, at in zip(captured.tolist(), own, strict=True)
                    if (op := _op_of(timeline, parent, launch)) >= 0
                ]
    return found


def _captures(timeline: Timeline, meaning: Ints) -> list[Ints]:
    """Of each capture its launches in order: calls of any thread without an activity, between its begin and its end."""
    host, strings = timeline.host, timeline.strings
    runtime = host.kind == HostKind.RUNTIME
    begins, ends = (
        np.sort(host.start_ns[runtime & np.isin(host.name, [i for i, text in enumerate(strings) if part in text])])
        for part in ("StreamBeginCapture", "StreamEndCapture")
    )
    launches = runtime & np.isin(meaning, list(_KINDS)) & ~np.isin(host.correlation, timeline.device.correlation)
    rows = np.flatnonzero(launches)
    rows = rows[np.argsort(host.start_ns[rows], kind="stable")]
    found = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=False):
        inside = rows[(host.start_ns[rows] > begin) & (host.start_ns[rows] < end)]
        if len(inside):
            found.append(inside)
    return found


def _launched_names(timeline: Timeline, parent: Ints) -> dict[tuple[int, int, int], set[int]]:
    """Names of the kernels that ops launched outside of captures: by the op's name, its shapes, and the launch's place
    in it."""
    host, device = timeline.host, timeline.device
    of_correlation = dict(zip(device.correlation.tolist(), device.name.tolist(), strict=True))
    names: dict[tuple[int, int, int], set[int]] = defaultdict(set)
    rows = np.flatnonzero((host.kind == HostKind.RUNTIME) & np.isin(host.correlation, device.correlation))
    for row, key in zip(rows.tolist(), _places(timeline, parent, rows), strict=True):
        names[key].add(of_correlation[int(host.correlation[row])])
    return names


def _places(timeline: Timeline, parent: Ints, rows: Ints) -> list[tuple[int, int, int]]:
    """Per launch the name and shapes of the op right around it, and its place there."""
    host = timeline.host
    inside: dict[int, int] = defaultdict(int)
    found = []
    for row in rows.tolist():
        op = int(parent[row])
        found.append((int(host.name[op]), int(host.shapes[op]), inside[op]) if op >= 0 else (-1, -1, 0))
        inside[op] += 1
    return found


def _agrees(
    timeline: Timeline,
    parent: Ints,
    names: dict[tuple[int, int, int], set[int]],
    captured: Ints,
    activities: Sequence[int],
) -> bool:
    """Whether the kernels are those that the same ops launched elsewhere, where they did."""
    pairs = [
        (names[key], int(timeline.device.name[at]))
        for key, at in zip(_places(timeline, parent, captured), activities, strict=True)
        if key in names and timeline.device.kind[at] == DeviceKind.KERNEL
    ]
    return sum(name in known for known, name in pairs) >= _AGREEING * len(pairs)


def _in_one_line(timeline: Timeline, activities: Sequence[int]) -> bool:
    """Whether one activity follows the other: parallel branches of a graph start in no order that is known."""
    device = timeline.device
    starts = device.start_ns[activities]
    stops = starts + device.duration_ns[activities]
    # A kernel may begin when the one before it lets it.
    return bool((starts[2:] >= stops[:-2]).all())


def _op_of(timeline: Timeline, parent: Ints, row: int) -> int:
    """The op that stands for a launch: a matrix routine, which has shapes, else the outermost; -1 for none."""
    outermost = routine = -1
    while (row := int(parent[row])) >= 0:
        name = timeline.strings[timeline.host.name[row]]
        if timeline.host.kind[row] == HostKind.OP and not name.startswith(_RANGES):
            outermost = row
            if is_matrix_op(name):
                routine = row
    return routine if routine >= 0 else outermost
