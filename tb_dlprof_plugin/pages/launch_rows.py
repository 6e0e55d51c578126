"""The rows of the Launches page's tables: kernels with their delays, synchronising calls, the largest idle gaps."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.idle_gaps import GapKind, IdleGaps
from tb_dlprof_plugin.metrics.iteration_pace import Pace as Paces
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.kernels import kernel_totals
from tb_dlprof_plugin.metrics.launches import launch_totals
from tb_dlprof_plugin.metrics.step_buckets import by_cause
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.pages.common import ROLES, KernelText, OpText, Role
from tb_dlprof_plugin.pages.idle_causes import CAUSES, IdleCause, largest_causes
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.synchronisation import SyncGroups, SyncKind

Pace = Literal["gpu", "cpu", "mixed", "unknown"]
GapKindName = Literal["host_wait", "kernel_wait", "other", "unknown"]
SyncKindName = Literal["wait", "copy", "pageable copy", "scalar read"]

KERNEL_ROWS = 400
SYNC_ROWS = 300
GAP_ROWS = 200
_NAME_LENGTH = 300

PACES: dict[int, Pace] = {Paces.UNKNOWN: "unknown", Paces.GPU: "gpu", Paces.CPU: "cpu", Paces.MIXED: "mixed"}
GAP_KINDS: dict[int, GapKindName] = {
    GapKind.HOST_WAIT: "host_wait",
    GapKind.KERNEL_WAIT: "kernel_wait",
    GapKind.OTHER: "other",
    GapKind.UNKNOWN: "unknown",
}
_SYNC_KINDS: dict[int, SyncKindName] = {
    SyncKind.WAIT: "wait",
    SyncKind.COPY: "copy",
    SyncKind.PAGEABLE_COPY: "pageable copy",
    SyncKind.SCALAR: "scalar read",
}


class LaunchedKernel(msgspec.Struct, frozen=True):
    """One kernel, copy or set by name: its delay between launch and start, and the depth of the queue.

    Times in ns. Delay, queue and call are None where no launch call was recorded. ``short_percent`` is the share of
    calls that took less time than the call which launched them.
    """

    id: str
    name: Annotated[str, Column("Kernel", "kernelName", width=320)]
    mean_delay_ns: Annotated[int | None, Column("Mean delay", "launchDelay")]
    max_delay_ns: Annotated[int | None, Column("Longest delay", "launchDelay")]
    mean_queue: Annotated[float | None, Column("Mean queue", "launchQueue")]
    max_queue: Annotated[int | None, Column("Deepest queue", "launchQueue")]
    calls: Annotated[int, Column("Calls", "calls", sums=True)]
    mean_call_ns: Annotated[int | None, Column("Launch call", "Mean duration of the calls that launched it.")]
    average_ns: Annotated[int, Column("Kernel time", "averageTime")]
    short_percent: Annotated[
        float | None,
        Column("Shorter than launch", terminal=False),
        Definition(
            "launchShort",
            "Share of calls that took less time on the GPU than the call that launched them took on the CPU.",
        ),
    ]
    kind: Annotated[str, Column("Kind", "kernelKind", choice=True, terminal=False)]
    short_name: str


class SyncRow(msgspec.Struct, frozen=True):
    """Synchronising calls of one name in one op: ``op`` is the outermost (its id "" for a call from Python),
    ``inner_op`` the innermost. ``time_ns`` is the time inside the calls, ``percent`` its share of the recorded
    iterations."""

    call: Annotated[str, Column("Call", "syncCalls", width=200)]
    op: Annotated[str, Column("Op", "syncOp", missing="none: Python", width=220)]
    time_ns: Annotated[int, Column("Time", "Time inside these calls, summed over the selected iterations.", sums=True)]
    percent: Annotated[float | None, Column("%", "Share of the recorded iterations.", bar=True, terminal=False)]
    calls: Annotated[int, Column("Calls", "calls", sums=True)]
    average_ns: Annotated[int, Column("Mean", "averageTime", terminal=False)]
    max_ns: Annotated[int, Column("Max", "maxTime")]
    kind: Annotated[
        SyncKindName,
        Column("Kind", width=120),
        Definition(
            "syncKind",
            "wait: a call whose purpose is to wait; copy: one that returns when it is done; pageable copy: "
            "asynchronous by name only, because the memory is not pinned; scalar read: .item() without a recorded "
            "call inside.",
        ),
    ]
    role: Annotated[Role, Column("Pass", "pass")]
    inner_op: Annotated[str, Column("Inside", "The innermost op around the call.", missing="–", width=210)]
    op_id: str
    module: str
    calls_per_iteration: float
    ns_per_iteration: int


class GapRow(msgspec.Struct, frozen=True):
    """An idle gap of one GPU in the recording: from ``start_ns`` after the iteration's start. ``cause_ns`` in the
    order of the page's causes sums to ``duration_ns``; ``cause`` is the largest. The fields of the work that
    ended it are "" if the iteration ended first. ``event`` is its id on the timeline of its iteration."""

    kernel: Annotated[
        str,
        Column("Ended by", "The kernel, copy or set that ended the gap.", missing="end of the iteration", width=260),
    ]
    duration_ns: Annotated[int, Column("Gap", "gapDuration")]
    percent: Annotated[float | None, Column("%", "Share of the recorded iteration.", bar=True, terminal=False)]
    number: Annotated[int, Column("Iteration", "Number of the iteration, as the training counts them.")]
    gpu: Annotated[int, Column("GPU", "Index of the GPU.", choice=True)]
    start_ns: Annotated[int, Column("At", "When the gap began, counted from the iteration's start.")]
    cause: Annotated[
        IdleCause,
        Column("Cause", width=240),
        Definition("gapCause", "The bucket of the account of a step that holds most of the gap; the bar shows all."),
    ]
    kind: Annotated[GapKindName, Column("Next work", "idleKind", width=178)]
    op: Annotated[str, Column("Op", "The op that launched it.", missing="–", width=220)]
    index: int
    cause_ns: list[int]
    kernel_id: str
    op_id: str
    module: str
    event: str


def kernel_rows(view: ProfileView, selection: Selection) -> tuple[list[LaunchedKernel], int]:
    """Kernels by falling mean delay, those of unknown delay last; and how many there are."""
    totals, time = launch_totals(view, selection), kernel_totals(view, selection)
    called = np.flatnonzero(totals.calls > 0)
    mean = np.where(totals.delays > 0, totals.delay_ns / np.maximum(totals.delays, 1), -1)
    order = called[np.lexsort((-time.total_ns[called], -mean[called]))]
    rows = []
    for kernel in order[:KERNEL_ROWS].tolist():
        text = KernelText(view, kernel)
        timed, queued = int(totals.delays[kernel]), int(totals.queued[kernel])
        rows.append(
            LaunchedKernel(
                id=text.id,
                name=_cut(text.name),
                short_name=_cut(text.short_name),
                kind=text.kind,
                calls=int(totals.calls[kernel]),
                average_ns=int(time.total_ns[kernel] // totals.calls[kernel]),
                mean_delay_ns=round(int(totals.delay_ns[kernel]) / timed) if timed else None,
                max_delay_ns=int(totals.max_delay_ns[kernel]) if timed else None,
                mean_queue=int(totals.queue[kernel]) / queued if queued else None,
                max_queue=int(totals.max_queue[kernel]) if queued else None,
                mean_call_ns=round(int(totals.call_ns[kernel]) / queued) if queued else None,
                short_percent=percent(int(totals.short[kernel]), queued),
            )
        )
    return rows, len(called)


def sync_rows(view: ProfileView, selection: Selection, found: SyncGroups) -> tuple[list[SyncRow], int]:
    """Synchronising calls by falling time, and how many rows there are."""
    strings, iterations = view.profile.strings, view.profile.iterations
    wall = int(iterations.duration_ns[selection.first : selection.last + 1].sum())
    rows = []
    for at in range(min(len(found), SYNC_ROWS)):
        op, op_id, module = _op(view, int(found.group[at]))
        calls, time_ns = int(found.calls[at]), int(found.time_ns[at])
        rows.append(
            SyncRow(
                call=_cut(strings[found.name[at]]),
                kind=_SYNC_KINDS[int(found.kind[at])],
                op=op,
                op_id=op_id,
                inner_op=_cut(strings[found.op[at]]) if found.op[at] >= 0 else "",
                module=module or _cut(strings[found.module[at]]),
                role=ROLES[int(found.role[at])],
                calls=calls,
                calls_per_iteration=calls / selection.count,
                time_ns=time_ns,
                ns_per_iteration=round(time_ns / selection.count),
                average_ns=time_ns // calls,
                max_ns=int(found.max_ns[at]),
                percent=percent(time_ns, wall),
            )
        )
    return rows, len(found)


def gap_rows(view: ProfileView, gaps: IdleGaps) -> tuple[list[GapRow], int]:
    """The largest gaps, and how many there are."""
    profile = view.profile
    iterations = profile.iterations
    in_iteration = _place_in_iteration(gaps)
    rows = []
    for at in np.argsort(-gaps.duration_ns, kind="stable")[:GAP_ROWS].tolist():
        index, following = int(gaps.iteration[at]), int(gaps.next[at])
        kernel = int(profile.launches.kernel[following]) if following >= 0 else -1
        op, op_id, module = _op(view, int(view.launch_group[following]) if following >= 0 else -1)
        duration = int(gaps.duration_ns[at])
        rows.append(
            GapRow(
                index=index,
                number=int(iterations.number[index]),
                gpu=iterations.gpu_ids[int(gaps.gpu[at])],
                start_ns=int(gaps.start_ns[at] - iterations.start_ns[index]),
                duration_ns=duration,
                percent=percent(duration, int(iterations.duration_ns[index])),
                kind=GAP_KINDS[int(gaps.kind[at])],
                cause=CAUSES[int(largest_causes(gaps.activity_ns[at]))],
                cause_ns=by_cause(gaps.activity_ns[at]).tolist(),
                kernel=_cut(KernelText(view, kernel).short_name) if kernel >= 0 else "",
                kernel_id=KernelText(view, kernel).id if kernel >= 0 else "",
                op=op,
                op_id=op_id,
                module=module,
                event=f"i{int(in_iteration[at])}",
            )
        )
    return rows, len(gaps)


def _place_in_iteration(gaps: IdleGaps) -> Ints:
    """Per gap its row among those of its iteration alone."""
    order = np.argsort(gaps.iteration, kind="stable")
    result = np.empty(len(gaps), dtype=np.int64)
    result[order] = np.arange(len(gaps)) - np.searchsorted(gaps.iteration[order], gaps.iteration[order])
    return result


def _op(view: ProfileView, group: int) -> tuple[str, str, str]:
    """Name, id and module path of a row of `ProfileView.groups`; empty for none."""
    if group < 0:
        return "", "", ""
    op = OpText(view, group)
    return _cut(op.name), op.id, _cut(op.module)


def _cut(name: str) -> str:
    """Names come from the traced program (untrusted, any length); the full one is on the page of the row's id."""
    return name if len(name) <= _NAME_LENGTH else name[: _NAME_LENGTH - 1] + "…"
