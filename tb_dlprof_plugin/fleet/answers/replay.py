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
from tb_dlprof_plugin.model.profile import Floats, Ints


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
    stream = np.zeros((calls.ranks, int(calls.stream.max()) + 1 if len(calls.stream) else 1))
    in_first = calls.step == 0
    for wave in order:
        rows, rank = wave.rows, wave.rank
        start = np.maximum(ready[rows] + delay[rank], stream[rank, calls.stream[rows]])
        end = ends(calls, wave, start, transfer)
        stream[rank, calls.stream[rows]] = end
        longer = np.where(calls.blocks[rows], np.maximum(delay[rank], end - block[rows]), delay[rank])
        delay[rank] = longer
        early = in_first[rows]
        delay_of_first[rank[early]] = longer[early]
    of_rank = end_of_calls + tail + delay
    if calls.steps < 2:
        return Replayed(float(of_rank.max(initial=0.0)), of_rank)
    rest = of_rank - _own_of_first(calls, ready, tail, first) - delay_of_first
    return Replayed(float(rest.max(initial=0.0)) / (calls.steps - 1), of_rank)


def ends(calls: Calls, wave: Wave, start: Floats, transfer: Floats) -> Floats:
    """When the calls of a wave end that start then: one transfer after the last member for which they wait."""
    last = np.maximum.reduceat(np.where(calls.leads[wave.rows], start, -np.inf), wave.begin)[wave.member_of]
    result: Floats = np.maximum(start, last) + transfer[wave.rows[wave.begin]][wave.member_of]
    return result


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
    result = np.zeros(calls.ranks)
    for rank in range(calls.ranks):
        rows = calls.of_rank(rank)
        old = np.r_[0, calls.ready[rows], calls.own[rank]]
        end = ready[rows][-1] if rows.stop > rows.start else 0.0
        new = np.r_[0.0, ready[rows], end + tail[rank]]
        result[rank] = np.interp(first[rank], old, new)
    return result
