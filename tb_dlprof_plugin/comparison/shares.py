"""Splits a run's time into matched and unmatched parts."""

from __future__ import annotations

import msgspec
import numpy as np

from tb_dlprof_plugin.comparison.rows import Reason, Rows
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.op_sites import Run
from tb_dlprof_plugin.metrics.step_buckets import Basis
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Attribution, Bools, Ints


class Shares(msgspec.Struct, frozen=True):
    """Where one run's time went in matching, per iteration (ns): GPU time, or CPU time of ops where there is no GPU.

    ``unmatched_ns`` has no counterpart in the other run; ``unlinked_ns`` is GPU time that no recorded op launched.
    """

    matched_ns: int
    casts_ns: int
    scaler_ns: int
    compiled_ns: int
    unmatched_ns: int
    unlinked_ns: int

    @property
    def total_ns(self) -> int:
        """All of it."""
        return sum(msgspec.structs.astuple(self))

    @property
    def matched_percent(self) -> float | None:
        """Matched time over all time except casts and GradScaler's, which never have a counterpart."""
        return percent(self.matched_ns, self.total_ns - self.casts_ns - self.scaler_ns)


def shares_of(run: Run, rows: Rows, row_of_site: Ints, basis: Basis) -> Shares:
    """The shares of one run.

    Args:
        run: the run.
        rows: of the comparison.
        row_of_site: per site of the run its row.
        basis: whether GPU or CPU time is shared out.
    """
    matched = rows.paired[row_of_site] if len(rows) else np.zeros(0, dtype=np.bool_)

    def alone_for(reason: Reason) -> Bools:
        flags = np.array([text == reason for text in rows.reason], dtype=np.bool_)
        return flags[row_of_site] & ~matched if len(rows) else matched

    compiled = alone_for("compiled")
    if basis == "cpu":
        return _of_cpu(run, matched, compiled, alone_for("scaler"))
    return _of_gpu(run, matched, compiled)


def _of_gpu(run: Run, matched: Bools, compiled: Bools) -> Shares:
    launches = run.view.profile.launches
    site = run.launch_site
    inside = site >= 0

    def of_site(flags: Bools) -> Bools:
        return inside & take_or(flags, site, False)

    def mean_ns(chosen: Bools) -> int:
        return round(int(launches.duration_ns[chosen].sum()) / run.selection.count)

    scaler = run.launch_scaler & inside
    casts = run.launch_cast & inside & ~scaler
    plain = inside & ~scaler & ~casts
    return Shares(
        matched_ns=mean_ns(plain & of_site(matched)),
        casts_ns=mean_ns(casts),
        scaler_ns=mean_ns(scaler),
        compiled_ns=mean_ns(plain & of_site(compiled)),
        unmatched_ns=mean_ns(plain & of_site(~matched & ~compiled)),
        unlinked_ns=mean_ns(_unlinked(run)),
    )


def _of_cpu(run: Run, matched: Bools, compiled: Bools, scaler: Bools) -> Shares:
    profile, sites = run.view.profile, run.sites
    tops = np.flatnonzero(profile.ops.top[profile.calls.op] & (sites.of_call >= 0))
    time = np.bincount(sites.of_call[tops], profile.calls.duration_ns[tops], minlength=len(sites))
    casts = sites.amp_only & ~matched & ~scaler

    def mean_ns(chosen: Bools) -> int:
        return round(int(time[chosen].sum()) / run.selection.count)

    return Shares(
        matched_ns=mean_ns(matched),
        casts_ns=mean_ns(casts),
        scaler_ns=mean_ns(scaler),
        compiled_ns=mean_ns(compiled),
        unmatched_ns=mean_ns(~(matched | casts | scaler | compiled)),
        unlinked_ns=0,
    )


def _unlinked(run: Run) -> Bools:
    """GPU work of the selected iterations without a known op; orphans belong to none of them."""
    launches = run.view.profile.launches
    starts, stops = run.windows
    ran = (launches.start_ns >= starts[0]) & (launches.start_ns < stops[-1])
    lost = (launches.attribution == Attribution.UNATTRIBUTED) & (launches.call < 0) & ran
    return (run.launch_site < 0) & (run.view.selected_launches(run.selection) | lost)
