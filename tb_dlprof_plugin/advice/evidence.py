"""Evidence rows: the ops and calls behind a number, with the user's function where Python stacks were recorded."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.finding import EvidenceRow
from tb_dlprof_plugin.advice.rule import Finding
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.formatting import short_kernel_name
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.profile_view import kernel_id, op_label

_ROWS = 5


def of_recorded_step(context: RuleContext, time_ns: float) -> str:
    """ "12.04 of the 29.41 ms of a recorded step", for CPU times and gaps, which recording makes longer."""
    return f"{time_ns / 1e6:.2f} of the {ms(context.recorded_step_ns)} of a recorded step"


def call_site_of(context: RuleContext, calls: Bools) -> str:
    """The call site of most of these calls, such as "train.py:12 step"; "" if unknown."""
    found = context.profile.call_places
    call_sites = found.place[calls[found.call]] if len(found) else found.place
    if not len(call_sites):
        return ""
    names, counts = np.unique(call_sites, return_counts=True)
    return context.profile.strings[int(names[np.argmax(counts)])]


def call_rows(context: RuleContext, calls: Bools) -> list[EvidenceRow]:
    """The calls that took longest, by outermost op and call site: CPU time per step, and its share of all."""
    profile, groups, strings = context.profile, context.view.groups, context.profile.strings
    rows = np.flatnonzero(calls & context.view.selected_calls(context.selection))
    call_site = np.zeros(len(profile.calls), dtype=np.int64)
    call_site[profile.call_places.call] = profile.call_places.place
    group = context.view.call_group[rows]
    name = np.where(group >= 0, -1, profile.ops.name[profile.calls.op[rows]])
    keys, inverse = np.unique(np.stack((group, name, call_site[rows])), axis=1, return_inverse=True)
    inverse = inverse.reshape(-1)
    time = sums(inverse, profile.calls.duration_ns[rows], keys.shape[1])
    number = np.bincount(inverse, minlength=keys.shape[1])
    result = []
    for key in np.argsort(-time, kind="stable")[:_ROWS].tolist():
        of_group, of_name, of_place = keys[:, key].tolist()
        what = strings[of_name] if of_group < 0 else op_label(context.view, of_group)
        result.append(
            EvidenceRow(
                label=f"{what}, {number[key] / context.selection.count:.3g} a step"
                + (f", in {strings[of_place]}" if of_place else ""),
                value_ns=int(time[key]) // context.selection.count,
                percent=percent(int(time[key]), int(time.sum())),
                page="ops" if of_group >= 0 else "launches",
                id=groups.ids[of_group] if of_group >= 0 else "",
            )
        )
    return result


def work_rows(context: RuleContext, launches: Bools) -> list[EvidenceRow]:
    """`op_rows`, or where no op was recorded around the launches the kernels, per step, with their share."""
    if (launches & (context.view.launch_group >= 0)).any():
        return op_rows(context, launches)
    profile = context.profile
    time = sums(profile.launches.kernel[launches], profile.launches.duration_ns[launches], len(profile.kernels))
    return [
        EvidenceRow(
            label=short_kernel_name(profile.strings[profile.kernels.name[kernel]]),
            value_ns=int(time[kernel]) // context.selection.count,
            percent=percent(int(time[kernel]), int(time.sum())),
            page="kernels",
            id=kernel_id(context.view, kernel),
        )
        for kernel in np.argsort(-time, kind="stable")[:_ROWS].tolist()
        if time[kernel] > 0
    ]


def confirmed_by_kernels(context: RuleContext, finding: Finding, precision: str) -> Finding:
    """The finding; where kernels stand for ops in its evidence, its confirmation names them."""
    if not context.by_kernels:
        return finding
    return finding.but(
        confirm=f"Record again: Tensor Core kernels in {precision} should take the place of the kernels listed."
    )


def op_rows(context: RuleContext, launches: Bools) -> list[EvidenceRow]:
    """The ops that launched most of the given GPU time, per step, with their share of it."""
    profile, groups = context.profile, context.view.groups
    rows = launches & (context.view.launch_group >= 0)
    time = sums(context.view.launch_group[rows], profile.launches.duration_ns[rows], len(groups))
    whole = int(time.sum())
    result = []
    for group in np.argsort(-time, kind="stable")[:_ROWS].tolist():
        if time[group] <= 0:
            break
        call_site = call_site_of(context, _calls_of(context, rows & (context.view.launch_group == group)))
        result.append(
            EvidenceRow(
                label=op_label(context.view, group) + (f", in {call_site}" if call_site else ""),
                value_ns=int(time[group]) // context.selection.count,
                percent=percent(int(time[group]), whole),
                page="ops",
                id=groups.ids[group],
            )
        )
    return result


def _calls_of(context: RuleContext, launches: Bools) -> Bools:
    calls = np.zeros(len(context.profile.calls), dtype=np.bool_)
    calls[context.profile.launches.call[launches]] = True
    return calls
