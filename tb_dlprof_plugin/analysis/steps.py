"""Finds the boundaries of the iterations.

Those that the recording's format marks come first. Else the user's own steps, the host annotations ``ProfilerStep#n``
that ``prof.step()`` writes ("profiler_step"). Else each optimizer step ends an iteration ("optimizer_step"). Else the
whole recording is one iteration ("none"). Annotations on the GPU (``gpu_user_annotation``) are never steps: they repeat
the host's with other times.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Attribution, Ints
from tb_dlprof_plugin.model.timeline import HostEvents, HostKind, StepMarks, Timeline
from tb_dlprof_plugin.names.ops import OPTIMIZER_STEP, PROFILER_STEP

_MOST_DIGITS = 18  # a number of as many digits fits 64 bits


def find_steps(timeline: Timeline) -> StepMarks:
    """The iterations of a timeline; consecutive ones share their boundary, so that no time falls between them."""
    if timeline.step_marks is not None:
        return timeline.step_marks
    profiler, optimizer = _profiler_steps(timeline), _optimizer_steps(timeline)
    if profiler is not None and len(profiler.number) == 1 and optimizer is not None and len(optimizer.number) > 1:
        # One profiler step around many optimizer steps: prof.step() was not called.
        return optimizer
    return profiler or optimizer or _whole(timeline)


def without_unfinished_step(steps: StepMarks, op_start_ns: Ints) -> StepMarks:
    """The iterations without a last one in which no op ran.

    A loop that ends while the profiler records leaves such a step after its last ``prof.step()``: it holds only the
    DataLoader's own end, and would count as an iteration that waits for data.

    Args:
        steps: the iterations.
        op_start_ns: starts of all ops that are not the DataLoader's.
    """
    if steps.found_by != "profiler_step" or len(steps.number) < 2:
        return steps
    inside = (op_start_ns >= steps.start_ns[-1]) & (op_start_ns < steps.stop_ns[-1])
    if inside.any() or not (op_start_ns < steps.start_ns[-1]).any():
        return steps
    return StepMarks(steps.number[:-1], steps.start_ns[:-1], steps.stop_ns[:-1], steps.found_by)


def _profiler_steps(timeline: Timeline) -> StepMarks | None:
    rows = annotation_rows(timeline, PROFILER_STEP)
    numbered: dict[int, tuple[int, int]] = {}
    for row in rows:
        text = timeline.strings[timeline.host.name[row]].removeprefix(PROFILER_STEP)
        if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
            start = int(timeline.host.start_ns[row])
            numbered.setdefault(int(text), (start, start + int(timeline.host.duration_ns[row])))
    if not numbered:
        return None
    ordered = sorted(numbered.items(), key=lambda item: item[1])
    number = np.array([n for n, _ in ordered], dtype=np.int64)
    starts = np.array([begin for _, (begin, _) in ordered], dtype=np.int64)
    stops = np.array([end for _, (_, end) in ordered], dtype=np.int64)
    # The next step begins in the same call that ends this one; the few microseconds between are the profiler's.
    follows = number[1:] == number[:-1] + 1
    stops[:-1] = np.where(follows, starts[1:], np.minimum(stops[:-1], starts[1:]))
    return StepMarks(number, starts, stops, "profiler_step")


def _optimizer_steps(timeline: Timeline) -> StepMarks | None:
    rows = annotation_rows(timeline, OPTIMIZER_STEP)
    if not len(rows):
        return None
    host = timeline.host
    ends = np.sort(host.start_ns[rows] + host.duration_ns[rows])
    start = np.concatenate(([host.start_ns.min()], ends[:-1]))
    return StepMarks(np.arange(len(ends), dtype=np.int64), start, ends, "optimizer_step")


def _whole(timeline: Timeline) -> StepMarks:
    tables = [table for table in (timeline.host, timeline.device) if len(table)]
    start = min(int(table.start_ns.min()) for table in tables)
    stop = max(int((table.start_ns + table.duration_ns).max()) for table in tables)
    return StepMarks(np.array([0]), np.array([start]), np.array([stop]), "none")


def annotation_rows(timeline: Timeline, prefix: str) -> Ints:
    """Rows of the host events that are annotations whose names begin with ``prefix``."""
    host: HostEvents = timeline.host
    named = np.array([text.startswith(prefix) for text in timeline.strings], dtype=np.bool_)
    # Older torch recorded annotations as ops.
    return np.flatnonzero(named[host.name] & (host.kind != HostKind.RUNTIME))


def completion_windows(timeline: Timeline, steps: StepMarks, call: Ints, attribution: Ints) -> tuple[Ints, Ints]:
    """Start and stop of each iteration (ns), the GPU work that it launched included. Neighbours share their boundary.

    Args:
        timeline: the trace.
        steps: the iterations as the CPU ran them.
        call: per device event the row of its launching host event, -1 for none.
        attribution: per device event its `Attribution`.
    """
    device = timeline.device
    if not len(device) or steps.found_by == "none":
        return steps.start_ns, steps.stop_ns
    ends = device.start_ns + device.duration_ns
    launched_at = take_or(timeline.host.start_ns, call, -1)

    earlier = (attribution == Attribution.ORPHAN) | ((call >= 0) & (launched_at < steps.start_ns[0]))
    begin = max(int(steps.start_ns[0]), int(ends[earlier].max(initial=0)))
    done = np.zeros(len(steps.number), dtype=np.int64)
    index = np.searchsorted(steps.start_ns, launched_at, side="right") - 1
    inside = (call >= 0) & (index >= 0)
    inside[inside] = launched_at[inside] < steps.stop_ns[index[inside]]
    np.maximum.at(done, index[inside], ends[inside])
    stop = np.maximum.accumulate(np.maximum(np.maximum(steps.stop_ns, done), begin))
    # Where steps were left out between two recorded ones, the next begins with the CPU's own start.
    start = np.maximum(np.concatenate(([begin], stop[:-1])), steps.start_ns)
    return start, stop
