"""Cuts a trace that holds several processes, such as merged traces of ranks, into a Timeline for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from tb_dlprof_plugin.model.grouping import group_rows
from tb_dlprof_plugin.model.lookup import rows_of_each, rows_with, take_or, take_rows
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.model.timeline import (
    CommunicationEvents,
    DeviceEvents,
    HostEvents,
    HostKind,
    Ints,
    Timeline,
    TraceNote,
)
from tb_dlprof_plugin.readers.errors import TraceError

_T = TypeVar("_T")
_FEWEST_OPS = 10
"""Of a process that launched nothing. Damaged events have odd processes, and are fewer."""
_USUAL = 0.9
"""Share of a stream's work that a process must have launched, so that the rest of it counts as its own, too."""


def by_process(timeline: Timeline, process_of_thread: Sequence[str]) -> list[Timeline]:
    """A Timeline for each process that ran ops and used a GPU, by process id; of those without GPU work all, where none
    has any. A note names them.

    Each process counts its correlation ids from 1: a kernel belongs to the process that launched the work of its
    stream, each before it began.

    Args:
        timeline: of the whole file.
        process_of_thread: the process of each thread number.

    Raises:
        TraceError: which process launched the GPU's work is not recorded.
    """
    host = timeline.host
    pids = np.array(process_of_thread or [""], dtype=object)
    pid_of_row = pids[host.thread]
    ops = Counter(pid_of_row[host.kind == HostKind.OP].tolist())
    launched = set(pid_of_row[host.correlation > 0].tolist())
    ran_ops = sorted((pid for pid, count in ops.items() if count >= _FEWEST_OPS or pid in launched), key=_by_number)
    if len(ran_ops) < 2:
        return [timeline]
    from tb_dlprof_plugin.readers.processes import left_out_note, processes_note

    number_of = {pid: number for number, pid in enumerate(ran_ops)}
    main = number_of[max(ran_ops, key=lambda pid: ops[pid])]
    of_thread = np.array([number_of.get(pid, main) for pid in pids.tolist()], dtype=np.int64)
    of_host, of_device = of_thread[host.thread], _process_of_work(timeline, of_thread, len(ran_ops))
    worked = np.unique(of_device[of_device >= 0]).tolist() or list(range(len(ran_ops)))
    idle = [pid for number, pid in enumerate(ran_ops) if number not in worked]
    notes = [left_out_note(idle)] * bool(idle)
    notes += [processes_note([ran_ops[number] for number in worked])] * (len(worked) > 1)
    return [
        _part(timeline, of_thread == number, of_host == number, of_device == number, notes) for number in worked
    ]  # fmt: skip


def _by_number(pid: str) -> tuple[int, str]:
    return (int(pid), "") if pid.isascii() and pid.isdigit() and len(pid) < 19 else (2**62, pid)


def _part(timeline: Timeline, threads: Bools, of_host: Bools, of_device: Bools, notes: list[TraceNote]) -> Timeline:
    host, device = take_rows(timeline.host, of_host), take_rows(timeline.device, of_device)
    return replace(
        timeline,
        # Each Timeline's table grows by itself later.
        strings=list(timeline.strings),
        host=host,
        device=device,
        rank=None,
        memory=_of_threads(timeline.memory, timeline.memory.thread, threads),
        frames=_of_threads(timeline.frames, timeline.frames.thread, threads),
        communications=_communications(timeline.communications, threads, device),
        events=len(host) + len(device),
        notes=[*timeline.notes, *notes],
    )


def _of_threads(table: _T, thread: Ints, threads: Bools) -> _T:
    return take_rows(table, take_or(threads, thread, False))


def _communications(table: CommunicationEvents, threads: Bools, device: DeviceEvents) -> CommunicationEvents:
    ours = {*zip(device.device.tolist(), device.stream.tolist(), device.start_ns.tolist(), strict=True)}
    places = zip(table.device.tolist(), table.stream.tolist(), table.start_ns.tolist(), strict=True)
    on_device = np.array([place in ours for place in places], dtype=np.bool_)
    return take_rows(table, np.where(table.thread >= 0, take_or(threads, table.thread, False), on_device))


def _process_of_work(timeline: Timeline, of_thread: Ints, count: int) -> Ints:
    """The process of each device event, -1 where none is known.

    Raises:
        TraceError: several may have launched the work of a stream.
    """
    host, device = timeline.host, timeline.device
    result = np.full(len(device), -1, dtype=np.int64)
    if not len(device):
        return result
    launched_at = np.array([_launch_times(host, device, of_thread[host.thread] == one) for one in range(count)])
    fits = (launched_at >= 0) & (launched_at <= device.start_ns)
    _, stream = group_rows(device.device, device.stream)
    for _, rows in rows_of_each(stream):
        numbers = device.correlation[rows][fits[:, rows].any(axis=0)]
        shares = fits[:, rows].sum(axis=1) / max(1, len(numbers))
        likely = np.flatnonzero(shares >= _USUAL)
        if len(likely) == 1 and len(numbers) == len(np.unique(numbers)):
            result[rows] = int(likely[0])
            continue
        # Two processes may have streams of the same number: each call counts alone.
        several = fits[:, rows].sum(axis=0) > 1
        if several.sum() > (1 - _USUAL) * len(rows):
            raise TraceError(
                f"{timeline.source} holds {count} processes that number their calls alike: which of them launched a "
                "kernel is not recorded; pass the trace that each process wrote."
            )
        result[rows] = np.where(fits[:, rows].sum(axis=0) == 1, fits[:, rows].argmax(axis=0), -1)
    return result


def _launch_times(host: HostEvents, device: DeviceEvents, ours: Bools) -> Ints:
    """When a process called with the number of each device event, -1 where it did not."""
    calls = np.flatnonzero(ours & (host.correlation > 0))
    row = rows_with(host.correlation[calls], device.correlation)
    return take_or(host.start_ns[calls], row, -1)
