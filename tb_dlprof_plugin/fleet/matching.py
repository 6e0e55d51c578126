"""Which calls of several ranks are the same collective: by members and sequence number, else by order of equal calls.

Without sequence numbers the k-th call of a group, operation and size in a step is taken for the same on all members;
a group whose members made different calls in a step is matched only as far as they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.job import Matching
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Operation, RankFacts
from tb_dlprof_plugin.model.profile import Ints


@dataclass(frozen=True, slots=True)
class Matched:
    """Calls that at least two recorded ranks made together.

    Attributes:
        first: where the members of collective k begin in ``rank_index`` and ``row``; one entry more than collectives.
        rank_index: of a member: index into the facts.
        row: of a member: index into its `Collectives`.
        iteration: per collective: number of the step.
        operation: per collective: `Operation`; of a send and its receive `Operation.SEND`.
        matching: how many were found.
    """

    first: Ints
    rank_index: Ints
    row: Ints
    iteration: Ints
    operation: Ints
    matching: Matching

    def __len__(self) -> int:
        return len(self.iteration)


def match(facts: Sequence[RankFacts]) -> Matched:
    """The collectives that several of these ranks made together, in order of group and step."""
    parts: list[tuple[Ints, Ints, Ints, Ints]] = []
    sequenced = bool(facts)
    for index, one in enumerate(facts):
        calls = one.collectives
        if not len(calls):
            continue
        point_to_point = (calls.operation == Operation.SEND) | (calls.operation == Operation.RECEIVE)
        sequenced &= bool((calls.sequence[~point_to_point] != UNKNOWN).all())
        parts.append((np.full(len(calls), index), np.arange(len(calls)), *_keys(one)))
    if not parts:
        return _none()
    rank, row, number, key = (np.concatenate(column) for column in zip(*parts, strict=True))
    # The occurrence of a key on its rank: rows are in order of their start.
    order = np.lexsort((row, rank, key))
    same = np.flatnonzero(np.r_[True, (key[order][1:] != key[order][:-1]) | (rank[order][1:] != rank[order][:-1])])
    occurrence = np.empty(len(key), dtype=np.int64)
    occurrence[order] = np.arange(len(key)) - np.repeat(same, np.diff(np.r_[same, len(key)]))
    order = np.lexsort((rank, occurrence, key, number))
    begin = np.flatnonzero(
        np.r_[True, (key[order][1:] != key[order][:-1]) | (occurrence[order][1:] != occurrence[order][:-1])]
    )
    size = np.diff(np.r_[begin, len(key)])
    several = size > 1
    keep = order[np.repeat(several, size)]
    first = np.r_[0, np.cumsum(size[several])]
    head = keep[first[:-1]]
    operation = np.array([facts[r].collectives.operation[w] for r, w in zip(rank[head], row[head], strict=True)])
    operation[operation == Operation.RECEIVE] = Operation.SEND
    total = int((~_alone(facts, rank, row)).sum())
    return Matched(
        first,
        rank[keep],
        row[keep],
        number[head],
        operation.astype(np.int64),
        Matching(
            total,
            len(keep),
            100 * len(keep) / total if total else None,
            0,
            "sequence" if sequenced else "order",
        ),
    )


def _keys(one: RankFacts) -> tuple[Ints, Ints]:
    """Per call: the number of its step, and a hash of step, members, operation and size."""
    calls = one.collectives
    number = one.steps.number[calls.iteration]
    members = np.array([hash(group.members or group.name) for group in one.groups] or [0], dtype=np.int64)
    of_group = np.where(calls.group >= 0, members[np.maximum(calls.group, 0)], hash(""))
    operation = calls.operation.copy()
    receive = operation == Operation.RECEIVE
    point_to_point = receive | (operation == Operation.SEND)
    source = np.where(receive, calls.peer, one.rank)
    target = np.where(receive, one.rank, calls.peer)
    operation[receive] = Operation.SEND
    size = np.where(point_to_point, source * 1_000_003 + target, calls.bytes)
    size = np.where((calls.sequence != UNKNOWN) & ~point_to_point, calls.sequence, size)
    key = of_group
    for column in (number, operation, size):
        key = _mix(key, column)
    return number, key


def _mix(key: Ints, column: Ints) -> Ints:
    with np.errstate(over="ignore"):
        mixed = (key.astype(np.uint64) ^ (column.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))) * np.uint64(
            0xBF58476D1CE4E5B9
        )
    mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.int64)


def _alone(facts: Sequence[RankFacts], rank: Ints, row: Ints) -> Ints:
    """Calls of groups that have one member: nothing to match."""
    result = np.zeros(len(rank), dtype=np.bool_)
    for index, one in enumerate(facts):
        single = np.array([len(group.members) == 1 for group in one.groups] or [False])
        here = rank == index
        group = one.collectives.group[row[here]]
        result[here] = (group >= 0) & single[np.maximum(group, 0)]
    return result


def _none() -> Matched:
    empty = np.zeros(0, dtype=np.int64)
    return Matched(np.zeros(1, dtype=np.int64), empty, empty, empty, empty, Matching(0, 0, None, 0, "order"))
