"""Per-op totals of the selected iterations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.op_gpu_time import own_gpu_ns
from tb_dlprof_plugin.model.grouping import group_rows
from tb_dlprof_plugin.model.precision import op_precisions
from tb_dlprof_plugin.model.profile import Bools, Ints, Verdict
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@dataclass(frozen=True, slots=True)
class OpTotals:
    """One row per group of `ProfileView.groups`; times in ns. GPU columns count what the op's calls launched.

    ``eligible_ns == tensor_core_ns + eligible_non_tensor_core_ns + eligible_unknown_ns`` is the kernel time in the
    parts of the op that can use Tensor Cores: casts and copies around them are in ``gpu_ns`` only. ``gpu_ns`` is the
    union of what each call launched (`op_gpu_time`), the others are sums over kernels.
    """

    calls: Ints
    cpu_total_ns: Ints
    cpu_self_ns: Ints
    gpu_ns: Ints
    kernel_calls: Ints
    eligible: Bools
    eligible_ns: Ints
    tensor_core_ns: Ints
    eligible_non_tensor_core_ns: Ints
    eligible_unknown_ns: Ints


@per_selection
def op_totals(view: ProfileView, selection: Selection) -> OpTotals:
    """Totals of each op over the selected iterations."""
    profile = view.profile
    calls, ops, launches, kernels = profile.calls, profile.ops, profile.launches, profile.kernels
    count = len(view.groups)

    top = ops.top[calls.op] & view.selected_calls(selection)
    group = view.call_group
    counted = top & ~ops.continuation[calls.op]
    eligible = np.zeros(count, dtype=np.bool_)
    eligible[group[top & view.call_has_matrix_op]] = True

    launched = view.selected_launches(selection) & (view.launch_group >= 0)
    launch_group = view.launch_group
    in_matrix = launched & view.launch_is_kernel & view.launch_in_matrix_op
    verdict = kernels.tensor_core[launches.kernel]

    def sum_by_group(rows: Bools) -> Ints:
        return sums(launch_group[rows], launches.duration_ns[rows], count)

    return OpTotals(
        calls=np.bincount(group[counted], minlength=count).astype(np.int64),
        cpu_total_ns=sums(group[top], calls.duration_ns[top], count),
        cpu_self_ns=sums(group[top], view.call_self_ns[top], count),
        gpu_ns=sums(launch_group[launched], own_gpu_ns(view)[launched], count),
        kernel_calls=np.bincount(launch_group[launched], minlength=count).astype(np.int64),
        eligible=eligible,
        eligible_ns=sum_by_group(in_matrix),
        tensor_core_ns=sum_by_group(in_matrix & (verdict == Verdict.YES)),
        eligible_non_tensor_core_ns=sum_by_group(in_matrix & (verdict == Verdict.NO)),
        eligible_unknown_ns=sum_by_group(in_matrix & (verdict == Verdict.UNKNOWN)),
    )


@per_selection
def group_precisions(view: ProfileView, selection: Selection) -> list[str]:
    """Precision per group: that of its Tensor Core kernels ("fp16+tf32" where several), "" for none."""
    profile = view.profile
    launches, kernels = profile.launches, profile.kernels
    rows = np.flatnonzero(
        view.selected_launches(selection)
        & (view.launch_group >= 0)
        & (kernels.tensor_core[launches.kernel] == Verdict.YES)
    )
    found: list[set[str]] = [set() for _ in range(len(view.groups))]
    (groups, precisions), _ = group_rows(view.launch_group[rows], kernels.precision[launches.kernel[rows]])
    for group, precision in zip(groups.tolist(), precisions.tolist(), strict=True):
        if profile.strings[precision]:
            found[group].add(profile.strings[precision])
    return ["+".join(sorted(names)) for names in found]


@per_selection
def input_precisions(view: ProfileView, selection: Selection) -> list[str]:
    """Precision per group that its inputs have, "" where not recorded.

    Inputs of the matrix ops inside count (autocast casts between the outermost op and them, and backward nodes record
    none themselves), for a group without any its own; that with most CPU time where there are several.
    """
    profile = view.profile
    calls, ops = profile.calls, profile.ops
    of_op = op_precisions(profile)
    names = sorted({"", *of_op})
    code = np.array([names.index(name) for name in of_op], dtype=np.int64)[calls.op]
    known = view.selected_calls(selection) & (view.call_group >= 0) & (code > 0)
    result = [""] * len(view.groups)
    for wanted in (ops.top, ops.tensor_core_eligible != Verdict.NO):
        rows = known & wanted[calls.op]
        time = np.zeros((len(view.groups), len(names)), dtype=np.int64)
        # One more than the duration, so that calls of 0 ns count.
        np.add.at(time, (view.call_group[rows], code[rows]), calls.duration_ns[rows] + 1)
        for group in np.flatnonzero(time.any(axis=1)).tolist():
            result[group] = names[int(time[group].argmax())]
    return result
