"""Tensor Core Kernel Utilization: DLProf's measure of how much of the eligible kernel time ran on Tensor Cores."""

from __future__ import annotations

from dataclasses import dataclass

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.share_range import ShareRange, share_range
from tb_dlprof_plugin.model.profile import Bools, Verdict
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@dataclass(frozen=True, slots=True)
class TensorCoreTotals:
    """Kernel time (ns) that Tensor Cores could compute: ``using + not_using + unknown == eligible``.

    Attributes:
        eligible_ns: in eligible ops, and in kernels without an op that are such work by themselves.
        using_ns: of it, on Tensor Cores.
        not_using_ns: of it, off them.
        unknown_ns: of it, in kernels of unknown kind.
        without_op_ns: of it, in kernels around which no op was recorded: they are in no row of a table of ops.
        utilization: ``100 * using / eligible``; None where no eligible kernel ran, or where so much of the time is
            unknown that the answer could be off by more than `UNKNOWN_LIMIT` points.
        possible: the range of the utilization where that is None and a part of the time is known.
    """

    eligible_ns: int
    using_ns: int
    not_using_ns: int
    unknown_ns: int
    without_op_ns: int
    utilization: float | None
    possible: ShareRange | None


UNKNOWN_LIMIT = 5.0
"""Percent of eligible kernel time that may be unknown before the utilization is."""


def eligible_launches(view: ProfileView, selection: Selection) -> Bools:
    """Which launches of the selected iterations are kernels that Tensor Cores could compute, with or without an op."""
    return view.selected_activities(selection) & view.launch_in_matrix_op & view.launch_is_kernel


@per_selection
def tensor_core_totals(view: ProfileView, selection: Selection) -> TensorCoreTotals:
    """The kernel time of the selected iterations that Tensor Cores could compute."""
    launches = view.profile.launches
    rows = eligible_launches(view, selection)
    verdict = view.profile.kernels.tensor_core[launches.kernel]

    def time_of(chosen: Bools) -> int:
        return int(launches.duration_ns[rows & chosen].sum())

    eligible, using = time_of(rows), time_of(verdict == Verdict.YES)
    unknown = time_of(verdict == Verdict.UNKNOWN)
    share = None if view.profile.of_amd else utilization(using, unknown, eligible)
    return TensorCoreTotals(
        eligible_ns=eligible,
        using_ns=using,
        not_using_ns=time_of(verdict == Verdict.NO),
        unknown_ns=unknown,
        without_op_ns=time_of(view.launch_group < 0),
        utilization=share,
        possible=None if share is not None or view.profile.of_amd else share_range(using, unknown, eligible),
    )


def utilization(using_ns: int, unknown_ns: int, eligible_ns: int) -> float | None:
    """``100 * using / eligible``; None where nothing is eligible or too much of it is unknown."""
    known = (percent(unknown_ns, eligible_ns) or 0.0) <= UNKNOWN_LIMIT
    return percent(using_ns, eligible_ns) if known else None
