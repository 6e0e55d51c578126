"""Per-kernel totals of the selected iterations, and how much of the GPU time is attributed to ops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import figure, sums
from tb_dlprof_plugin.metrics.share_range import ShareRange, share_range
from tb_dlprof_plugin.model.profile import ATTRIBUTED, Attribution, Ints, KernelKind, Verdict
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

UNKNOWN_KERNELS_PERCENT = 10.0
"""Of the kernel time, without a Tensor Core verdict, from which the total is unknown. Ours: an error of a tenth of the
time does not separate "none" from "some" or "most" from "all"."""


@dataclass(frozen=True, slots=True)
class KernelTotals:
    """One row per row of `Profile.kernels`; times in ns. Rows without calls in the selection have zeros."""

    calls: Ints
    total_ns: Ints
    min_ns: Ints
    max_ns: Ints
    bytes: Ints


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Kernel time of the selected iterations (ns), by launch; ``of_amd``: of a GPU that has no Tensor Cores to use."""

    tensor_core_ns: int
    other_ns: int
    unknown_ns: int
    memory_ns: int
    of_amd: bool = False

    @property
    def kernel_ns(self) -> int:
        """Time of all kernels, copies and sets left out."""
        return self.tensor_core_ns + self.other_ns + self.unknown_ns

    @property
    def unknown_percent(self) -> float | None:
        """Share of the kernel time that has no Tensor Core verdict; None without kernels."""
        return 100.0 * self.unknown_ns / self.kernel_ns if self.kernel_ns else None

    @property
    def tensor_cores_known(self) -> bool:
        """Whether a share of time on Tensor Cores can be named: see `UNKNOWN_KERNELS_PERCENT`."""
        return not self.of_amd and (self.unknown_percent or 0.0) < UNKNOWN_KERNELS_PERCENT

    @property
    def possible(self) -> ShareRange | None:
        """Where the share of Tensor Core kernels in the time of all kernels, copies and sets lies, if it is not known;
        None where it is, and where it could be anything."""
        if self.tensor_cores_known or self.of_amd or share_range(0, self.unknown_ns, self.kernel_ns) is None:
            return None
        return share_range(self.tensor_core_ns, self.unknown_ns, self.kernel_ns + self.memory_ns)

    @property
    def tensor_core_percent(self) -> float | None:
        """Share of Tensor Core kernels in the time of all kernels, copies and sets; None where it is not known."""
        whole = self.kernel_ns + self.memory_ns
        return 100.0 * self.tensor_core_ns / whole if whole and self.tensor_cores_known else None


@dataclass(frozen=True, slots=True)
class GpuCoverage:
    """GPU time of the recording (ns): ``linked + orphan + unattributed == total``; ``outside`` is part of linked."""

    total_ns: int
    linked_ns: int
    orphan_ns: int
    unattributed_ns: int
    outside_ns: int


@per_selection
def kernel_totals(view: ProfileView, selection: Selection) -> KernelTotals:
    """Totals of each kernel, copy and set launched in the selected iterations."""
    return totals_of(view, np.flatnonzero(view.selected_activities(selection)))


def totals_of(view: ProfileView, rows: Ints) -> KernelTotals:
    """Totals of each kernel, copy and set over these rows of `Profile.launches`."""
    launches, count = view.profile.launches, len(view.profile.kernels)
    kernel = launches.kernel[rows]
    time = figure(kernel, launches.duration_ns[rows], count)
    moved = sums(kernel, np.maximum(launches.bytes[rows], 0), count)
    return KernelTotals(time.count, time.total, np.where(time.count > 0, time.low, 0), time.high, moved)


def time_split(view: ProfileView, selection: Selection) -> TimeSplit:
    """Kernel time by Tensor Core use, and memory time."""
    kernels = view.profile.kernels
    total = kernel_totals(view, selection).total_ns
    is_kernel = kernels.kind == KernelKind.KERNEL

    def of(verdict: Verdict) -> int:
        return int(total[is_kernel & (kernels.tensor_core == verdict)].sum())

    return TimeSplit(
        tensor_core_ns=of(Verdict.YES),
        other_ns=of(Verdict.NO),
        unknown_ns=of(Verdict.UNKNOWN),
        memory_ns=int(total[~is_kernel].sum()),
        of_amd=view.profile.of_amd,
    )


def coverage(view: ProfileView) -> GpuCoverage:
    """How much of all recorded GPU time is attributed to ops."""
    launches = view.profile.launches
    duration, attribution = launches.duration_ns, launches.attribution
    linked = np.isin(attribution, ATTRIBUTED)
    return GpuCoverage(
        total_ns=int(duration.sum()),
        linked_ns=int(duration[linked].sum()),
        orphan_ns=int(duration[attribution == Attribution.ORPHAN].sum()),
        unattributed_ns=int(duration[attribution == Attribution.UNATTRIBUTED].sum()),
        outside_ns=int(duration[linked & (view.launch_iteration < 0)].sum()),
    )
