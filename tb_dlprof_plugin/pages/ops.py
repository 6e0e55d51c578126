"""The Ops page: every op of the selected iterations, and one op with its shapes, kernels and iterations."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.launches import launch_columns
from tb_dlprof_plugin.metrics.ops import OpTotals, group_precisions, input_precisions, op_totals
from tb_dlprof_plugin.metrics.roofline import roofline
from tb_dlprof_plugin.model.direction import direction_of, with_direction
from tb_dlprof_plugin.model.formatting import dtypes_text, shapes_text, share, short_kernel_name
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.profile import Verdict as Verdicts
from tb_dlprof_plugin.pages.common import (
    ROLES,
    VERDICTS,
    Coverage,
    OpRow,
    SelectedRange,
    Verdict,
    coverage_of,
    selected_range,
)
from tb_dlprof_plugin.pages.iteration_bins import bar_spans, bars_note
from tb_dlprof_plugin.pages.sentence import TextPart, plain, text_of
from tb_dlprof_plugin.pages.tensor_core_reasons import main_reason
from tb_dlprof_plugin.profile_view import ProfileView, Selection, kernel_id, op_name
from tb_dlprof_plugin.store.run_ref import RunRef


class OpsPage(msgspec.Struct, frozen=True):
    """``rows`` by falling GPU time (CPU time without a GPU); ``total_rows`` counts those before the row limit."""

    ref: RunRef
    headline: str
    headline_parts: list[TextPart]
    range: SelectedRange
    has_gpu: bool
    rows: list[OpRow]
    total_rows: int
    coverage: Coverage


class OpShapes(msgspec.Struct, frozen=True):
    """The calls of an op with one set of input shapes and data types."""

    shapes: str
    dtypes: str
    calls: int
    cpu_total_ns: int
    gpu_ns: int | None


class OpKernel(msgspec.Struct, frozen=True):
    """A kernel that the op launched."""

    id: str
    name: str
    short_name: str
    family: str
    tensor_core: Verdict
    precision: str
    rule: str
    calls: int
    total_ns: int
    average_ns: int
    percent: float | None
    bytes: int | None


class OpIteration(msgspec.Struct, frozen=True):
    """Times of the op in one iteration, or its means over ``index`` to ``last`` where these are several iterations.

    ``shortest_ns`` and ``longest_ns`` are of single iterations, GPU time or, without a GPU, CPU time.
    """

    index: int
    last: int
    number: int
    last_number: int
    calls: float
    cpu_total_ns: int
    gpu_ns: int | None
    shortest_ns: int
    longest_ns: int


class OpRate(msgspec.Struct, frozen=True):
    """Where the op's matrix routines are under the GPU's roofs; None is unknown.

    ``percent_of_ceiling`` may exceed 100: Winograd and FFT convolutions multiply less often than the FLOPs assume.
    """

    flops_per_second: float | None
    ceiling_flops_per_second: float | None
    percent_of_ceiling: float | None
    bound: Literal["compute", "memory", "unknown"]


class OpLaunches(msgspec.Struct, frozen=True):
    """Kernels, copies and sets that the op launched: how many, how many of known delay, and their delays (ns)."""

    launches: int
    timed: int
    mean_delay_ns: int | None
    max_delay_ns: int | None


class OpDetail(msgspec.Struct, frozen=True):
    """One selected op; ``bars_note`` explains ``iterations`` if each covers several.

    ``rate`` is None without matrix routines on the GPU.
    """

    ref: RunRef
    range: SelectedRange
    row: OpRow
    eligibility_reason: str
    rate: OpRate | None
    launches: OpLaunches
    shapes: list[OpShapes]
    kernels: list[OpKernel]
    iterations: list[OpIteration]
    bars_note: str


def ops_page(view: ProfileView, ref: RunRef, selection: Selection) -> OpsPage:
    """All ops of the selected iterations."""
    rows = op_rows(view, selection)
    has_gpu = view.profile.has_gpu
    headline = _headline(rows, has_gpu)
    return OpsPage(
        ref=ref,
        headline=text_of(headline),
        headline_parts=headline,
        range=selected_range(view, selection),
        has_gpu=has_gpu,
        rows=rows,
        total_rows=len(rows),
        coverage=coverage_of(view),
    )


def op_rows(view: ProfileView, selection: Selection) -> list[OpRow]:
    """One row per op that ran in the selected iterations, by falling GPU time, without a GPU by CPU time."""
    profile, groups, strings = view.profile, view.groups, view.profile.strings
    totals = op_totals(view, selection)
    precisions = group_precisions(view, selection)
    inputs = input_precisions(view, selection)
    usual = _usual_op(view, selection)
    has_gpu = profile.has_gpu
    all_gpu_ns = int(totals.gpu_ns.sum())
    # Work launched by an op may be in another iteration than its start.
    called = np.flatnonzero((totals.calls > 0) | (totals.cpu_total_ns > 0) | (totals.kernel_calls > 0))
    weight = totals.gpu_ns if has_gpu else totals.cpu_total_ns
    rows = []
    for group in called[np.argsort(-weight[called], kind="stable")].tolist():
        op = int(usual[group])
        module, op_type = strings[groups.module[group]], strings[groups.op_type[group]]
        role = int(groups.role[group])
        rows.append(
            OpRow(
                id=groups.ids[group],
                name=op_name(module, op_type),
                module=module,
                op_type=op_type,
                direction=direction_of(role),
                role=ROLES[role],
                calls=int(totals.calls[group]),
                cpu_total_ns=int(totals.cpu_total_ns[group]),
                cpu_self_ns=int(totals.cpu_self_ns[group]),
                gpu_ns=int(totals.gpu_ns[group]) if has_gpu else None,
                gpu_percent=percent(int(totals.gpu_ns[group]), all_gpu_ns) if has_gpu else None,
                kernel_calls=int(totals.kernel_calls[group]),
                tc_eligible=_eligible(view, totals, group),
                using_tc=using_tensor_cores(totals, group) if has_gpu else "unknown",
                precision=precisions[group] or inputs[group],
                shapes=shapes_text(profile.shapes_of(op)),
                dtypes=dtypes_text(profile.dtypes_of(op)),
            )
        )
    return rows


def times_by_type(rows: list[OpRow], has_gpu: bool) -> dict[str, int]:
    """GPU time (ns) by op type, the largest first; without a GPU CPU self time."""
    times: dict[str, int] = {}
    for row in rows:
        times[row.op_type] = times.get(row.op_type, 0) + time_of(row, has_gpu)
    return dict(sorted(times.items(), key=lambda item: -item[1]))


def time_of(row: OpRow, has_gpu: bool) -> int:
    """GPU time (ns) of an op; without a GPU CPU self time, which counts nothing twice."""
    return (row.gpu_ns or 0) if has_gpu else row.cpu_self_ns


def op_detail(view: ProfileView, ref: RunRef, selection: Selection, op_id: str) -> OpDetail:
    """One op with its shapes, kernels and iterations.

    Raises:
        KeyError: no op of this id was called in the selected iterations.
    """
    row = next((row for row in op_rows(view, selection) if row.id == op_id), None)
    if row is None:
        raise KeyError(op_id)
    group = view.groups.ids.index(op_id)
    return OpDetail(
        ref=ref,
        range=selected_range(view, selection),
        row=row,
        eligibility_reason=eligibility_reason(view, selection, group, row.tc_eligible),
        rate=_rate(view, selection, group),
        launches=_launches(view, selection, group),
        shapes=_shapes(view, selection, group),
        kernels=_kernels(view, selection, group),
        iterations=_iterations(view, group),
        bars_note=bars_note(len(view.profile.iterations)),
    )


def using_tensor_cores(totals: OpTotals, group: int) -> Verdict:
    """Whether the op's kernels ran on Tensor Cores; unknown if none certainly did and some may have."""
    if totals.tensor_core_ns[group] > 0:
        return "yes"
    return "unknown" if totals.eligible_unknown_ns[group] > 0 else "no"


def eligibility_reason(view: ProfileView, selection: Selection, group: int, eligible: Verdict) -> str:
    """Why the op can or cannot use Tensor Cores; where it could and does not, with the Tensor Cores page's reason."""
    op_type = view.profile.strings[view.groups.op_type[group]]
    reason = main_reason(view, selection, group, eligible)
    if eligible == "yes":
        can = f"{op_type} multiplies matrices, which the Tensor Cores of this GPU can do."
        return f"{can} Time off them: {reason}" if reason else can
    if eligible == "unknown":
        return f"{op_type} multiplies matrices, but the run used no GPU or its compute capability was not recorded."
    if reason:
        return reason
    return f"{op_type} has no form that runs on Tensor Cores."


def _eligible(view: ProfileView, totals: OpTotals, group: int) -> Verdict:
    if totals.eligible[group]:
        return "yes"
    # Without a GPU or its compute capability the eligibility of every matrix op is unknown, else of none.
    unknown = bool((view.profile.ops.tensor_core_eligible == Verdicts.UNKNOWN).any())
    return "unknown" if unknown and view.groups_with_matrix_op[group] else "no"


def _usual_op(view: ProfileView, selection: Selection) -> Ints:
    """Per group, the row of `Profile.ops` with most time: its shapes represent the group's."""
    profile = view.profile
    calls = np.flatnonzero(profile.ops.top[profile.calls.op] & view.selected_calls(selection))
    time = np.bincount(profile.calls.op[calls], weights=profile.calls.duration_ns[calls], minlength=len(profile.ops))
    result = np.zeros(len(view.groups), dtype=np.int64)
    order = np.argsort(time, kind="stable")
    order = order[view.groups.of_op[order] >= 0]
    result[view.groups.of_op[order]] = order
    return result


_LARGEST = 10
"""Ops whose share the headline gives together."""


def _headline(rows: list[OpRow], has_gpu: bool) -> list[TextPart]:
    if not rows:
        return [plain("No op was called in the selected iterations.")]
    on_gpu = has_gpu and rows[0].gpu_percent is not None
    largest = sorted(rows, key=lambda row: -time_of(row, on_gpu))
    by_type = times_by_type(rows, on_gpu)
    whole = sum(by_type.values())
    lead = [plain("None of the ops ran on the GPU. ")] if has_gpu and not on_gpu else []
    if not whole:
        return [*lead, plain(f"{len(rows)} ops ran, in no time that was recorded.")]
    op_type, time = next(iter(by_type.items()))
    first = largest[0]
    where = with_direction(first.name, first.direction)
    took = share(percent(time_of(first, on_gpu), whole), 1)
    of_first = [TextPart(where, "op", first.id), plain(f" takes most, {took}.")]
    if len(rows) > _LARGEST:
        ten = share(percent(sum(time_of(row, on_gpu) for row in largest[:_LARGEST]), whole))
        of_ops = f"the ten largest of {len(rows)} ops take {ten}. "
    else:
        of_ops = "1 op ran. " if len(rows) == 1 else f"{len(rows)} ops ran. "
    return [
        *lead,
        TextPart(op_type, "op_type", op_type),
        plain(f" takes {share(percent(time, whole))} of the {'GPU' if on_gpu else 'CPU'} time; {of_ops}"),
        *of_first,
    ]


def _rate(view: ProfileView, selection: Selection, group: int) -> OpRate | None:
    row = next((row for row in roofline(view, selection).rows if row.group == group), None)
    if row is None or not view.profile.has_gpu:
        return None
    return OpRate(
        flops_per_second=row.rate,
        ceiling_flops_per_second=row.ceiling,
        percent_of_ceiling=row.percent,
        bound="unknown" if row.memory_bound is None else "memory" if row.memory_bound else "compute",
    )


def _launches(view: ProfileView, selection: Selection, group: int) -> OpLaunches:
    rows = np.flatnonzero((view.launch_group == group) & view.selected_launches(selection))
    delays = launch_columns(view, view.selection()).delay_ns[rows]
    known = delays[delays >= 0]
    return OpLaunches(
        launches=len(rows),
        timed=len(known),
        mean_delay_ns=round(float(known.mean())) if len(known) else None,
        max_delay_ns=int(known.max()) if len(known) else None,
    )


def _shapes(view: ProfileView, selection: Selection, group: int) -> list[OpShapes]:
    profile, _strings = view.profile, view.profile.strings
    calls = np.flatnonzero(
        (view.call_group == group) & profile.ops.top[profile.calls.op] & view.selected_calls(selection)
    )
    launches = np.flatnonzero((view.launch_group == group) & view.selected_launches(selection))
    of_launch = profile.calls.op[view.call_top[profile.launches.call[launches]]]
    result = []
    for op in np.unique(profile.calls.op[calls]).tolist():
        mine = calls[profile.calls.op[calls] == op]
        gpu = int(profile.launches.duration_ns[launches[of_launch == op]].sum())
        result.append(
            OpShapes(
                shapes=shapes_text(profile.shapes_of(op)),
                dtypes=dtypes_text(profile.dtypes_of(op)),
                calls=len(mine),
                cpu_total_ns=int(profile.calls.duration_ns[mine].sum()),
                gpu_ns=gpu if profile.has_gpu else None,
            )
        )
    return sorted(result, key=lambda item: (-(item.gpu_ns or 0), -item.cpu_total_ns))


def _kernels(view: ProfileView, selection: Selection, group: int) -> list[OpKernel]:
    profile, strings = view.profile, view.profile.strings
    launches, kernels = profile.launches, profile.kernels
    rows = np.flatnonzero((view.launch_group == group) & view.selected_launches(selection))
    whole = int(launches.duration_ns[rows].sum())
    result = []
    for kernel in np.unique(launches.kernel[rows]).tolist():
        mine = rows[launches.kernel[rows] == kernel]
        total = int(launches.duration_ns[mine].sum())
        moved = int(np.maximum(launches.bytes[mine], 0).sum())
        name = strings[kernels.name[kernel]]
        result.append(
            OpKernel(
                id=kernel_id(view, kernel),
                name=name,
                short_name=short_kernel_name(name),
                family=strings[kernels.family[kernel]],
                tensor_core=VERDICTS[int(kernels.tensor_core[kernel])],
                precision=strings[kernels.precision[kernel]],
                rule=strings[kernels.rule[kernel]],
                calls=len(mine),
                total_ns=total,
                average_ns=total // len(mine),
                percent=percent(total, whole),
                bytes=moved or None,
            )
        )
    return sorted(result, key=lambda item: -item.total_ns)


def _iterations(view: ProfileView, group: int) -> list[OpIteration]:
    profile = view.profile
    total = len(profile.iterations)
    top = (view.call_group == group) & profile.ops.top[profile.calls.op] & (view.call_iteration >= 0)
    counted = top & ~profile.ops.continuation[profile.calls.op]
    calls = np.bincount(view.call_iteration[counted], minlength=total)
    cpu = np.bincount(view.call_iteration[top], weights=profile.calls.duration_ns[top], minlength=total)
    launched = (view.launch_group == group) & (view.launch_iteration >= 0)
    gpu = np.bincount(view.launch_iteration[launched], weights=profile.launches.duration_ns[launched], minlength=total)
    time = gpu if profile.has_gpu else cpu
    number = profile.iterations.number

    def iteration(first: int, last: int) -> OpIteration:
        rows = slice(first, last + 1)
        return OpIteration(
            index=first,
            last=last,
            number=int(number[first]),
            last_number=int(number[last]),
            calls=float(calls[rows].mean()),
            cpu_total_ns=round(cpu[rows].mean()),
            gpu_ns=round(gpu[rows].mean()) if profile.has_gpu else None,
            shortest_ns=int(time[rows].min()),
            longest_ns=int(time[rows].max()),
        )

    return [iteration(*span) for span in bar_spans(total)]
