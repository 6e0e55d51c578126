"""Which calls of several ranks are the same collective: by group members and sequence number, else by order.

Names of groups differ between ranks, their members do not. Where the version records no sequence numbers, calls of a
group are matched by their order within a step, aligned by what they do and validated: synchronising collectives end
together, so that ends of a right match differ by one constant. Sends match receives by their order between two ranks in
a step.

Contradictions have the names of the analyzer of PyTorch's flight recorder
(torch/distributed/flight_recorder/components/types.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from tb_dlprof_plugin.fleet.job import MatchedShare
from tb_dlprof_plugin.fleet.rank_facts import SYNCHRONISING, UNKNOWN, Operation, RankFacts
from tb_dlprof_plugin.model.grouping import dense, grouped_median, numbered
from tb_dlprof_plugin.model.lookup import joined, take_or, take_rows
from tb_dlprof_plugin.model.profile import Bools, Ints

TYPE_MISMATCH = "COLLECTIVE_TYPE_MISMATCH"
SIZE_MISMATCH = "SIZE_OR_SYNTAX_MISMATCH"
DTYPE_MISMATCH = "COLLECTIVE_DTYPE_MISMATCH"
_UNEVEN = (Operation.ALL_TO_ALL, Operation.GATHER, Operation.SCATTER, Operation.UNKNOWN, Operation.BARRIER)
"""Operations whose sizes may differ between the members."""
_SLOWEST_DRIFT = 1000
"""Clocks run apart by less than one part in so many: adjtime corrects one by at most 500 parts in a million."""
_END_TOGETHER_NS = 20_000
"""Ends of one collective differ by up to 7 us on one host (V100), and clocks drift while the calls last. Where calls
follow each other faster, a quarter of the time between them."""
_MOST_COMPARED = 400
"""Calls of a rank and step that are compared with all of another to find how far its clock is ahead."""


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
    matching: MatchedShare

    def __len__(self) -> int:
        return len(self.iteration)


@dataclass(slots=True)
class _Calls:
    """Calls of all ranks, one under the other; ``collective`` is the number of the collective, -1 while not matched."""

    rank: Ints
    row: Ints
    group: Ints
    number: Ints
    operation: Ints
    bytes: Ints
    dtype: Ints
    sequence: Ints
    peer: Ints
    start: Ints
    end: Ints
    on_gpu: Bools

    def __len__(self) -> int:
        return len(self.rank)


def match(facts: Sequence[RankFacts]) -> Matched:
    """The collectives that several of these ranks made together, in order of step and start.

    Args:
        facts: of one job, each rank once.
    """
    calls, recorded = _all_calls(facts)
    if not len(calls):
        return _none()
    point_to_point = np.isin(calls.operation, (Operation.SEND, Operation.RECEIVE))
    sequence = _filled(calls)
    by_sequence = _with_sequences(calls, sequence, recorded) & ~point_to_point
    found = np.full(len(calls), -1, dtype=np.int64)
    _take(found, *_by_sequence(take_rows(calls, by_sequence), sequence[by_sequence], np.flatnonzero(by_sequence)))
    ordered = ~by_sequence & ~point_to_point
    _take(found, *_by_order(take_rows(calls, ordered), np.flatnonzero(ordered)))
    found[ordered & _impossible(calls, found)] = -1
    ranks = np.array([rank.rank for rank in facts], dtype=np.int64)
    _take(found, *_sends(take_rows(calls, point_to_point), np.flatnonzero(point_to_point), ranks))
    contradictions = _contradictions(calls, found)
    for collective in contradictions:
        found[found == collective] = -1
    how = {"sequence"} if by_sequence.any() else set()
    how |= {"order"} if ordered.any() or not by_sequence.any() else set()
    return _matched(calls, found, recorded, Counter(contradictions.values()), " and ".join(sorted(how, reverse=True)))


def _all_calls(facts: Sequence[RankFacts]) -> tuple[_Calls, list[set[int]]]:
    """The calls of groups with two recorded members, and the recorded ranks (indices) of each group."""
    ids: dict[Hashable, int] = {}
    members: list[set[int]] = []
    dtypes: dict[str, int] = {}
    index_of = {one.rank: index for index, one in enumerate(facts)}
    parts: list[_Calls] = []
    for index, one in enumerate(facts):
        own = one.collectives
        group = np.zeros(len(one.groups) + 1, dtype=np.int64)
        # What has no group is the last: index -1.
        for place, key in enumerate([*(g.members or (g.name, g.description) for g in one.groups), ()]):
            if place == len(one.groups) and not (own.group == UNKNOWN).any():
                continue
            number = ids.setdefault(key, len(ids))
            if number == len(members):
                named = key if place < len(one.groups) and one.groups[place].members else ()
                members.append({index_of[rank] for rank in named if rank in index_of})
            members[number].add(index)
            group[place] = number
        dtype = np.array([dtypes.setdefault(text, len(dtypes)) for text in one.strings] or [0], dtype=np.int64)
        parts.append(
            _Calls(
                rank=np.full(len(own), index, dtype=np.int64),
                row=np.arange(len(own), dtype=np.int64),
                group=group[own.group],
                number=one.steps.number[own.iteration],
                operation=own.operation,
                bytes=own.bytes,
                dtype=take_or(dtype, own.dtype, UNKNOWN),
                sequence=own.sequence,
                peer=own.peer,
                start=own.start_ns,
                end=own.start_ns + own.duration_ns,
                on_gpu=np.full(len(own), one.device != UNKNOWN, dtype=np.bool_),
            )
        )
    together = joined(parts, _Calls)
    several = np.array([len(ranks) > 1 for ranks in members] or [False], dtype=np.bool_)
    return take_rows(together, several[together.group]), members


def _filled(calls: _Calls) -> Ints:
    """The sequence numbers, with those that single events lack: between two known ones there is room for just them."""
    result = calls.sequence.copy()
    order = np.lexsort((calls.start, calls.rank, calls.group))
    missing = np.flatnonzero(result[order] == UNKNOWN)
    if not len(missing) or len(missing) == len(order):
        return result
    group, rank, sequence = calls.group[order], calls.rank[order], result[order]
    for run in np.split(missing, np.flatnonzero(np.diff(missing) > 1) + 1):
        before, after = int(run[0]) - 1, int(run[-1]) + 1
        same = before >= 0 and after < len(order) and (group[before], rank[before]) == (group[after], rank[after])
        if same and sequence[after] - sequence[before] == len(run) + 1:
            result[order[run]] = sequence[before] + 1 + np.arange(len(run))
    return result


def _with_sequences(calls: _Calls, sequence: Ints, recorded: list[set[int]]) -> Bools:
    """Calls of groups in which all calls but sends and receives have a number."""
    lacks = (sequence == UNKNOWN) & ~np.isin(calls.operation, (Operation.SEND, Operation.RECEIVE))
    without = np.zeros(len(recorded), dtype=np.bool_)
    without[calls.group[lacks]] = True
    return ~without[calls.group]


def _take(found: Ints, rows: Ints, collective: Ints) -> None:
    """Notes the collectives of rows under numbers that are free."""
    known = collective >= 0
    found[rows[known]] = collective[known] + found.max(initial=-1) + 1


def _by_sequence(calls: _Calls, sequence: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Coalesced calls share a number: they follow each other in the same order on all ranks."""
    if not len(calls):
        return rows, rows
    occurrence = _occurrence(calls.start, calls.rank, sequence, calls.group)
    return rows, numbered(calls.group, sequence, occurrence)


def _by_order(calls: _Calls, rows: Ints) -> tuple[Ints, Ints]:
    """Within a group and step; where the ranks' calls differ in what they do, the longest common runs."""
    if not len(calls):
        return rows, rows
    block = numbered(calls.group, calls.number)
    position = _occurrence(calls.start, calls.rank, block)
    signature = _signature(calls)
    slot = numbered(block, position)
    collective = slot.copy()
    uneven = np.zeros(int(block.max()) + 1, dtype=np.bool_)
    # A block is even where all its ranks made equal calls, in number and kind.
    order = np.lexsort((calls.rank, slot))
    other = (slot[order][1:] == slot[order][:-1]) & (signature[order][1:] != signature[order][:-1])
    uneven[block[order][1:][other]] = True
    pairs, _ = dense(block * (int(calls.rank.max()) + 1) + calls.rank)
    block_of_pair = np.zeros(int(pairs.max()) + 1, dtype=np.int64)
    block_of_pair[pairs] = block
    ranks_of_block = np.bincount(block_of_pair)
    longest = np.zeros(len(uneven), dtype=np.int64)
    np.maximum.at(longest, block, position + 1)
    uneven |= np.bincount(block) != longest * ranks_of_block
    free = int(slot.max()) + 1
    by_block = np.argsort(block, kind="stable")
    bounds = np.searchsorted(block[by_block], np.arange(len(uneven) + 1))
    for index in np.flatnonzero(uneven).tolist():
        here = by_block[bounds[index] : bounds[index + 1]]
        aligned = _aligned(take_rows(calls, here), signature[here])
        collective[here] = np.where(aligned >= 0, aligned + free, -1)
        free += len(here)
    return rows, collective


def _signature(calls: _Calls) -> Ints:
    """What a call does: operation and, where all members give the same, bytes."""
    size = np.where(np.isin(calls.operation, _UNEVEN), 0, calls.bytes)
    return numbered(calls.operation, size)


def _aligned(calls: _Calls, signature: Ints) -> Ints:
    """The calls of a group and step, numbered by those of the rank that has most; -1 for what it does not have."""
    result = np.full(len(calls), -1, dtype=np.int64)
    ranks, counts = np.unique(calls.rank, return_counts=True)
    of_rank = {
        rank: rows[np.argsort(calls.start[rows], kind="stable")]
        for rank in ranks.tolist()
        if len(rows := np.flatnonzero(calls.rank == rank))
    }
    reference = of_rank[int(ranks[np.argmax(counts)])]
    result[reference] = np.arange(len(reference))
    for rows in of_rank.values():
        if rows is not reference:
            ours, theirs = _pairs(calls, signature, reference, rows)
            result[theirs] = result[ours]
    return result


def _pairs(calls: _Calls, signature: Ints, reference: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Rows of both ranks that are the same collective: calls that end together, else equal ones in their order."""
    ahead = _ahead(calls, signature, reference, rows) if calls.on_gpu[rows].all() else None
    if ahead is None:
        return _common(signature, reference, rows)
    return _nearest(calls, signature, reference, rows, ahead)


def _ahead(calls: _Calls, signature: Ints, reference: Ints, rows: Ints) -> int | None:
    """How far the second rank's clock is ahead: by what the ends of most equal synchronising calls differ.

    None where fewer than half agree. Of equally frequent differences the smallest counts.
    """
    one, two = (own[np.isin(calls.operation[own], list(SYNCHRONISING))][:_MOST_COMPARED] for own in (reference, rows))
    equal = signature[one][:, None] == signature[two][None, :]
    difference = np.sort((calls.end[two][None, :] - calls.end[one][:, None])[equal])
    if not len(difference):
        return None
    apart = np.diff(np.sort(calls.end[one]))
    near = min(_END_TOGETHER_NS, int(np.median(apart)) // 4) if len(apart) else _END_TOGETHER_NS
    together = np.searchsorted(difference, difference + near, side="right") - np.arange(len(difference))
    most = np.flatnonzero(together == together.max())
    best = int(most[np.argmin(np.abs(difference[most]))])
    count = int(together[best])
    if count < 2 or 2 * count < min(len(one), len(two)):
        return None
    return int(difference[best + (count - 1) // 2])


def _nearest(calls: _Calls, signature: Ints, reference: Ints, rows: Ints, ahead: int) -> tuple[Ints, Ints]:
    """Rows of equal calls that end closest to each other, where the second clock is ``ahead``: a longest run of equal
    calls is off by a period where a rank lacks calls between others."""
    ours: list[Ints] = [reference[:0]]
    theirs: list[Ints] = [rows[:0]]
    for kind in np.unique(signature[rows]).tolist():
        one, two = reference[signature[reference] == kind], rows[signature[rows] == kind]
        if not len(one):
            continue
        end_one, end_two = calls.end[one], calls.end[two] - ahead
        forth, back = _closest(end_one, end_two), _closest(end_two, end_one)
        mutual = back[forth] == np.arange(len(two))
        length = np.maximum((calls.end - calls.start)[one[forth]], (calls.end - calls.start)[two])
        mutual &= np.abs(end_one[forth] - end_two) < length
        ours.append(one[forth[mutual]])
        theirs.append(two[mutual])
    return np.concatenate(ours), np.concatenate(theirs)


def _closest(among: Ints, wanted: Ints) -> Ints:
    """For each wanted number the index of the closest, the first of equally close ones; both may be in any order."""
    order = np.argsort(among, kind="stable")
    right = np.clip(np.searchsorted(among[order], wanted), 0, len(among) - 1)
    left = np.maximum(right - 1, 0)
    nearer = np.abs(among[order[left]] - wanted) <= np.abs(among[order[right]] - wanted)
    return order[np.where(nearer, left, right)]


def _common(signature: Ints, reference: Ints, rows: Ints) -> tuple[Ints, Ints]:
    blocks = SequenceMatcher(None, signature[reference].tolist(), signature[rows].tolist(), autojunk=False)
    ours: list[Ints] = [reference[:0]]
    theirs: list[Ints] = [rows[:0]]
    for at, other, size in blocks.get_matching_blocks():
        ours.append(reference[at : at + size])
        theirs.append(rows[other : other + size])
    return np.concatenate(ours), np.concatenate(theirs)


def _impossible(calls: _Calls, found: Ints) -> Bools:
    """Which calls of synchronising collectives do not overlap those of the first member in time: they are not the same
    collective. Clocks are taken to agree for most calls of the two ranks."""
    result = np.zeros(len(calls), dtype=np.bool_)
    # gloo's ranges end when a thread of its own comes to it.
    rows = np.flatnonzero((found >= 0) & calls.on_gpu & np.isin(calls.operation, list(SYNCHRONISING)))
    if not len(rows):
        return result
    rows = rows[np.lexsort((calls.rank[rows], found[rows]))]
    begin = np.flatnonzero(np.diff(found[rows], prepend=-1))
    head = np.repeat(rows[begin], np.diff(np.append(begin, len(rows))))
    later = calls.end[rows] - calls.end[head]
    drift = np.abs(calls.end[rows] - int(np.median(calls.end[rows]))) // _SLOWEST_DRIFT
    pair = numbered(calls.rank[head], calls.rank[rows])
    shift = later - np.rint(grouped_median(pair, later, int(pair.max()) + 1)[pair]).astype(np.int64)
    length = calls.end - calls.start
    apart = (shift >= length[rows] + drift) | (-shift >= length[head] + drift)
    result[rows[apart]] = True
    return result


def _sends(calls: _Calls, rows: Ints, ranks: Ints) -> tuple[Ints, Ints]:
    """The k-th send from one rank to another in a step and the k-th receive of it."""
    if not len(calls):
        return rows, rows
    own = ranks[calls.rank]
    sends = calls.operation == Operation.SEND
    source, target = np.where(sends, own, calls.peer), np.where(sends, calls.peer, own)
    occurrence = _occurrence(calls.start, calls.operation, source, target, calls.number)
    result = numbered(source, target, calls.number, occurrence)
    return rows, np.where(calls.peer == UNKNOWN, -1, result)


def _contradictions(calls: _Calls, found: Ints) -> dict[int, str]:
    """What members of one collective disagree about, by collective, in the words of the flight recorder."""
    result: dict[int, str] = {}
    matched = np.flatnonzero(found >= 0)
    order = matched[np.argsort(found[matched], kind="stable")]
    same = found[order][1:] == found[order][:-1]
    operation = np.where(calls.operation == Operation.RECEIVE, Operation.SEND, calls.operation)
    sizes = ~np.isin(calls.operation, _UNEVEN)
    for word, column, known in (
        (DTYPE_MISMATCH, calls.dtype, calls.dtype != UNKNOWN),
        (SIZE_MISMATCH, calls.bytes, sizes & (calls.bytes != UNKNOWN)),
        (TYPE_MISMATCH, operation, operation != Operation.UNKNOWN),
    ):
        one, two = order[:-1], order[1:]
        differs = same & known[one] & known[two] & (column[one] != column[two])
        result |= dict.fromkeys(found[one[differs]].tolist(), word)
    return result


def _matched(calls: _Calls, found: Ints, recorded: list[set[int]], wrong: Counter[str], by: str) -> Matched:
    known = np.flatnonzero(found >= 0)
    order = known[np.lexsort((calls.rank[known], found[known]))]
    begin = np.flatnonzero(np.diff(found[order], prepend=-1))
    size = np.diff(np.append(begin, len(order)))
    alone = int((size == 1).sum()) + int((found < 0).sum()) - sum(wrong.values())
    order = order[np.repeat(size > 1, size)]
    begin = np.flatnonzero(np.diff(found[order], prepend=-1))
    size = np.diff(np.append(begin, len(order)))
    head = order[begin]
    # In order of step and start, as the first member has it.
    turn = np.lexsort((calls.start[head], calls.group[head], calls.number[head]))
    rows = np.concatenate([order[:0], *(order[begin[k] : begin[k] + size[k]] for k in turn.tolist())])
    head, size = head[turn], size[turn]
    members = np.array([len(ranks) for ranks in recorded] or [0], dtype=np.int64)[calls.group[head]]
    operation = calls.operation[head]
    point_to_point = np.isin(operation, (Operation.SEND, Operation.RECEIVE))
    complete = int((size >= np.where(point_to_point, 2, members)).sum())
    total = len(head) + max(0, alone) + sum(wrong.values())
    return Matched(
        first=np.concatenate(([0], np.cumsum(size))),
        rank_index=calls.rank[rows],
        row=calls.row[rows],
        iteration=calls.number[head],
        operation=np.where(operation == Operation.RECEIVE, Operation.SEND, operation),
        matching=MatchedShare(
            total=total,
            matched=complete,
            matched_percent=100 * complete / total if total else None,
            contradictions=sum(wrong.values()),
            by=by,
        ),
    )


def _occurrence(start: Ints, *columns: Ints) -> Ints:
    """How many rows with the same columns start before each."""
    key = numbered(*columns)
    order = np.lexsort((np.arange(len(key)), start, key))
    begin = np.flatnonzero(np.diff(key[order], prepend=-1))
    result = np.empty(len(key), dtype=np.int64)
    result[order] = np.arange(len(key)) - np.repeat(begin, np.diff(np.append(begin, len(key))))
    return result


def _none() -> Matched:
    empty = np.zeros(0, dtype=np.int64)
    return Matched(np.zeros(1, dtype=np.int64), empty, empty, empty, empty, MatchedShare())
