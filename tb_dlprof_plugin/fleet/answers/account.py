"""Where a rank's step goes: compute, transfer, waiting, bubble and host, which add up to the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.answers.calls import Calls
from tb_dlprof_plugin.fleet.chosen_steps import among
from tb_dlprof_plugin.fleet.job import JobStep, RankAccount
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Bools, Ints

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
    return _recorded(*_sums(facts, calls.numbers), waiting, bubble)


def recorded_account_of_all(facts: Sequence[RankFacts], compared: Ints, recorded: Recorded, numbers: Ints) -> Recorded:
    """That of all ranks where the calls of some were compared: the transfer of another rank is the median of those that
    make as many calls, and the rest of its exposed communication is waiting and bubble in their proportion.

    Args:
        facts: of all ranks.
        compared: indices of those that were compared.
        recorded: their account.
        numbers: of the steps.
    """
    step, compute, communication = _sums(facts, numbers)
    count = np.array([len(one.collectives) for one in facts])
    waiting, bubble = np.zeros_like(step), np.zeros_like(step)
    for number in np.unique(count):
        here, own = np.flatnonzero(count == number), count[compared] == number
        # Ranks like none that was compared are as all that were.
        own = own if own.any() else np.ones_like(own)
        rest = np.maximum(communication[here] - int(np.median(recorded.transfer[own])), 0)
        both = max(int((recorded.waiting + recorded.bubble)[own].sum()), 1)
        bubble[here] = rest * (int(recorded.bubble[own].sum()) / both)
        waiting[here] = rest - bubble[here]
    waiting[compared], bubble[compared] = recorded.waiting, recorded.bubble
    return _recorded(step, compute, communication, waiting, bubble)


def _sums(facts: Sequence[RankFacts], numbers: Ints) -> tuple[Ints, Ints, Ints]:
    """Of each rank: steps, compute and exposed communication, over these steps."""
    sums = np.zeros((3, len(facts)), dtype=np.int64)
    for index, (one, here) in enumerate(zip(facts, among(facts, numbers), strict=True)):
        steps = one.steps
        sums[0, index] = (steps.end_ns - steps.start_ns)[here].sum()
        sums[1, index] = np.maximum(steps.compute_ns, 0)[here].sum()
        sums[2, index] = np.maximum(steps.communication_ns, 0)[here].sum()
    return sums[0], sums[1], sums[2]


def _recorded(step: Ints, compute: Ints, communication: Ints, waiting: Ints, bubble: Ints) -> Recorded:
    waiting = np.minimum(waiting, communication)
    bubble = np.minimum(bubble, communication - waiting)
    host = step - compute - communication
    return Recorded(step, compute, communication - waiting - bubble, waiting, bubble, host)


def account(facts: Sequence[RankFacts], recorded: Recorded, calls: Calls, step: JobStep | None) -> list[RankAccount]:
    """Means per step of each rank (ms), by rank, scaled to the step without the profiler (`scaled`)."""
    return scaled(facts, recorded, calls.steps, step, calls.per_rank(calls.coupled.astype(np.int64)) > 0)


def scaled(
    facts: Sequence[RankFacts], recorded: Recorded, steps: int, step: JobStep | None, matched: Bools
) -> list[RankAccount]:
    """Means per step of each rank (ms), by rank; ``matched``: whether waiting of a rank is known apart from transfer.

    The profiler delays the host, and ranks that wait for it: what the recorded step is longer by is taken from the
    host's part, then from waiting, and what is left of it from all parts in proportion.
    """
    rows = []
    for index, one in enumerate(facts):
        parts = {name: int(getattr(recorded, name)[index]) / 1e6 / max(steps, 1) for name in _PARTS}
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
