"""Replays a job: when each rank ends, if own times or transfers were other than recorded.

A call starts when it is ready and the stream is free, a collective ends one transfer after its last member has started,
and a rank goes on from where it waits for a call when the call has ended. Calls that do not depend on each other are
computed together, so a replay takes as many steps of numpy as the longest chain of calls.

Sources: Lin et al., Understanding Stragglers in Large Model Training Using What-if Analysis (OSDI'25), for the end of a
collective; Liang et al., Lumos (MLSys'25), for streams.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.answers.calls import Calls
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Wave:
    """Calls that can be computed together: rows of `Calls` in order of collective, and where each collective begins."""

    rows: Ints
    rank: Ints
    begin: Ints
    member_of: Ints


@dataclass(frozen=True, slots=True)
class Replayed:
    """Times in ns.

    Attributes:
        step: mean step of the job: the longest rank's, over the steps after the first one, where there are several. In
            the first one ranks have not met yet.
        of_rank: of each rank, all steps.
    """

    step: float
    of_rank: Floats


def waves(calls: Calls) -> list[Wave]:
    """The order of computation: each wave holds the collectives that are next on all of their members."""
    members = np.bincount(calls.collective)
    pointer, last = calls.first[:-1].copy(), calls.first[1:]
    arrived, place = np.zeros(len(members), dtype=np.int64), np.zeros(len(members), dtype=np.int64)
    done = np.zeros(len(calls.rank) + 1, dtype=np.bool_)
    rows_of, starts = _members(calls)
    result: list[Wave] = []
    moved = np.flatnonzero(pointer < last)
    while True:
        at = calls.collective[pointer[moved]]
        np.add.at(arrived, at, 1)
        ready = at[arrived[at] == members[at]]
        # Each once, without sorting: the last of equal ones stays.
        place[ready] = np.arange(len(ready))
        ready = ready[place[ready] == np.arange(len(ready))]
        if not len(ready):
            ready = _stuck(calls, pointer, last, members)
        if not len(ready):
            return result
        wave = _wave(calls, ready, rows_of, starts)
        result.append(wave)
        done[wave.rows] = True
        # The next calls of ranks: no rank is in a wave twice.
        moved = wave.rank
        moved = moved[done[pointer[moved]] & (pointer[moved] < last[moved])]
        going = moved
        while len(going):
            pointer[going] += 1
            # Calls that were computed out of order are skipped.
            going = going[(pointer[going] < last[going]) & done[pointer[going]]]
        moved = moved[pointer[moved] < last[moved]]


def _members(calls: Calls) -> tuple[Ints, Ints]:
    order = np.argsort(calls.collective, kind="stable")
    return order, np.r_[0, np.cumsum(np.bincount(calls.collective))]


def _wave(calls: Calls, collectives: Ints, rows_of: Ints, starts: Ints) -> Wave:
    size = starts[collectives + 1] - starts[collectives]
    begin = np.cumsum(size) - size
    member_of = np.repeat(np.arange(len(collectives)), size)
    rows = rows_of[np.repeat(starts[collectives] - begin, size) + np.arange(int(size.sum()))]
    return Wave(rows, calls.rank[rows], begin, member_of)


def _stuck(calls: Calls, pointer: Ints, last: Ints, members: Ints) -> Ints:
    """Where ranks started calls of several streams in other orders: the collective that is next on most members."""
    waiting = np.flatnonzero(pointer < last)
    if not len(waiting):
        return waiting
    at, count = np.unique(calls.collective[pointer[waiting]], return_counts=True)
    return at[[int(np.argmax(count / members[at]))]]


def replay(
    calls: Calls,
    order: list[Wave],
    gap: Floats | None = None,
    transfer: Floats | None = None,
    tail: Floats | None = None,
) -> Replayed:
    """The job with these times in place of the recorded ones.

    Args:
        calls: as recorded.
        order: of `waves`.
        gap: own time since the call before was ready (ns, a row per call).
        transfer: of the call's collective (ns, a row per call).
        tail: own time after a rank's last call was ready (ns, a row per rank).
    """
    if gap is None:
        ready = calls.ready.astype(np.float64)
    else:
        whole = np.cumsum(gap)
        before = np.r_[0.0, whole][calls.first[:-1]]
        ready = whole - before[calls.rank]
    transfer = calls.transfer.astype(np.float64) if transfer is None else transfer
    recorded_tail = recorded_tails(calls)
    tail = recorded_tail if tail is None else tail
    end_of_calls = _last(calls, ready)
    # Between ready and block lies own time of the following gap, which changes in the same proportion.
    following = np.r_[calls.gap[1:], 0].astype(np.float64)
    changed = following if gap is None else np.r_[gap[1:], 0.0]
    heads = calls.first[1:][np.diff(calls.first) > 0] - 1
    following[heads], changed[heads] = recorded_tail[calls.rank[heads]], tail[calls.rank[heads]]
    ratio = np.divide(changed, following, out=np.ones_like(changed), where=following > 0)
    block = ready + (calls.block - calls.ready) * ratio
    first = np.minimum(calls.first_step, calls.own)
    delay = np.zeros(calls.ranks)
    delay_of_first = np.zeros(calls.ranks)
    # In the order of computation, so that a wave reads what lies together.
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *(wave.rows for wave in order)])
    ready_of, block_of, transfer_of = ready[rows], block[rows], transfer[rows]
    stream_of, blocks_of, in_first = calls.stream[rows], calls.blocks[rows], (calls.step == 0)[rows]
    leads_of = calls.leads[rows]
    streams = int(calls.stream.max(initial=0)) + 1
    free = np.zeros(calls.ranks * streams)
    done = 0
    for wave in order:
        here, rank = slice(done, done + len(wave.rows)), wave.rank
        done = here.stop
        on = rank * streams + stream_of[here]
        own = delay[rank]
        start = np.maximum(ready_of[here] + own, free[on])
        end = ends(wave, start, leads_of[here], transfer_of[here])
        free[on] = end
        longer = np.where(blocks_of[here], np.maximum(own, end - block_of[here]), own)
        delay[rank] = longer
        early = in_first[here]
        if early.any():
            delay_of_first[rank[early]] = longer[early]
    of_rank = end_of_calls + tail + delay
    if calls.steps < 2:
        return Replayed(float(of_rank.max(initial=0.0)), of_rank)
    rest = of_rank - _own_of_first(calls, ready, tail, first) - delay_of_first
    return Replayed(float(rest.max(initial=0.0)) / (calls.steps - 1), of_rank)


def ends(wave: Wave, start: Floats, leads: Bools, transfer: Floats) -> Floats:
    """When the calls of a wave end that start then: one transfer after the last member for which they wait.

    Args:
        wave: whose calls they are.
        start: of each of them.
        leads: `Calls.leads`.
        transfer: of the call's collective.
    """
    waited_for = np.where(leads, start, -np.inf)
    if len(wave.begin) == 1:
        end: Floats = np.maximum(start, waited_for.max()) + transfer[0]
    else:
        last = np.maximum.reduceat(waited_for, wave.begin)[wave.member_of]
        end = np.maximum(start, last) + transfer[wave.begin][wave.member_of]
    return end


def recorded_tails(calls: Calls) -> Floats:
    """Own time of each rank after its last call was ready (ns)."""
    return calls.own - _last(calls, calls.ready.astype(np.float64))


def recorded_step(calls: Calls) -> float:
    """Mean step as recorded (ns) over the steps that `Replayed.step` covers."""
    if not calls.ranks or not calls.steps:
        return 0.0
    if calls.steps < 2:
        return float(calls.length.max())
    blocked = np.bincount(calls.rank, weights=np.where(calls.step == 0, calls.exposed, 0), minlength=calls.ranks)
    return float((calls.length - calls.first_step - blocked).max()) / (calls.steps - 1)


def _last(calls: Calls, ready: Floats) -> Floats:
    result = np.zeros(calls.ranks)
    some = np.diff(calls.first) > 0
    result[some] = ready[calls.first[1:][some] - 1]
    return result


def _own_of_first(calls: Calls, ready: Floats, tail: Floats, first: Ints) -> Floats:
    """Own time at the end of the first step, which lies between two calls, in the changed own time."""
    begins, stops = calls.first[:-1], calls.first[1:]
    # The last call that was ready by then, and the next: the moment lies between them in the same proportion.
    passed = np.bincount(calls.rank, weights=calls.ready <= first[calls.rank], minlength=calls.ranks).astype(np.int64)
    before, after = begins + passed - 1, begins + passed
    empty = begins == stops
    last_new = np.where(empty, 0.0, ready[np.where(empty, 0, stops - 1)] if len(ready) else 0.0)

    def at(column: Floats | Ints, row: Ints, none_before: Floats, none_after: Floats) -> Floats:
        known = column[np.clip(row, 0, len(column) - 1)] if len(column) else np.zeros(len(row))
        return np.where(row < begins, none_before, np.where(row >= stops, none_after, known))

    nothing = np.zeros(calls.ranks)
    old_low, old_high = (at(calls.ready, row, nothing, calls.own.astype(np.float64)) for row in (before, after))
    new_low, new_high = (at(ready, row, nothing, last_new + tail) for row in (before, after))
    share = np.divide(first - old_low, old_high - old_low, out=np.ones(calls.ranks), where=old_high > old_low)
    result: Floats = new_low + np.clip(share, 0, 1) * (new_high - new_low)
    return result
