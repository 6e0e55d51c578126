"""GPU work by group: what it does and, for convolutions, pooling, copies and collectives, by which algorithm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import Figure, figure, sums
from tb_dlprof_plugin.metrics.unattributed_ops import selected_activities
from tb_dlprof_plugin.model.profile import Ints, Verdict
from tb_dlprof_plugin.names.kernel_groups import GROUPS, kernel_group
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@dataclass(frozen=True, slots=True)
class KernelGroups:
    """One row per group of `names.kernel_groups.GROUPS` that occurs, by falling GPU time.

    ``kernels`` counts different kernels. Times on and off the Tensor Cores, and unknown ones, sum to the GPU time (ns).
    """

    names: list[str]
    kernels: Ints
    gpu: Figure
    tensor_core_ns: Ints
    unknown_ns: Ints

    def __len__(self) -> int:
        return len(self.names)


@per_selection
def kernel_groups(view: ProfileView, selection: Selection) -> KernelGroups:
    """The groups of the selected iterations."""
    profile = view.profile
    kernels, launches, strings = profile.kernels, profile.launches, profile.strings
    every = list(GROUPS)
    group_of = np.array(
        [
            every.index(kernel_group(strings[name], strings[family]))
            for name, family in zip(kernels.name.tolist(), kernels.family.tolist(), strict=True)
        ],
        dtype=np.int64,
    )
    rows = selected_activities(view, selection)
    kernel = launches.kernel[rows]
    group = group_of[kernel] if len(rows) else kernel
    duration, verdict = launches.duration_ns[rows], kernels.tensor_core[kernel]
    gpu = figure(group, duration, len(every))
    order = np.argsort(-gpu.total, kind="stable")
    order = order[gpu.count[order] > 0]
    used = np.unique(kernel)
    return KernelGroups(
        names=[every[row] for row in order.tolist()],
        kernels=np.bincount(group_of[used], minlength=len(every)).astype(np.int64)[order],
        gpu=gpu.ordered(order),
        tensor_core_ns=sums(group[verdict == Verdict.YES], duration[verdict == Verdict.YES], len(every))[order],
        unknown_ns=sums(group[verdict == Verdict.UNKNOWN], duration[verdict == Verdict.UNKNOWN], len(every))[order],
    )
