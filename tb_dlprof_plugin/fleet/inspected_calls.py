"""What files of NCCL Inspector add to the facts of a job's ranks: sequence numbers, bytes and process groups.

A file says neither the global rank nor the process group, and has only some of the calls. The rank is that in the
communicator of all ranks. A communicator belongs to the group of its size in which this rank has the same place. A line
belongs to the call that had ended last when it was written. Numbers of a group are taken over only where those of all
its operations are found: calls with a number are matched by it alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.fleet.nccl_inspector import InspectedCommunicator, InspectorLog
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Collectives, Group, Operation, RankFacts
from tb_dlprof_plugin.model.profile import Ints

_CLOCK_NS = 100_000
"""A call's end in the trace may be this much later than a line that was written after it: CUPTI's GPU times, converted
to those of the host, against gettimeofday."""
_AGREE = 0.9
"""Of the lines, at least so many must be of the call that had ended last, or of one close before it."""
_BEHIND = 2
"""A line may be of so many calls before the one that had ended last: NCCL's thread sees an end only when it polls."""
_OPERATIONS = len(Operation)
_BARRIER_IS = Operation.ALL_REDUCE
"""torch's process group makes a barrier of it (ProcessGroupNCCL::barrier)."""


def with_logs(facts: Sequence[RankFacts], logs: Sequence[InspectorLog]) -> tuple[list[RankFacts], int]:
    """The facts with what the files say in addition, and of how many ranks there is a file that fits.

    Args:
        facts: of one job.
        logs: of its processes, and of others in the same directory, whose lines are of other times.
    """
    by_rank = _logs_of_ranks(facts, logs)
    members = _members(by_rank)
    both = [with_log(rank, by_rank[rank.rank], members) if rank.rank in by_rank else rank for rank in facts]
    return both, len(by_rank)


def with_log(facts: RankFacts, log: InspectorLog, members: dict[str, tuple[int, ...]]) -> RankFacts:
    """The facts of one rank with what its file says in addition.

    Args:
        facts: of the rank.
        log: of its process.
        members: global ranks of communicators by name, of those of which they are known.
    """
    groups, calls = list(facts.groups), facts.collectives
    function = _function(calls)
    columns = {name: getattr(calls, name).copy() for name in ("group", "sequence", "bytes")}
    for communicator in log.communicators:
        placed = _offsets_of_groups(facts, communicator, columns["group"])
        if placed is None:
            continue
        group, offsets = placed
        if group == UNKNOWN:
            group = len(groups)
            groups.append(Group(communicator.name, "", members.get(communicator.name, ())))
            for operation in offsets:
                columns["group"][(columns["group"] == UNKNOWN) & (function == operation)] = group
        elif not groups[group].members:
            known = members.get(communicator.name, ())
            groups[group] = dataclasses.replace(groups[group], name=communicator.name, description="", members=known)
        _fill(columns, calls, group, communicator, offsets)
    return dataclasses.replace(facts, groups=tuple(groups), collectives=dataclasses.replace(calls, **columns))


def _logs_of_ranks(facts: Sequence[RankFacts], logs: Sequence[InspectorLog]) -> dict[int, InspectorLog]:
    """The file of each rank that has lines of the time of its recording; none where several have."""
    world = max((communicator.members for log in logs for communicator in log.communicators), default=0)
    sizes = {one.world_size for one in facts} - {UNKNOWN}
    world = sizes.pop() if len(sizes) == 1 else world
    of_rank: dict[int, list[InspectorLog]] = {}
    by_rank = {one.rank: one for one in facts}
    for log in logs:
        ranks = {communicator.rank for communicator in log.communicators if communicator.members == world}
        rank = ranks.pop() if len(ranks) == 1 else UNKNOWN
        if rank in by_rank and _same_time(by_rank[rank], log):
            of_rank.setdefault(rank, []).append(log)
    return {rank: own[0] for rank, own in of_rank.items() if len(own) == 1}


def _same_time(facts: RankFacts, log: InspectorLog) -> bool:
    calls = facts.collectives
    if not len(calls):
        return False
    begin = facts.base_ns + int(calls.start_ns[0])
    end = facts.base_ns + int((calls.start_ns + calls.duration_ns).max())
    ended = (communicator.ended_ns for communicator in log.communicators)
    return any(bool(((ended_ns >= begin) & (ended_ns <= end)).any()) for ended_ns in ended)


def _members(by_rank: dict[int, InspectorLog]) -> dict[str, tuple[int, ...]]:
    """Global ranks by communicator, of those of which every member has a file."""
    places: dict[str, dict[int, int]] = {}
    sizes: dict[str, int] = {}
    for rank, log in by_rank.items():
        for communicator in log.communicators:
            places.setdefault(communicator.name, {})[communicator.rank] = rank
            sizes[communicator.name] = communicator.members
    return {name: tuple(own[place] for place in sorted(own)) for name, own in places.items() if len(own) == sizes[name]}


def _function(calls: Collectives) -> Ints:
    """The collective of NCCL that each call is."""
    return np.where(calls.operation == Operation.BARRIER, int(_BARRIER_IS), calls.operation)


def _offsets_of_groups(
    facts: RankFacts, one: InspectedCommunicator, group_of_call: Ints
) -> tuple[int, dict[int, int]] | None:
    """The group of a communicator, UNKNOWN for calls without one, and by operation the number of the first call there.

    None where no group fits, or several do equally.
    """
    candidates: list[tuple[int, int, dict[int, int]]] = []
    for index in [*range(len(facts.groups)), UNKNOWN]:
        named = facts.groups[index].members if index != UNKNOWN else ()
        if named and (len(named) != one.members or facts.rank not in named or named.index(facts.rank) != one.rank):
            continue
        offsets: dict[int, int] = {}
        lines = 0
        own, function = group_of_call == index, _function(facts.collectives)
        for operation in np.unique(function[own]).tolist():
            placed = _offset(facts, np.flatnonzero(own & (function == operation)), one, operation)
            if placed is not None:
                offsets[operation], count = placed
                lines += count
        if offsets:
            candidates.append((lines, index, offsets))
    candidates.sort(key=lambda found: -found[0])
    if not candidates or (len(candidates) > 1 and candidates[0][0] == candidates[1][0]):
        return None
    return candidates[0][1], candidates[0][2]


def _offset(facts: RankFacts, rows: Ints, one: InspectedCommunicator, operation: int) -> tuple[int, int] | None:
    """The number of the first of these calls, and how many lines say so; None where the lines do not fit the calls."""
    calls = facts.collectives
    # Where calls share a kernel they end together.
    ended = np.maximum.accumulate(facts.base_ns + calls.start_ns[rows] + calls.duration_ns[rows])
    lines = np.flatnonzero(
        (one.operation == operation) & (one.ended_ns + _CLOCK_NS >= ended[0]) & (one.ended_ns <= ended[-1])
    )
    if not len(lines):
        return None
    sequence = one.sequence[lines]
    last = np.searchsorted(ended, one.ended_ns[lines] + _CLOCK_NS, side="right") - 1
    votes, counts = np.unique(sequence - last, return_counts=True)
    best: tuple[float, int] | None = None
    for offset in range(int(votes[np.argmax(counts)]), int(votes[np.argmax(counts)]) + _BEHIND + 1):
        place = sequence - offset
        fits = (place >= 0) & (place <= last) & (place >= last - _BEHIND)
        if fits.mean() < _AGREE:
            continue
        at = rows[place[fits]]
        size = calls.bytes[at]
        if ((size != UNKNOWN) & (size != one.bytes[lines][fits])).any():
            continue
        apart = float(np.median(np.abs(calls.duration_ns[at] - one.duration_ns[lines][fits])))
        # Whole microseconds: of equally good ones the first, whose calls ended last.
        if best is None or apart + 1000 < best[0]:
            best = apart, offset
    return None if best is None else (best[1], len(lines))


def _fill(
    columns: dict[str, Ints], calls: Collectives, group: int, one: InspectedCommunicator, offsets: dict[int, int]
) -> None:
    """Writes numbers and bytes of a group's calls where the recording has none."""
    own, function = columns["group"] == group, _function(calls)
    for operation, offset in offsets.items():
        rows = np.flatnonzero(own & (function == operation))
        lines = np.flatnonzero(one.operation == operation)
        place = one.sequence[lines] - offset
        there = (place >= 0) & (place < len(rows))
        size = np.full(len(rows), UNKNOWN, dtype=np.int64)
        size[place[there]] = one.bytes[lines][there]
        missing = columns["bytes"][rows] == UNKNOWN
        columns["bytes"][rows[missing]] = _of_other_steps(size, calls.iteration[rows])[missing]
    point_to_point = np.isin(calls.operation, (Operation.SEND, Operation.RECEIVE))
    numbered = own & ~point_to_point
    if (
        set(np.unique(function[numbered]).tolist()) <= offsets.keys()
        and (columns["sequence"][numbered] == UNKNOWN).all()
    ):
        for operation, offset in offsets.items():
            rows = np.flatnonzero(own & (function == operation))
            # A number of its own for each call of the group, whatever it does.
            columns["sequence"][rows] = (offset + np.arange(len(rows))) * _OPERATIONS + operation


def _of_other_steps(size: Ints, iteration: Ints) -> Ints:
    """Bytes of calls, and of those without any what the calls at the same place of other steps have, if it is one."""
    first = np.searchsorted(iteration, iteration)
    place = np.arange(len(iteration)) - first
    least = np.full(int(place.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    most = np.full(len(least), UNKNOWN, dtype=np.int64)
    known = size != UNKNOWN
    np.minimum.at(least, place[known], size[known])
    np.maximum.at(most, place, size)
    alike = len(np.unique(np.bincount(iteration)[np.unique(iteration)])) == 1
    return np.where(known | ~np.where(alike, least == most, False)[place], size, most[place])
