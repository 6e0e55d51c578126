"""What several findings can save together: no millisecond of the step is promised twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.finding import CombinedSaving, SavingItem
from tb_dlprof_plugin.measures.iterations import percent
from tb_dlprof_plugin.storage.model import Bools


@dataclass(frozen=True)
class Claim:
    """The time that a saving comes out of.

    ``launches`` are GPU activities that get shorter or go; ``waits`` categories of the time in which the GPU is idle
    ("dataloader", "io", "cpu", "other"; on a CPU run those of the step). Savings of one ``group`` are alternatives, of
    which one can be had.
    """

    launches: Bools | None = None
    waits: tuple[str, ...] = ()
    group: str = ""


def combined(case: Case, savings: Sequence[tuple[SavingItem, Claim]]) -> CombinedSaving | None:
    """What all savings come to per step (ns); None without any.

    A saving is spread over the time that it claims. Of each launch and each kind of waiting the savings add up, of
    alternatives the largest counts, and none of it can be saved more than once.
    """
    if not savings:
        return None
    low = max(item.low_ns for item, _ in savings)
    expected = _together(case, [(item.expected_ns, claim) for item, claim in savings])
    high = _together(case, [(item.high_ns, claim) for item, claim in savings])
    best = max(item.expected_ns for item, _ in savings)
    # Spreading loses what a saving promises beyond the time that was measured with the profiler.
    expected = min(max(expected, best), case.step_ns)
    high = min(max(high, max(item.high_ns for item, _ in savings)), case.step_ns)
    return CombinedSaving(
        low_ns=min(low, expected),
        expected_ns=expected,
        high_ns=max(high, expected),
        percent=percent(expected, case.step_ns) or 0.0,
        findings=len(savings),
        added_up_ns=sum(max(0, item.expected_ns) for item, _ in savings),
    )


def _together(case: Case, savings: Sequence[tuple[int, Claim]]) -> int:
    """The sum of what is saved of each launch and each kind of waiting, each at most whole."""
    launches = case.profile.launches
    of_launch: dict[str, np.ndarray] = {}  # type: ignore[type-arg]
    of_wait: dict[str, dict[str, float]] = defaultdict(dict)
    unclaimed: dict[str, int] = {}
    for number, (saved_ns, claim) in enumerate(savings):
        group = claim.group or str(number)
        waits = {name: _waiting_ns(case, name) for name in claim.waits}
        busy = case.per_step(claim.launches) if claim.launches is not None else 0
        total = busy + sum(waits.values())
        if total <= 0:
            unclaimed[group] = max(unclaimed.get(group, 0), saved_ns)
            continue
        share = min(max(saved_ns / total, 0.0), 1.0)
        if claim.launches is not None:
            shares = of_launch.setdefault(group, np.zeros(len(launches)))
            np.maximum(shares, share * claim.launches, out=shares)
        for name, time in waits.items():
            of_wait[name][group] = max(of_wait[name].get(group, 0.0), share * time)
    saved = float(sum(unclaimed.values()))
    if of_launch:
        gone = np.minimum(np.sum(list(of_launch.values()), axis=0), 1.0)
        saved += float(gone @ launches.duration_ns) / case.selection.count
    for name, by_group in of_wait.items():
        saved += min(sum(by_group.values()), _waiting_ns(case, name))
    return round(saved)


def _waiting_ns(case: Case, name: str) -> int:
    return (case.steps.category_ns[name] or 0) // case.selection.count
