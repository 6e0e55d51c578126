"""The Kernels page: every kernel, copy and set that the selected iterations launched."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.kernels import UNKNOWN_KERNELS_PERCENT, KernelTotals, totals_of
from tb_dlprof_plugin.metrics.share_range import share_range
from tb_dlprof_plugin.metrics.tensor_activity import measured_kernel
from tb_dlprof_plugin.model.formatting import share
from tb_dlprof_plugin.model.lookup import rows_of_each
from tb_dlprof_plugin.model.profile import Bools, Ints, Profile
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.pages.common import (
    NO_GPU,
    VERDICTS,
    Coverage,
    KernelText,
    SelectedRange,
    Slice,
    Verdict,
    coverage_of,
    selected_range,
)
from tb_dlprof_plugin.pages.related import GroupKind, groups_of
from tb_dlprof_plugin.pages.sentences import TextPart, plain, share_words, text_of
from tb_dlprof_plugin.profile_view import ProfileView, Selection, group_name
from tb_dlprof_plugin.store.run_ref import RunRef


class MeasuredCounters(msgspec.Struct, frozen=True):
    """What Nsight Compute measured of ``launches`` of the selected launches; sums are over all of them."""

    launches: int
    dram_bytes: Annotated[
        int | None,
        Definition("measuredDram", "Bytes read from and written to the GPU's memory, measured by Nsight Compute."),
    ]
    flops: Annotated[
        int | None,
        Definition("measuredFlops", "FLOPs of all pipes, Tensor Cores included, measured by Nsight Compute."),
    ]
    tensor_instructions: Annotated[
        int | None,
        Definition(
            "measuredTensor",
            "Instructions of the Tensor Core pipe, or its active cycles where those were counted; by Nsight Compute.",
        ),
    ]


class KernelOp(msgspec.Struct, frozen=True):
    """An op that launched the kernel."""

    id: str
    name: str
    total_ns: int


class KernelRow(msgspec.Struct, frozen=True):
    """One kernel name; ``rule`` names the rule that decided its Tensor Core verdict. Times in ns over the selected
    iterations. ``told_by`` is set where several rows have this short name: the op of most time, and where that is the
    same, too, the launch shape. ``occupancy_measured`` says that the occupancy is Nsight Compute's, not an estimate.
    """

    id: str
    name: Annotated[str, Column("Kernel", "kernelName", width=410)]
    total_ns: Annotated[int, Column("Time", "totalTime", "time tensor_cores shapes", sums=True)]
    percent: Annotated[
        float | None,
        Column("%", "Share of the summed time of all kernels, copies and sets.", "time tensor_cores shapes", bar=True),
    ]
    calls: Annotated[int, Column("Calls", "calls", "time tensor_cores shapes", sums=True)]
    average_ns: Annotated[int, Column("Mean", "averageTime", "time")]
    tensor_core: Annotated[Verdict, Column("Tensor Cores", "kernelTc", "tensor_cores", width=112)]
    precision: Annotated[
        str,
        Column("Precision", "kernelPrecision", "tensor_cores", choice=True, absent=("tensor_core", "no"), width=100),
    ]
    family: Annotated[str, Column("Family", "kernelFamily", "time tensor_cores", choice=True, width=130)]
    occupancy_percent: Annotated[
        float | None,
        Column("Occupancy", "occupancy", "tensor_cores shapes", absent=("kind", "copy", "set"), terminal=False),
    ]
    min_ns: Annotated[int, Column("Min", "Shortest call.", "time", terminal=False)]
    max_ns: Annotated[int, Column("Max", "maxTime", "time", terminal=False)]
    kind: Annotated[str, Column("Kind", "kernelKind", "shapes", choice=True, terminal=False)]
    grid: Annotated[str, Column("Grid", "grid", "shapes", missing="–", width=110, terminal=False)]
    block: Annotated[str, Column("Block", "block", "shapes", missing="–", width=100, terminal=False)]
    registers_per_thread: Annotated[int | None, Column("Registers", "registers", "shapes", missing="–", terminal=False)]
    shared_memory_bytes: Annotated[
        int | None, Column("Shared memory", "sharedMemory", "shapes", missing="–", terminal=False)
    ]
    bytes: Annotated[int | None, Column("Bytes", "bytes", "shapes", sums=True, missing="–", terminal=False)]
    rule: Annotated[str, Column("Rule", "kernelRule", choice=True, width=150)]
    short_name: str
    told_by: str
    occupancy_measured: bool
    counters: MeasuredCounters | None
    ops: list[KernelOp]


class KernelScope(msgspec.Struct, frozen=True):
    """The op (by id), op type (by name) or module (by key) whose launches alone are counted."""

    kind: GroupKind
    id: str
    name: str


class KernelsPage(msgspec.Struct, frozen=True):
    """``rows`` by falling time; ``by_family`` sums them per kind of work. ``scope`` is None for all launches."""

    ref: RunRef
    scope: KernelScope | None
    headline: str
    headline_parts: list[TextPart]
    range: SelectedRange
    has_gpu: bool
    by_family: list[Slice]
    rows: list[KernelRow]
    total_rows: int
    coverage: Coverage


_OPS_PER_KERNEL = 5


def kernels_of_any(
    view: ProfileView,
    ref: RunRef,
    selection: Selection,
    op: Annotated[str | None, Option("Id of an op.")] = None,
    op_type: Annotated[str | None, Option("Name of an op type.")] = None,
    module: Annotated[str | None, Option("Key of a module.")] = None,
) -> KernelsPage:
    """The kernels of all launches, or of those of one op, op type or module, as `kernels_of`."""
    kinds: dict[GroupKind, str | None] = {"op": op, "op_type": op_type, "module": module}
    for kind, subject in kinds.items():
        if subject is not None:
            return kernels_of(view, ref, selection, kind, subject)
    return kernels_page(view, ref, selection)


def kernels_page(view: ProfileView, ref: RunRef, selection: Selection) -> KernelsPage:
    """Everything that the selected iterations launched."""
    return _page(view, ref, selection, view.selected_activities(selection), None)


def kernels_of(view: ProfileView, ref: RunRef, selection: Selection, kind: GroupKind, subject: str) -> KernelsPage:
    """What an op, an op type or a module launched in the selected iterations: calls, times and shares are its own.

    Raises:
        KeyError: the recording has no item of this kind and id.
    """
    mine, name = groups_of(view, kind, subject)
    groups = view.launch_group
    selected: Bools = view.selected_launches(selection) & (groups >= 0) & mine[groups]
    return _page(view, ref, selection, selected, KernelScope(kind, subject, name))


def _page(
    view: ProfileView, ref: RunRef, selection: Selection, selected: Bools, scope: KernelScope | None
) -> KernelsPage:
    profile, strings, kernels = view.profile, view.profile.strings, view.profile.kernels
    launched = np.flatnonzero(selected)
    totals = totals_of(view, launched)
    rows_of = {kernel: launched[rows] for kernel, rows in rows_of_each(profile.launches.kernel[launched])}
    whole = int(totals.total_ns.sum())
    called = np.flatnonzero(totals.calls > 0)
    called = called[np.argsort(-totals.total_ns[called], kind="stable")]
    rows = _told_apart([_row(view, rows_of[kernel], totals, kernel, whole) for kernel in called.tolist()])
    families = sums(kernels.family, totals.total_ns, len(strings))
    by_family = [
        Slice(strings[i], strings[i], int(families[i]), percent(int(families[i]), whole))
        for i in np.argsort(-families, kind="stable").tolist()
        if families[i] > 0
    ]
    headline = _headline(profile, rows, by_family, scope)
    return KernelsPage(
        ref=ref,
        scope=scope,
        headline=text_of(headline),
        headline_parts=headline,
        range=selected_range(view, selection),
        has_gpu=profile.has_gpu,
        by_family=by_family,
        rows=rows,
        total_rows=len(rows),
        coverage=coverage_of(view),
    )


def _row(view: ProfileView, mine: Ints, totals: KernelTotals, kernel: int, whole: int) -> KernelRow:
    profile, launches = view.profile, view.profile.launches
    measured = measured_kernel(view, mine)
    achieved = None if measured is None else measured.occupancy_percent
    usual = int(np.bincount(launches.config[mine]).argmax())
    return struct_from(
        KernelRow,
        KernelText(view, kernel),
        told_by="",
        calls=int(totals.calls[kernel]),
        total_ns=int(totals.total_ns[kernel]),
        average_ns=int(totals.total_ns[kernel] // totals.calls[kernel]),
        min_ns=int(totals.min_ns[kernel]),
        max_ns=int(totals.max_ns[kernel]),
        percent=percent(int(totals.total_ns[kernel]), whole),
        occupancy_percent=_occupancy(view, mine) if achieved is None else achieved,
        occupancy_measured=achieved is not None,
        counters=None
        if measured is None
        else MeasuredCounters(measured.launches, measured.dram_bytes, measured.flops, measured.tensor_instructions),
        **launch_shape(profile, usual),
        bytes=int(totals.bytes[kernel]) or None,
        ops=_ops(view, mine),
    )


def _told_apart(rows: list[KernelRow]) -> list[KernelRow]:
    """The rows, those of equal short names with what tells them apart."""
    names = Counter(row.short_name for row in rows)
    by_op = [row.ops[0].name if row.ops else "" for row in rows]
    pairs = Counter((row.short_name, op) for row, op in zip(rows, by_op, strict=True))
    told = []
    for row, op in zip(rows, by_op, strict=True):
        if names[row.short_name] > 1:
            shape = f"{row.grid} × {row.block}" if row.grid and pairs[row.short_name, op] > 1 else ""
            row = msgspec.structs.replace(row, told_by=", ".join(part for part in (op, shape) if part))
        told.append(row)
    return told


def _ops(view: ProfileView, launches: Ints) -> list[KernelOp]:
    group = view.launch_group[launches]
    in_op = group >= 0
    time = sums(group[in_op], view.profile.launches.duration_ns[launches[in_op]], len(view.groups))
    return [
        KernelOp(view.groups.ids[g], group_name(view, g), int(time[g]))
        for g in np.argsort(-time, kind="stable")[:_OPS_PER_KERNEL].tolist()
        if time[g] > 0
    ]


def _occupancy(view: ProfileView, launches: Ints) -> float | None:
    """Kineto's estimate, the mean weighted by time over the launches that have one; None where none has."""
    occupancy = view.profile.launch_configs.occupancy_percent[view.profile.launches.config[launches]]
    weight = view.profile.launches.duration_ns[launches]
    # Kineto writes 0 if it has no estimate or rounds down to 0; a kernel that ran has a higher one.
    measured = (occupancy > 0) & (weight > 0)
    return float(np.average(occupancy[measured], weights=weight[measured])) if measured.any() else None


def launch_shape(profile: Profile, config: int) -> dict[str, Any]:
    """Grid, block, registers and shared memory of a row of `Profile.launch_configs`."""
    configs = profile.launch_configs
    sizes = (configs.grid[config], configs.block[config])
    grid, block = ("" if (size < 0).any() else "×".join(map(str, size.tolist())) for size in sizes)
    registers, shared = int(configs.registers_per_thread[config]), int(configs.shared_memory_bytes[config])
    return {
        "grid": grid,
        "block": block,
        "registers_per_thread": registers if registers >= 0 else None,
        "shared_memory_bytes": shared if shared >= 0 else None,
    }


_FAMILIES = {"copy": "copies", "set": "sets", "gemm": "matrix products", "other": "kernels of no known family"}
_NOTABLE_UNKNOWN_PERCENT = 1.0


def _on_tensor_cores(time: dict[Verdict, int]) -> str:
    """Such as ", Tensor Core kernels 41 %", from the time of kernels by verdict."""
    whole = sum(time.values())
    unknown = percent(time["unknown"], whole) or 0.0
    on = percent(time["yes"], whole) if unknown < UNKNOWN_KERNELS_PERCENT else None
    text = f", Tensor Core kernels {share_words(on, share_range(time['yes'], time['unknown'], whole))}"
    return text + (f"; for {share(unknown)} it is unknown" if unknown >= _NOTABLE_UNKNOWN_PERCENT else "")


_LARGEST = 10
"""Kernels whose share the headline gives together."""


def _headline(
    profile: Profile, rows: list[KernelRow], families: list[Slice], scope: KernelScope | None
) -> list[TextPart]:
    if not profile.has_gpu:
        return [plain(f"{NO_GPU}, so there are no kernels.")]
    if not rows:
        return [plain("No kernel was launched in the selected iterations.")]
    if not families:
        return [plain("The kernels of the selected iterations took no time.")]
    time = {verdict: sum(row.total_ns for row in rows if row.tensor_core == verdict) for verdict in VERDICTS.values()}
    first = families[0].label
    what = _FAMILIES.get(first, f"{first} kernels")
    text = f"{what.capitalize()} take {share(families[0].percent)} of the GPU time"
    if scope is not None:
        text = f"Of {scope.name} alone: {what} take {share(families[0].percent)} of its GPU time"
    text += "" if profile.of_amd else _on_tensor_cores(time)
    first_row = rows[0]
    if len(rows) > _LARGEST:
        ten = share(percent(sum(row.total_ns for row in rows[:_LARGEST]), sum(time.values())))
        text += f". The ten largest of {len(rows)} kernels take {ten}; "
    else:
        text += ". 1 kernel ran; " if len(rows) == 1 else f". {len(rows)} kernels ran; "
    return [
        plain(text),
        TextPart(first_row.short_name, "kernel", first_row.id),
        plain(f" takes most, {share(first_row.percent, 1)}."),
    ]
