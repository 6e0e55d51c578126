"""Savings of rules about kernels: what a step would take with some of them faster or gone (`advice.replays`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.finding import SavingItem
from tb_dlprof_plugin.advice.looking import launched_in
from tb_dlprof_plugin.advice.replays import Change, shorter_step, unprofiled_base
from tb_dlprof_plugin.storage.intervals import union
from tb_dlprof_plugin.storage.model import Bools, Floats


def change(case: Case, *parts: tuple[Bools, float | Floats], gone: Bools | None = None) -> Change:
    """The change of a step in which kernels are faster and calls are not made any more.

    Args:
        case: the run.
        parts: launches, with what stays of their time.
        gone: calls that go, with everything in them and what they launch.
    """
    stays = np.ones(len(case.profile.launches))
    for launches, share in parts:
        stays[launches] *= share if isinstance(share, float) else share[launches]
    if gone is None:
        return Change(gpu=stays)
    stays[launched_in(case, gone)] = 0.0
    calls = case.profile.calls
    start = calls.start_ns[gone]
    return Change(cpu=union(start, start + calls.duration_ns[gone]), keep_cpu=0.0, gpu=stays)


def step_saving(case: Case, low: Change, expected: Change, high: Change, derivation: str) -> SavingItem:
    """`shorter_step`, its ends wider by what a step varies from run to run; the low end is at least 0."""
    item = shorter_step(case, low, expected, high, derivation)
    noise = thresholds.STEP_NOISE * unprofiled_base(case).step_ns
    return SavingItem(
        low_ns=max(0, round(item.low_ns - noise)),
        expected_ns=item.expected_ns,
        high_ns=round(item.high_ns + noise),
        percent=item.percent,
        derivation=item.derivation,
    )


def milliseconds(launches_ns: int) -> str:
    """ "1.25 ms", "38 us" for less than a tenth of one."""
    return f"{launches_ns / 1e6:.2f} ms" if launches_ns >= 100_000 else f"{launches_ns / 1e3:.0f} us"


def listed(names: Sequence[str], most: int = 3) -> str:
    """ "a, b, c and 4 more" of the different names, in their order."""
    different = list(dict.fromkeys(name for name in names if name))
    shown = ", ".join(different[:most])
    return f"{shown} and {len(different) - most} more" if len(different) > most else shown
