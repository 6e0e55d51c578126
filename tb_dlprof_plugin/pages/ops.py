"""The Ops page: every op of the selected iterations."""

from __future__ import annotations

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.ops import OpTotals, group_precisions, input_precisions, op_totals
from tb_dlprof_plugin.model.direction import direction_of, with_direction
from tb_dlprof_plugin.model.formatting import dtypes_text, shapes_text, share
from tb_dlprof_plugin.model.profile import Bools, Ints
from tb_dlprof_plugin.model.profile import Verdict as Verdicts
from tb_dlprof_plugin.pages.common import (
    ROLES,
    Coverage,
    OpRow,
    SelectedRange,
    Verdict,
    coverage_of,
    selected_range,
)
from tb_dlprof_plugin.pages.off_tensor_cores import main_reason
from tb_dlprof_plugin.pages.sentences import TextPart, plain, text_of
from tb_dlprof_plugin.profile_view import ProfileView, Selection, op_name, per_selection
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


@per_selection
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
    timed = timed_on_cpu(view, totals)
    eligible = _eligible(view, totals)
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
                cpu_total_ns=int(totals.cpu_total_ns[group]) if timed[group] else None,
                cpu_self_ns=int(totals.cpu_self_ns[group]) if timed[group] else None,
                gpu_ns=int(totals.gpu_ns[group]) if has_gpu else None,
                gpu_percent=percent(int(totals.gpu_ns[group]), all_gpu_ns) if has_gpu else None,
                kernel_calls=int(totals.kernel_calls[group]),
                tc_eligible=eligible[group],
                using_tc=using_tensor_cores(totals, group) if has_gpu else "unknown",
                precision=precisions[group] or inputs[group],
                shapes=shapes_text(profile.shapes_of(op)),
                dtypes=dtypes_text(profile.dtypes_of(op)),
            )
        )
    return rows


def timed_on_cpu(view: ProfileView, totals: OpTotals) -> Bools:
    """Per op, whether its calls were timed on the CPU: a format that only states an op gives its calls no length."""
    return (totals.cpu_total_ns > 0) | (view.profile.source.format == "kineto")


def times_by_type(rows: list[OpRow], has_gpu: bool) -> dict[str, int]:
    """GPU time (ns) by op type, the largest first; without a GPU CPU time."""
    times: dict[str, int] = {}
    for row in rows:
        times[row.op_type] = times.get(row.op_type, 0) + time_of(row, has_gpu)
    return dict(sorted(times.items(), key=lambda item: -item[1]))


def time_of(row: OpRow, has_gpu: bool) -> int:
    """GPU time (ns) of an op; without a GPU CPU time: an op is an outermost call, which counts nothing twice."""
    return (row.gpu_ns if has_gpu else row.cpu_total_ns) or 0


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
    if eligible == "unknown" and view.compute_capability is not None:
        return f"{op_type} launched a CUDA graph that was recorded whole: what it computes is not known."
    if eligible == "unknown":
        return f"{op_type} multiplies matrices, but the run used no GPU or its compute capability was not recorded."
    if reason:
        return reason
    return f"{op_type} has no form that runs on Tensor Cores."


def _eligible(view: ProfileView, totals: OpTotals) -> list[Verdict]:
    """Per op."""
    # Without a GPU or its compute capability the eligibility of every matrix op is unknown, else that of graphs alone
    # that were recorded whole.
    unknown = bool((view.profile.ops.tensor_core_eligible == Verdicts.UNKNOWN).any())
    unknown |= bool((view.launch_by_kernel == Verdicts.UNKNOWN).any())
    return [
        "yes" if eligible else "unknown" if unknown and has_matrix_op else "no"
        for eligible, has_matrix_op in zip(totals.eligible.tolist(), view.groups_with_matrix_op.tolist(), strict=True)
    ]


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
    of_first = [TextPart(where, "op", first.id), plain(f" is the largest op, {took}.")]
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
