"""What several findings can save together: no millisecond of the step is promised twice."""

from __future__ import annotations

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

    Of alternatives the largest counts. A saving is a share of the time that it claims; the next one saves its share of
    what is left, so that no launch and no wait is saved more than once.
    """
    if not savings:
        return None
    largest = max((item for item, _ in savings), key=lambda item: item.expected_ns)
    best, most, step_ns = largest.expected_ns, max(item.high_ns for item, _ in savings), _step_ns(case, largest)
    # What a saving promises beyond the time that it claims (a step without the profiler is another step) stays its own.
    expected = min(max(_together(case, [(item.expected_ns, claim) for item, claim in savings]), best), step_ns)
    high = min(max(_together(case, [(item.high_ns, claim) for item, claim in savings]), most), step_ns)
    return CombinedSaving(
        low_ns=min(max(item.low_ns for item, _ in savings), expected),
        expected_ns=expected,
        high_ns=max(high, expected),
        percent=percent(expected, step_ns) or 0.0,
        findings=len(savings),
        added_up_ns=sum(max(0, item.expected_ns) for item, _ in savings),
    )


def _step_ns(case: Case, saving: SavingItem) -> int:
    """The step that a saving is a share of: that without the profiler where it comes from a replay or forecast."""
    return round(100 * saving.expected_ns / saving.percent) if saving.percent > 0 else case.step_ns


def _together(case: Case, savings: Sequence[tuple[int, Claim]]) -> int:
    """What is saved when each saving takes its share of what the others leave of the time that it claims."""
    launches = case.profile.launches
    left_of_launch = np.ones(len(launches))
    left_of_wait: dict[str, float] = {}
    unclaimed = 0
    for saved_ns, claim in _without_alternatives(savings):
        waits = {name: _waiting_ns(case, name) for name in claim.waits}
        busy = case.per_step(claim.launches) if claim.launches is not None else 0
        total = busy + sum(waits.values())
        if total <= 0:
            unclaimed += saved_ns
            continue
        left = 1.0 - min(max(saved_ns / total, 0.0), 1.0)
        if claim.launches is not None:
            left_of_launch[claim.launches] *= left
        for name in waits:
            left_of_wait[name] = left_of_wait.get(name, 1.0) * left
    saved = float((1.0 - left_of_launch) @ launches.duration_ns) / case.selection.count
    saved += sum((1.0 - left) * _waiting_ns(case, name) for name, left in left_of_wait.items())
    return round(saved) + unclaimed


def _without_alternatives(savings: Sequence[tuple[int, Claim]]) -> list[tuple[int, Claim]]:
    """Of each group the largest saving."""
    largest: dict[str, tuple[int, Claim]] = {}
    for number, (saved_ns, claim) in enumerate(savings):
        key = claim.group or f"only {number}"
        if key not in largest or saved_ns > largest[key][0]:
            largest[key] = (saved_ns, claim)
    return list(largest.values())


def _waiting_ns(case: Case, name: str) -> int:
    return (case.steps.category_ns[name] or 0) // case.selection.count
