"""The calls of all ranks in one table, each with its place in the rank's own time, which waiting does not move.

A rank's own time advances while its GPU does anything but exposed communication: kernels, copies, and idling for the
host. A call becomes ready at a moment of own time, and from another one on the rank waits for it to end. Replaying the
job with other own times or transfers then needs no clock that ranks share.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.answers.call_paths import CallPaths, call_paths, own_time_paths, steps_with_paths
from tb_dlprof_plugin.fleet.matching import Matched
from tb_dlprof_plugin.fleet.rank_facts import SYNCHRONISING, Operation, RankFacts
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints

POINT_TO_POINT = (Operation.SEND, Operation.RECEIVE)
FROM_ROOT = (Operation.BROADCAST, Operation.SCATTER)
"""The root sends, and waits for no other member."""
_ROOT = 1.5
"""Time in calls of `FROM_ROOT` over that of the member with the least of it, up to which a member may be the root: the
others wait for it."""
QUEUED_NS = 5_000
"""A call that starts this soon after the end of the one before was ready earlier: 99 % of the gaps between kernels that
are queued on one stream are shorter."""


@dataclass(frozen=True, slots=True)
class JobCalls:
    """Calls of the chosen steps, in order of rank and start. Times in ns.

    Attributes:
        first: where the calls of a rank begin; one entry more than ranks.
        rank: index into the facts. row: index into that rank's `Collectives`. step: index into ``numbers``.
        numbers: of the chosen steps.
        collective: calls with the same number are one collective; every other call has a number of its own.
        coupled: the members of the collective end together, or wait for its root.
        leads: whether the other members wait for this one to start: all, of a broadcast the root.
        operation: `Operation`. bytes: as `Collectives.bytes`.
        duration, exposed: exposed parts of calls that overlap each other count once.
        transfer: what the collective takes when all have come: the shortest duration of its members.
        waiting: the exposed part that is no transfer.
        bubble: whether waiting in it is due to the pipeline's schedule: sends, receives, and collectives across stages.
        blocks: whether the rank waits for its end; calls that overlap may all be waited for.
        ready, block: own time when the call may start, and from when on the rank waits for its end.
        gap, idle: own time since the call before was ready, and the part of it in which the GPU idled.
        tail: of each rank, own time after its last call was ready.
        length: of each rank, the sum of its chosen steps. first_length: of the first of them.
        stream: small numbers for the streams of communication.
        stop: when the call ended, on the rank's own clock without the steps that are not chosen.
        lead: from the launch of the call to its start.
        paths: of host and GPU. Where launches are not recorded those of a rank's first call hold the time after its
            last one, so that the steps may follow each other without end.
    """

    first: Ints
    rank: Ints
    row: Ints
    step: Ints
    numbers: Ints
    collective: Ints
    coupled: Bools
    leads: Bools
    operation: Ints
    bytes: Ints
    duration: Ints
    exposed: Ints
    transfer: Ints
    waiting: Ints
    bubble: Bools
    blocks: Bools
    ready: Ints
    block: Ints
    gap: Ints
    idle: Ints
    stream: Ints
    tail: Ints
    length: Ints
    first_length: Ints
    stop: Ints
    lead: Ints
    paths: CallPaths

    @property
    def ranks(self) -> int:
        return len(self.tail)

    @property
    def steps(self) -> int:
        return len(self.numbers)

    @property
    def counted_steps(self) -> int:
        """Steps that replays count: all but the first one, in which hosts have no path before their first launch."""
        return max(self.steps - self.paths.launches, 1)

    @property
    def counted(self) -> Floats:
        """Of each call 1 if its step counts, else 0."""
        return np.where(self.step >= self.paths.launches, 1.0, 0.0)

    def of_rank(self, index: int) -> slice:
        """The rows of a rank."""
        return slice(int(self.first[index]), int(self.first[index + 1]))

    def per_rank(self, column: Ints | Floats) -> Floats:
        """Sums of a column by rank."""
        return np.bincount(self.rank, weights=column, minlength=self.ranks).astype(np.float64)


def stage_of(rank: RankFacts) -> int:
    """Place of a rank in the pipeline, 0 without one."""
    return dict(rank.mesh).get("pp", 0)


def stages_exchange(operation: Ints) -> bool:
    """Whether a call may be a send or receive: where a mesh has stages that exchange nothing, there is no schedule for
    which they wait."""
    return bool(np.isin(operation, (*POINT_TO_POINT, Operation.UNKNOWN)).any())


def next_to_point_to_point(calls: JobCalls) -> Bools:
    """Per call whether it or the one before it on its rank is a send or receive: between is a stage's work."""
    own = np.isin(calls.operation, POINT_TO_POINT)
    before = np.r_[False, own[:-1]]
    before[calls.first[:-1][np.diff(calls.first) > 0]] = False
    return own | before


def calls_of(facts: Sequence[RankFacts], matched: Matched, numbers: Ints) -> JobCalls:
    """The calls of the steps with these numbers (rising). A rank that did not record one of them has fewer calls."""
    own, columns = _of_ranks(facts, numbers)
    count = np.array([len(each["row"]) for each in own])
    first = np.r_[0, np.cumsum(count)]
    rank = np.repeat(np.arange(len(own)), count)
    collective, coupled = _collectives(facts, matched, numbers, rank, columns)
    duration, operation = columns["duration"], columns["operation"]
    transfer = _transfer(collective, coupled, duration, operation, columns["bytes"])
    of_call = transfer[collective] if len(transfer) else duration
    waiting = np.maximum(columns["exposed"] - of_call, 0)
    # A reduce, say, does not wait for its members: its duration is its own.
    waits = coupled | np.isin(operation, POINT_TO_POINT)
    paths = call_paths(facts, [each["row"] for each in own])
    if paths is None:
        ready = _ready(first, columns, collective, coupled)
    else:
        ready = np.maximum(columns["ready"] - paths.behind.astype(np.int64), 0)
        for begin, end in itertools.pairwise(first.tolist()):
            ready[begin:end] = np.maximum.accumulate(ready[begin:end])
    gap = np.diff(ready, prepend=0)
    heads, lasts = first[:-1][count > 0], first[1:][count > 0] - 1
    gap[heads] = ready[heads]
    idle = np.minimum(columns["idle"], gap)
    whole = {name: np.array([int(each[name][0]) for each in own]) for name in _PER_RANK}
    tail = whole["own"]
    tail[count > 0] -= ready[lasts]
    ends = np.isin((0, len(numbers) - 1), columns["step"]).all()
    if paths is None or not ends or len(steps_with_paths(facts, numbers)) < max(len(numbers), 2):
        behind = np.zeros((2, len(rank)), dtype=np.int64)
        behind[:, heads] = tail[count > 0], np.minimum(whole["tail_idle"], tail)[count > 0]
        paths = own_time_paths(rank, gap + behind[0], idle + behind[1])
    return JobCalls(
        first=first,
        rank=rank,
        row=columns["row"],
        step=columns["step"],
        numbers=numbers,
        collective=collective,
        coupled=coupled,
        leads=_leads(collective, rank, operation, duration),
        operation=operation,
        bytes=columns["bytes"],
        duration=duration,
        exposed=columns["exposed"],
        transfer=np.where(waits, of_call, duration),
        waiting=np.where(waits, waiting, 0),
        bubble=waits & (np.isin(operation, POINT_TO_POINT) | _across_stages(facts, collective, rank, operation)),
        blocks=columns["blocks"] > 0,
        ready=ready,
        block=columns["block"],
        gap=gap,
        idle=idle,
        stream=columns["stream"],
        tail=tail,
        length=whole["length"],
        first_length=whole["first_length"],
        stop=columns["stop"],
        lead=columns["lead"],
        paths=paths,
    )


_PER_RANK = frozenset({"own", "tail_idle", "length", "first_length"})


def _of_ranks(facts: Sequence[RankFacts], numbers: Ints) -> tuple[list[dict[str, Ints]], dict[str, Ints]]:
    """Of each rank its figures and the rows of its calls; the columns of all ranks, which are made once."""
    own: list[dict[str, Ints]] = []
    columns: dict[str, Ints] = {}
    done, room = 0, sum(len(rank.collectives) for rank in facts)
    for rank in facts:
        each = _of_rank(rank, numbers)
        stop = done + len(each["row"])
        for name in each.keys() - _PER_RANK:
            if not own:
                columns[name] = np.empty(room, dtype=np.int64)
            columns[name][done:stop] = each[name]
        own.append({name: each[name] for name in _PER_RANK} | {"row": columns["row"][done:stop]})
        done = stop
    return own, {name: column[:done] for name, column in columns.items()}


def _of_rank(rank: RankFacts, numbers: Ints) -> dict[str, Ints]:
    calls, steps = rank.collectives, rank.steps
    place = np.searchsorted(numbers, steps.number)
    place[np.append(numbers, -2)[place] != steps.number] = -1
    rows = np.flatnonzero(place[calls.iteration] >= 0)
    iteration = calls.iteration[rows]
    chosen = np.flatnonzero(place >= 0)
    length = steps.end_ns - steps.start_ns
    # Steps that were not recorded, or not chosen, between two chosen ones take no time here.
    begin = np.zeros(len(steps.number), dtype=np.int64)
    begin[chosen] = np.cumsum(length[chosen]) - length[chosen]
    start = calls.start_ns[rows] - steps.start_ns[iteration] + begin[iteration]
    duration = calls.duration_ns[rows]
    stop = start + duration
    before = np.maximum.accumulate(_after(0, stop))[:-1]
    exposed = np.maximum(calls.exposed_ns[rows], 0)
    exposed = np.minimum(exposed, np.maximum(stop - np.maximum(start, before), 0))
    until = _after(0, np.cumsum(exposed))
    # What runs still when this one starts is exposed at its end, as far as it is.
    running = np.minimum(np.maximum(before - start, 0), _after(0, exposed)[:-1])
    ready = np.maximum.accumulate(np.maximum(start - until[:-1] + running, 0)) if len(rows) else start
    block = np.maximum(ready, stop - until[1:])
    total = int(length[chosen].sum())
    own = max(total - int(until[-1]), int(ready[-1]) if len(ready) else 0)
    idle = np.maximum(calls.idle_ns[rows], 0)
    in_rows = np.bincount(iteration, weights=idle, minlength=len(begin)).astype(np.int64)
    rest = np.maximum(steps.idle_ns - in_rows, 0)
    tail_idle = 0
    heads = np.searchsorted(iteration, np.arange(len(begin)))
    for step, following in itertools.pairwise([*chosen.tolist(), -1]):
        at = int(heads[following]) if following >= 0 else len(rows)
        if at < len(rows) and iteration[at] == following:
            idle[at] += rest[step]
        else:
            tail_idle += int(rest[step])
    return {
        "row": rows,
        "step": place[iteration],
        "operation": calls.operation[rows],
        "bytes": calls.bytes[rows],
        "duration": duration,
        "exposed": exposed,
        "blocks": (calls.exposed_ns[rows] > 0).astype(np.int64),
        "stop": stop,
        "lead": calls.start_ns[rows] - calls.launched_ns[rows],
        "ready": ready,
        "block": block,
        "idle": idle,
        "begin": begin[iteration] - until[heads[iteration]],
        "queued": (start - before < QUEUED_NS).astype(np.int64),
        "stream": _numbered_streams(calls.stream[rows]),
        "own": np.array([own]),
        "tail_idle": np.array([min(tail_idle, own - (int(ready[-1]) if len(ready) else 0))]),
        "length": np.array([total]),
        "first_length": length[chosen[:1]] if len(chosen) else np.zeros(1, dtype=np.int64),
    }


def _after(first: int, column: Ints) -> Ints:
    result = np.empty(len(column) + 1, dtype=np.int64)
    result[0], result[1:] = first, column
    return result


def _numbered_streams(stream: Ints) -> Ints:
    if not len(stream) or (stream == stream[0]).all():
        return np.zeros(len(stream), dtype=np.int64)
    return np.unique(stream, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _collectives(
    facts: Sequence[RankFacts], matched: Matched, numbers: Ints, rank: Ints, columns: dict[str, Ints]
) -> tuple[Ints, Bools]:
    """Per call the number of its collective, without gaps, and whether its members end together."""
    chosen = np.isin(matched.iteration, numbers)
    size = np.diff(matched.first)
    slots = np.repeat(chosen, size)
    number = np.repeat(np.cumsum(chosen) - 1, size)[slots]
    # From (rank, row of its facts) to the row of this table: the chosen rows of a rank are rising.
    lookup_first = np.r_[0, np.cumsum([len(rank_facts.collectives) for rank_facts in facts])]
    lookup = np.full(int(lookup_first[-1]), -1, dtype=np.int64)
    lookup[lookup_first[rank] + columns["row"]] = np.arange(len(rank))
    at = lookup[lookup_first[matched.rank_index[slots]] + matched.row[slots]]
    number, at = number[at >= 0], at[at >= 0]
    collective = np.full(len(rank), -1, dtype=np.int64)
    collective[at] = number
    count = int(chosen.sum())
    alone = np.flatnonzero(collective < 0)
    collective[alone] = count + np.arange(len(alone))
    kinds = np.isin(columns["operation"], [*map(int, (*SYNCHRONISING, *POINT_TO_POINT, *FROM_ROOT))])
    coupled = kinds & (np.bincount(collective, minlength=count + len(alone))[collective] > 1)
    # Of a reduce only the root waits for the others, and nothing says which it is: each member is a call of its own.
    loose = np.flatnonzero(~coupled & (collective < count))
    collective[loose] = count + len(alone) + np.arange(len(loose))
    used = np.zeros(count + len(alone) + len(loose), dtype=np.int64)
    used[collective] = 1
    return (np.cumsum(used) - 1)[collective], coupled


def _leads(collective: Ints, rank: Ints, operation: Ints, duration: Ints) -> Bools:
    """Of a call from a root one member leads: the first one, if it is in such calls as briefly as any other member."""
    result = np.ones(len(rank), dtype=np.bool_)
    rows = np.flatnonzero(np.isin(operation, FROM_ROOT))
    if not len(rows):
        return result
    whole = np.bincount(rank[rows], weights=duration[rows])
    least = np.full(int(collective.max()) + 1, np.inf)
    np.minimum.at(least, collective[rows], whole[rank[rows]])
    longer = whole[rank[rows]] > _ROOT * least[collective[rows]]
    order = np.lexsort((rank[rows], longer, collective[rows]))
    result[rows[order]] = np.diff(collective[rows][order], prepend=-1) != 0
    return result


def _across_stages(facts: Sequence[RankFacts], collective: Ints, rank: Ints, operation: Ints) -> Bools:
    """Whether the members of a call's collective are in several stages of a pipeline."""
    stage = np.array([stage_of(rank_facts) for rank_facts in facts])[rank]
    if not stage.any() or not stages_exchange(operation):
        return np.zeros(len(rank), dtype=np.bool_)
    most = np.zeros(int(collective.max()) + 1 if len(collective) else 0, dtype=np.int64)
    least = np.full(len(most), np.iinfo(np.int64).max)
    np.maximum.at(most, collective, stage)
    np.minimum.at(least, collective, stage)
    return (most > least)[collective]


def _transfer(collective: Ints, coupled: Bools, duration: Ints, operation: Ints, size: Ints) -> Ints:
    """Per collective the shortest duration of its members; of a send or receive alone that of its like."""
    result = np.full(int(collective.max()) + 1 if len(collective) else 0, np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(result, collective, duration)
    lonely = ~coupled & np.isin(operation, POINT_TO_POINT)
    if lonely.any():
        like = np.unique(size[lonely], return_inverse=True)[1].reshape(-1)
        shortest = np.full(int(like.max()) + 1, np.iinfo(np.int64).max, dtype=np.int64)
        np.minimum.at(shortest, like, duration[lonely])
        result[collective[lonely]] = shortest[like]
    return result


def _ready(first: Ints, columns: dict[str, Ints], collective: Ints, coupled: Bools) -> Ints:
    """Own time when a call may start: where it was queued behind another one, when it was ready on other members."""
    ready = columns["ready"]
    free = coupled & (columns["queued"] == 0)
    held = coupled & (columns["queued"] == 1)
    if not free.any() or not held.any():
        return ready
    earliest = np.full(int(collective.max()) + 1, np.iinfo(np.int64).max, dtype=np.int64)
    # Within the step: own times of ranks with more and with less work drift apart over several.
    begin = columns["begin"]
    np.minimum.at(earliest, collective[free], ready[free] - begin[free])
    result = np.where(held & (earliest[collective] < ready - begin), earliest[collective] + begin, ready)
    # Not before the call in front of it was ready, which keeps the order of the calls on their rank.
    for begin, stop in itertools.pairwise(first.tolist()):
        result[begin:stop] = np.maximum.accumulate(result[begin:stop])
    return result
