"""Where a rank's step goes: compute, transfer, waiting, bubble and host, which add up to the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.answers.calls import Calls
from tb_dlprof_plugin.fleet.job import JobStep, RankAccount
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Ints

_PARTS = ("compute", "transfer", "waiting", "bubble", "host")


@dataclass(frozen=True, slots=True)
class Recorded:
    """Of each rank, sums over the chosen steps as recorded (ns): ``step`` is the sum of the other columns."""

    step: Ints
    compute: Ints
    transfer: Ints
    waiting: Ints
    bubble: Ints
    host: Ints


def recorded_account(facts: Sequence[RankFacts], calls: Calls) -> Recorded:
    """Exact in ns. ``host`` is the time in which the GPU ran no kernel: it idled, or copied what the host gave it.

    Waiting never exceeds the exposed communication that the rank's own steps state; the rest of that is transfer.
    """
    bubble = calls.per_rank(np.where(calls.bubble, calls.waiting, 0)).astype(np.int64)
    waiting = calls.per_rank(np.where(calls.bubble, 0, calls.waiting)).astype(np.int64)
    sums = {name: np.zeros(len(facts), dtype=np.int64) for name in ("step", "compute", "communication", "host")}
    for index, one in enumerate(facts):
        steps = one.steps
        here = np.isin(steps.number, calls.numbers)
        sums["step"][index] = (steps.end_ns - steps.start_ns)[here].sum()
        sums["compute"][index] = np.maximum(steps.compute_ns, 0)[here].sum()
        sums["communication"][index] = np.maximum(steps.communication_ns, 0)[here].sum()
    communication = sums["communication"]
    waiting = np.minimum(waiting, communication)
    bubble = np.minimum(bubble, communication - waiting)
    host = sums["step"] - sums["compute"] - communication
    return Recorded(sums["step"], sums["compute"], communication - waiting - bubble, waiting, bubble, host)


def account(facts: Sequence[RankFacts], recorded: Recorded, calls: Calls, step: JobStep | None) -> list[RankAccount]:
    """Means per step of each rank (ms), by rank, scaled to the step without the profiler.

    The profiler delays the host, and ranks that wait for it: what the recorded step is longer by is taken from the
    host's part, then from waiting, and what is left of it from all parts in proportion.
    """
    matched = calls.per_rank(calls.coupled.astype(np.int64)) > 0
    rows = []
    for index, one in enumerate(facts):
        parts = {name: int(getattr(recorded, name)[index]) / 1e6 / max(calls.steps, 1) for name in _PARTS}
        total = sum(parts.values())
        target = total if step is None else step.ms
        more = total - target
        for name in ("host", "waiting"):
            less = min(max(more, 0.0), max(parts[name], 0.0))
            parts[name] -= less
            more -= less
        left = sum(parts.values())
        if left > 0 and step is not None:
            parts = {name: value * target / left for name, value in parts.items()}
        known = matched[index] or not parts["transfer"]
        rows.append(
            RankAccount(
                rank=one.rank,
                step_ms=sum(parts.values()),
                compute_ms=parts["compute"],
                transfer_ms=parts["transfer"],
                waiting_ms=parts["waiting"] if known else None,
                bubble_ms=parts["bubble"],
                host_ms=parts["host"],
            )
        )
    return sorted(rows, key=lambda row: row.rank)
