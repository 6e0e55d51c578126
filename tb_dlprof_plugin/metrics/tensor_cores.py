"""Tensor Core Kernel Utilization: DLProf's measure of how much of the eligible kernel time ran on Tensor Cores."""

from __future__ import annotations

from dataclasses import dataclass

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.ops import OpTotals


@dataclass(frozen=True, slots=True)
class TensorCoreTotals:
    """Kernel time in eligible ops (ns): ``using + not_using + unknown == eligible``.

    ``utilization`` is ``100 * using / eligible``; None where no eligible op launched a kernel, or where kernels of
    unknown kind make up so much of the eligible time that the answer could be off by more than `UNKNOWN_LIMIT` points.
    """

    eligible_ns: int
    using_ns: int
    not_using_ns: int
    unknown_ns: int
    utilization: float | None


UNKNOWN_LIMIT = 5.0
"""Percent of eligible kernel time that may be unknown before the utilization is."""


def tensor_core_totals(totals: OpTotals) -> TensorCoreTotals:
    """Sums of the eligible columns of `OpTotals`."""
    eligible = int(totals.eligible_ns.sum())
    using = int(totals.tensor_core_ns.sum())
    unknown = int(totals.eligible_unknown_ns.sum())
    return TensorCoreTotals(
        eligible_ns=eligible,
        using_ns=using,
        not_using_ns=int(totals.eligible_non_tensor_core_ns.sum()),
        unknown_ns=unknown,
        utilization=utilization(using, unknown, eligible),
    )


def utilization(using_ns: int, unknown_ns: int, eligible_ns: int) -> float | None:
    """``100 * using / eligible``; None where nothing is eligible or too much of it is unknown."""
    known = (percent(unknown_ns, eligible_ns) or 0.0) <= UNKNOWN_LIMIT
    return percent(using_ns, eligible_ns) if known else None
