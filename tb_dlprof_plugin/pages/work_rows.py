"""The tables of what was selected: its ops, shapes, kernels, and its time by iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.model.direction import Direction
from tb_dlprof_plugin.model.formatting import dtypes_text, shapes_text
from tb_dlprof_plugin.model.profile import Bools, Ints
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.columns import Column
from tb_dlprof_plugin.pages.common import KernelText, OpText, Verdict
from tb_dlprof_plugin.pages.iteration_bins import bar_spans
from tb_dlprof_plugin.pages.related import SubjectKind
from tb_dlprof_plugin.profile_view import ProfileView, Selection


class OpShapes(msgspec.Struct, frozen=True):
    """The calls with one set of input shapes and data types."""

    shapes: Annotated[str, Column("Shapes", "shapes", width=240)]
    dtypes: Annotated[str, Column("Types", "dtypes", width=140)]
    calls: Annotated[int, Column("Calls", "calls", sums=True)]
    gpu_ns: Annotated[int | None, Column("GPU time", "gpuTime", sums=True)]
    cpu_total_ns: Annotated[int, Column("CPU total", "cpuTotal", sums=True)]


class OpKernel(msgspec.Struct, frozen=True):
    """A kernel that was launched; ``percent`` is its share of all that was."""

    id: str
    name: Annotated[str, Column("Kernel", "kernelName", width=190)]
    total_ns: Annotated[int, Column("Time", "totalTime", sums=True)]
    percent: Annotated[float | None, Column("%", "Share of the kernel in the GPU time of what is selected.")]
    tensor_core: Annotated[Verdict, Column("On TC", "kernelTc", width=80)]
    precision: Annotated[str, Column("Precision", "kernelPrecision", absent=("tensor_core", "no"), width=80)]
    average_ns: Annotated[int, Column("Mean", "averageTime")]
    calls: Annotated[int, Column("Calls", "calls", sums=True)]
    family: Annotated[str, Column("Family", "kernelFamily", width=110)]
    bytes: Annotated[int | None, Column("Bytes", "bytes", sums=True, missing="–")]
    short_name: str
    rule: str


class WorkOp(msgspec.Struct, frozen=True):
    """An op that the work belongs to, with its part of the time: GPU time, without a GPU CPU time."""

    id: str
    name: Annotated[str, Column("Op", "opName", width=280)]
    time_ns: Annotated[int, Column("Time", "Time in calls by the op.", sums=True)]
    percent: Annotated[float | None, Column("%", "Share of the op in all the time of what is selected.")]
    direction: Direction


class WorkIteration(msgspec.Struct, frozen=True):
    """Times in one iteration, or their means over ``index`` to ``last`` where these are several iterations.

    ``shortest_ns`` and ``longest_ns`` are of single iterations, GPU time or, without a GPU, CPU time. ``calls`` are
    those of the ops, of a kernel its launches; ``cpu_total_ns`` is None for a kernel.
    """

    index: int
    last: int
    number: int
    last_number: int
    calls: float
    cpu_total_ns: int | None
    gpu_ns: int | None
    shortest_ns: int
    longest_ns: int


@dataclass(frozen=True, slots=True)
class SelectedWork:
    """The outermost calls and the launches of the recording that belong to what was selected.

    Attributes:
        view: of the profile.
        selection: the iterations that times are of.
        groups: which rows of `ProfileView.groups` they belong to.
        calls: per row of `Profile.calls`; none for a kernel.
        launches: per row of `Profile.launches`.
    """

    view: ProfileView
    selection: Selection
    groups: Bools
    calls: Bools
    launches: Bools

    def called(self) -> Ints:
        """Rows of the calls in the selection."""
        return np.flatnonzero(self.calls & self.view.selected_calls(self.selection))

    def launched(self) -> Ints:
        """Rows of the launches in the selection."""
        return np.flatnonzero(self.launches & self.view.selected_launches(self.selection))


def ops_of(work: SelectedWork) -> list[WorkOp]:
    """By falling time, those without any left out where others have some."""
    view, count, rows = work.view, len(work.view.groups), work.launched()
    if view.profile.has_gpu:
        in_op = rows[view.launch_group[rows] >= 0]
        time = sums(view.launch_group[in_op], view.profile.launches.duration_ns[in_op], count)
    else:
        time = np.where(work.groups, op_totals(view, work.selection).cpu_total_ns, 0)
    whole = int(time.sum())
    order = np.argsort(-time, kind="stable")
    return [
        struct_from(WorkOp, OpText(view, group), time_ns=int(time[group]), percent=percent(int(time[group]), whole))
        for group in order[time[order] > 0].tolist()
    ]


def shapes_of(work: SelectedWork) -> list[OpShapes]:
    """By falling GPU time, then CPU time. Ops of the same shapes are one row."""
    view, profile = work.view, work.view.profile
    called, launched, count = work.called(), work.launched(), len(work.view.profile.ops)
    op = profile.calls.op[called]
    calls, cpu = np.bincount(op, minlength=count), sums(op, profile.calls.duration_ns[called], count)
    of_launch = profile.calls.op[view.call_top[profile.launches.call[launched]]] if len(called) else launched[:0]
    gpu = sums(of_launch, profile.launches.duration_ns[launched[: len(of_launch)]], count)
    texts: dict[tuple[str, str], list[int]] = {}
    for row in np.unique(op).tolist():
        key = (shapes_text(profile.shapes_of(row)), dtypes_text(profile.dtypes_of(row)))
        texts.setdefault(key, []).append(row)
    result = [
        OpShapes(
            shapes=shapes,
            dtypes=dtypes,
            calls=int(calls[rows].sum()),
            cpu_total_ns=int(cpu[rows].sum()),
            gpu_ns=int(gpu[rows].sum()) if profile.has_gpu else None,
        )
        for (shapes, dtypes), rows in texts.items()
    ]
    return sorted(result, key=lambda item: (-(item.gpu_ns or 0), -item.cpu_total_ns))


def kernels_of(view: ProfileView, launched: Ints) -> list[OpKernel]:
    """By falling time."""
    launches = view.profile.launches
    used, place = np.unique(launches.kernel[launched], return_inverse=True)
    place = place.reshape(-1)
    total = sums(place, launches.duration_ns[launched], len(used))
    moved = sums(place, np.maximum(launches.bytes[launched], 0), len(used))
    calls = np.bincount(place, minlength=len(used))
    whole = int(total.sum())
    return [
        struct_from(
            OpKernel,
            KernelText(view, int(used[at])),
            calls=int(calls[at]),
            total_ns=int(total[at]),
            average_ns=int(total[at] // calls[at]),
            percent=percent(int(total[at]), whole),
            bytes=int(moved[at]) or None,
        )
        for at in np.argsort(-total, kind="stable").tolist()
    ]


def iterations_of(work: SelectedWork, kind: SubjectKind) -> list[WorkIteration]:
    view, profile = work.view, work.view.profile
    total = len(profile.iterations)
    called = np.flatnonzero(work.calls & (view.call_iteration >= 0))
    launched = np.flatnonzero(work.launches & (view.launch_iteration >= 0))
    cpu = sums(view.call_iteration[called], profile.calls.duration_ns[called], total)
    gpu = sums(view.launch_iteration[launched], profile.launches.duration_ns[launched], total)
    counted = called[~profile.ops.continuation[profile.calls.op[called]]]
    of_kernel = kind == "kernel"
    calls = np.bincount(view.launch_iteration[launched] if of_kernel else view.call_iteration[counted], minlength=total)
    time = gpu if profile.has_gpu else cpu
    number = profile.iterations.number

    def iteration(first: int, last: int) -> WorkIteration:
        rows = slice(first, last + 1)
        return WorkIteration(
            index=first,
            last=last,
            number=int(number[first]),
            last_number=int(number[last]),
            calls=float(calls[rows].mean()),
            cpu_total_ns=None if of_kernel else round(cpu[rows].mean()),
            gpu_ns=round(gpu[rows].mean()) if profile.has_gpu else None,
            shortest_ns=int(time[rows].min()),
            longest_ns=int(time[rows].max()),
        )

    return [iteration(*span) for span in bar_spans(total)]
