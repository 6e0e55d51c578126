"""Steps whose calls are compared: all, or as many as a job of many ranks leaves room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.lookup import take_rows
from tb_dlprof_plugin.model.profile import Bools, Ints

MOST_CALLS = 3_000_000
"""Calls of all ranks together that are compared. A slowdown is nearly the same in all steps of a job (Lin et al.,
OSDI'25), so that fewer steps answer the same."""


def common_steps(facts: Sequence[RankFacts]) -> Ints:
    """Numbers of the steps that as many ranks recorded as any step was recorded by."""
    numbers = np.concatenate([np.unique(rank.steps.number) for rank in facts]) if facts else np.zeros(0, dtype=np.int64)
    if not len(numbers):
        return numbers
    different, count = np.unique(numbers, return_counts=True)
    return different[count == count.max()]


def among(facts: Sequence[RankFacts], numbers: Ints) -> list[Bools]:
    """Of each rank, which of its steps have these numbers. Ranks often have the numbers of their steps in common."""
    known: dict[int, Bools] = {}
    for one in facts:
        if id(one.steps.number) not in known:
            known[id(one.steps.number)] = np.isin(one.steps.number, numbers)
    return [known[id(rank.steps.number)] for rank in facts]


def steps_with_room(one: RankFacts, calls: int, numbers: Ints) -> Ints | None:
    """Of the steps with these numbers those that leave the job within `MOST_CALLS`, at least one; None: all do.

    They are those whose length on this rank is next to the median.

    Args:
        one: a rank of the job.
        calls: of all ranks in all steps of ``one``.
        numbers: of the steps to choose from, rising.
    """
    if calls <= MOST_CALLS or len(numbers) < 2:
        return None
    count = max(1, len(numbers) * MOST_CALLS // calls)
    lengths = one.steps.end_ns - one.steps.start_ns
    middle = np.argsort(np.abs(lengths - np.median(lengths)), kind="stable")
    ordered = one.steps.number[middle]
    result: Ints = np.sort(ordered[np.isin(ordered, numbers)][:count])
    return result if len(result) else numbers[:count]


def whole_steps(facts: Sequence[RankFacts], numbers: Ints) -> Ints:
    """Of the numbers of steps those in which no rank lacks calls, as recorders lose some: its sequence of calls differs
    from those of ranks with which it agrees in other steps.

    All of them where fewer than two such steps are left.
    """
    kinds: dict[int, set[bytes]] = {number: set() for number in numbers.tolist()}
    for rank in facts:
        order = np.argsort(rank.collectives.iteration, kind="stable")
        operation = rank.collectives.operation[order].astype(np.int8)
        edges = np.searchsorted(rank.collectives.iteration[order], np.arange(len(rank.steps.number) + 1))
        for number, begin, end in zip(rank.steps.number.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            if number in kinds:
                kinds[number].add(operation[begin:end].tobytes())
    count = np.array([len(kinds[number]) for number in numbers.tolist()], dtype=np.int64)
    result: Ints = numbers[count == count.min(initial=len(facts))]
    return result if len(result) > 1 else numbers


STALLED = 1.5
"""A step over the median of the others, from which it is a stall. Ours: the steps of even jobs differ by a third."""
_EXPLAINED = 0.5
"""Part of the additional time that garbage collection or the data loader must take to be its cause."""


LEAST_WITH_STALL = 3


@dataclass(frozen=True, slots=True)
class Stall:
    """A step that took much longer than the others on all ranks, by its number; ``usual_ns`` is their median."""

    number: int
    length_ns: float
    usual_ns: float


def stalled_step(facts: Sequence[RankFacts], numbers: Ints) -> Stall | None:
    """The one step that took much longer than the others on all ranks.

    Such a step (a device that is paused, a first call of a library) is not like the job's usual ones, and next to two
    others it would be half of the steps that count. None where there is none, it is the first, which replays do not
    count, or a rank's garbage collection or data loader shows why, which comes back.
    """
    if len(numbers) < LEAST_WITH_STALL:
        return None
    facts = [rank for rank in facts if np.isin(numbers, rank.steps.number).all()]
    if not facts:
        return None
    chosen = among(facts, numbers)
    lengths = np.stack(
        [(rank.steps.end_ns - rank.steps.start_ns)[own] for rank, own in zip(facts, chosen, strict=True)]
    )
    length = np.median(lengths, axis=0)
    at = int(length.argmax())
    usual = float(np.median(np.delete(length, at)))
    rest = float(np.delete(length, at).max())
    if not at or length[at] <= STALLED * usual or rest > STALLED * usual:
        return None
    for name in ("garbage_ns", "input_ns"):
        columns = [getattr(rank.steps, name)[own] for rank, own in zip(facts, chosen, strict=True)]
        if max(float(column[at]) for column in columns) >= _EXPLAINED * (length[at] - usual):
            return None
    return Stall(int(numbers[at]), float(length[at]), usual)


def with_calls_of(one: RankFacts, numbers: Ints) -> RankFacts:
    """The rank with the calls of the steps with these numbers."""
    rows = np.flatnonzero(np.isin(one.steps.number, numbers)[one.collectives.iteration])
    if len(rows) == len(one.collectives):
        return one
    return replace(one, collectives=take_rows(one.collectives, rows))
