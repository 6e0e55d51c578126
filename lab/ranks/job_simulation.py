"""One rank's recording as a program that can run again: on other hosts, with pauses, on a slower GPU, with more ranks.

A program has the rank's launches and waits in the host's order, with the host's time between them and the dependencies
between streams (`simulation.sequence`). `run` carries out those of all ranks: a host launches into a queue of limited
depth, each stream of a GPU works in order, and a collective ends one transfer after its last member has come. That is
an event at a time, and shares nothing with the replay whose answers it judges.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from tb_dlprof_plugin.metrics.communication import is_collective
from tb_dlprof_plugin.model.grouping import numbered
from tb_dlprof_plugin.model.intervals import covered, union
from tb_dlprof_plugin.model.lookup import take_rows
from tb_dlprof_plugin.model.profile import (
    CallPlaces,
    Floats,
    Ints,
    Iterations,
    KernelCounters,
    LightWindow,
    Memory,
    Profile,
    TensorActivity,
)
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.sequence import sequence
from tb_dlprof_plugin.simulation.waits import EVERYTHING

LATENCY_NS = 4_000
"""From a launch to its start on an idle GPU."""
_RETURN_NS = 3_000
"""From the end of what a host waits for to its return."""


@dataclass(frozen=True)
class Tile:
    """One recorded step of a rank.

    Attributes:
        iteration: index of the step.
        launch: row of `Profile.launches`; -1 for a wait.
        begin_ns: when the call begins, from the step's begin. return_ns: when it returned.
        stream: of the launch, or that which is waited for; `EVERYTHING`.
        target: index of the row whose end is waited for; -1 for all of the stream.
        waits_for: of each row the rows of other streams that have to end before.
        gpu_ns: recorded time on the GPU.
        collective: number of the collective in the step, -1 for a row that is none.
        host_ns: length of the step on the host.
    """

    iteration: int
    launch: Ints
    begin_ns: Ints
    return_ns: Ints
    stream: Ints
    target: Ints
    waits_for: list[tuple[int, ...]]
    gpu_ns: Floats
    collective: Ints
    host_ns: int


@dataclass(frozen=True)
class Rank:
    """What one rank runs.

    Attributes:
        profile: the recording.
        tiles: its steps.
    """

    profile: Profile
    tiles: list[Tile]


@dataclass
class Conditions:
    """Of one rank in one run, by step of the run.

    Attributes:
        pauses: of each step (place, length): at which share of the host's step the host pauses, and for how long (ns).
        kernels: of each step the times as long as which kernels take, by row.
        host: of each step the times as long as which the host takes, by row.
        depth: launches that fit into the queue.
    """

    kernels: list[Floats]
    host: list[Floats]
    pauses: list[list[tuple[float, float]]]
    depth: int


@dataclass
class RankTimes:
    """Of one rank, a list entry per step: times of its rows, and knots from the recorded host's time to the new one.

    Attributes:
        start_ns, stop_ns: of each row on the GPU; of a wait 0.
        knots: recorded time in the step, new time.
        begin_ns: when the host began the step; one entry more than steps.
    """

    start_ns: list[Floats] = field(default_factory=list)
    stop_ns: list[Floats] = field(default_factory=list)
    knots: list[tuple[Floats, Floats]] = field(default_factory=list)
    begin_ns: list[float] = field(default_factory=list)


def rank_of(profile: Profile, collective: dict[int, int]) -> Rank:
    """The program of a recording.

    Args:
        profile: the recording of a rank with a GPU.
        collective: of rows of `Profile.launches` the number of the collective in its step.
    """
    view = ProfileView(profile)
    whole = sequence(view, view.selection())
    calls, iterations = profile.calls, profile.iterations
    alone = _alone_ns(view, whole.launch, whole.gpu_ns)
    place = np.full(len(whole), -1)
    row_of_launch = {int(row): at for at, row in enumerate(whole.launch.tolist()) if row >= 0}
    tiles = []
    for number in range(len(iterations)):
        rows = np.flatnonzero(whole.iteration == number)
        place[rows] = np.arange(len(rows))
        begin = calls.start_ns[whole.call[rows]] - iterations.host_start_ns[number]
        finish = begin + calls.duration_ns[whole.call[rows]]
        launch = whole.launch[rows]
        inside = set(rows.tolist())
        tiles.append(
            Tile(
                iteration=number,
                launch=launch,
                begin_ns=np.maximum.accumulate(begin),
                return_ns=finish,
                stream=whole.stream[rows],
                target=np.array(
                    [
                        place[row_of_launch[one]] if one in row_of_launch and row_of_launch[one] in inside else -1
                        for one in whole.target[rows].tolist()
                    ],
                    dtype=np.int64,
                ),
                waits_for=[
                    tuple(int(place[before]) for before in whole.waits_for.get(row, ()) if before in inside)
                    for row in rows.tolist()
                ],
                gpu_ns=alone[rows],
                collective=np.array([collective.get(one, -1) for one in launch.tolist()], dtype=np.int64),
                host_ns=int(iterations.host_stop_ns[number] - iterations.host_start_ns[number]),
            )
        )
    return Rank(profile, tiles)


def _alone_ns(view: ProfileView, launch: Ints, gpu_ns: Floats) -> Floats:
    """Times of kernels as without communication next to them, which another run has next to other kernels: medians of
    their like that ran alone."""
    launches = view.profile.launches
    row = np.maximum(launch, 0)
    start, stop = launches.start_ns[row], launches.start_ns[row] + launches.duration_ns[row]
    collective = is_collective(view)
    busy = union(launches.start_ns[collective], (launches.start_ns + launches.duration_ns)[collective])
    beside = covered(busy, start, stop)
    own = (launch >= 0) & ~collective[row]
    shapes = np.where(view.launch_op[row] >= 0, view.profile.ops.shapes[np.maximum(view.launch_op[row], 0)], 0)
    number = numbered(launches.kernel[row], launches.config[row], shapes)
    result = gpu_ns.copy()
    slowdowns = []
    for like in np.unique(number[own]).tolist():
        rows = np.flatnonzero(own & (number == like))
        alone = rows[beside[rows] == 0]
        if len(alone) and len(alone) < len(rows):
            slow = np.setdiff1d(rows, alone)
            usual = float(np.median(gpu_ns[alone]))
            slowdowns += (gpu_ns[slow] / max(usual, 1.0)).tolist()
            result[slow] = usual
    known = float(np.median(slowdowns)) if slowdowns else 1.0
    for like in np.unique(number[own]).tolist():
        rows = np.flatnonzero(own & (number == like))
        if (beside[rows] > 0).all():
            result[rows] /= max(known, 1.0)
    return result


class _Meeting:
    """A collective: members come, and end together."""

    __slots__ = ("end", "last", "left", "transfer")

    def __init__(self, members: int, transfer: float) -> None:
        self.left, self.transfer, self.last, self.end = members, transfer, 0.0, -1.0

    def come(self, at: float) -> None:
        self.last = max(self.last, at)
        self.left -= 1
        if not self.left:
            self.end = self.last + self.transfer


def run(
    ranks: Sequence[Rank], order: Sequence[int], conditions: Sequence[Conditions], transfer: Sequence[Floats]
) -> list[RankTimes]:
    """All ranks together.

    Args:
        ranks: what they run; all have the same steps and collectives.
        order: index of the tile that each step of the run takes.
        conditions: of each rank.
        transfer: of each step, how long each of its collectives takes (ns).
    """
    members: list[dict[int, int]] = [{} for _ in order]
    for rank in ranks:
        for step, tile in enumerate(order):
            for number in rank.tiles[tile].collective.tolist():
                if number >= 0:
                    members[step][number] = members[step].get(number, 0) + 1
    meetings = [
        {number: _Meeting(count, float(transfer[step][number])) for number, count in own.items()}
        for step, own in enumerate(members)
    ]
    times = [RankTimes() for _ in ranks]
    running = [
        _run_rank(rank, order, one, meetings, result)
        for rank, one, result in zip(ranks, conditions, times, strict=True)
    ]
    waiting: list[tuple[Generator[_Meeting, None, None], _Meeting | None]] = [(one, None) for one in running]
    while waiting:
        left: list[tuple[Generator[_Meeting, None, None], _Meeting | None]] = []
        moved = False
        for one, meeting in waiting:
            if meeting is not None and meeting.end < 0:
                left.append((one, meeting))
                continue
            moved = True
            following = next(one, None)
            if following is not None:
                left.append((one, following))
        if not moved:
            raise ValueError("the ranks wait for each other without end")
        waiting = left
    return times


class _Host:
    """The host in a step: its time, and knots from the recorded time in the step to it."""

    def __init__(self, now: float, pauses: Sequence[tuple[float, float]]) -> None:
        self.now, self.recorded = now, 0.0
        self.knots: tuple[list[float], list[float]] = ([0.0], [now])
        self._pauses = sorted(pauses)

    def move(self, recorded: float, now: float) -> None:
        """To another time, where the recording is at this one."""
        self.recorded, self.now = recorded, now
        self.knots[0].append(recorded)
        self.knots[1].append(now)

    def run_until(self, recorded: float, pace: float, length_ns: int) -> None:
        """As recorded but for the pace, and for pauses, whose places are shares of a step of this length."""
        gap = max(recorded - self.recorded, 0.0)
        while self._pauses and self._pauses[0][0] * length_ns <= recorded:
            at, pause = self._pauses.pop(0)
            part = min(max(at * length_ns - self.recorded, 0.0), gap)
            before = self.recorded + part
            self.move(before, self.now + part * pace)
            self.move(before + 1, self.now + pause)
            self.recorded = before
            gap -= part
        self.move(max(recorded, self.recorded), self.now + gap * pace)


def _latest(at: float, several: Iterable[float | _Meeting]) -> Generator[_Meeting, None, float]:
    """The latest of some times and of the ends of meetings; yields one that has not ended yet."""
    for one in several:
        if isinstance(one, _Meeting):
            if one.end < 0:
                yield one
            at = max(at, one.end)
        else:
            at = max(at, one)
    return at


def _run_rank(
    rank: Rank, order: Sequence[int], given: Conditions, meetings: list[dict[int, _Meeting]], out: RankTimes
) -> Generator[_Meeting, None, None]:
    """Yields a meeting whose end it needs to go on."""
    host = _Host(0.0, ())
    # Of each stream the end of its last work: a time, or a meeting that has not ended yet.
    free: dict[int, float | _Meeting] = {}
    started: list[float] = []
    # Collectives of the step before that no recorded kernel waited for: the optimizer needs all of them.
    unawaited: list[_Meeting] = []
    for step, which in enumerate(order):
        tile = rank.tiles[which]
        awaited_rows = {before for rows in tile.waits_for for before in rows}
        pending, unawaited = unawaited, []
        kernels, paces = given.kernels[step], given.host[step]
        host = _Host(host.now, given.pauses[step])
        out.begin_ns.append(host.now)
        count = len(tile.launch)
        start, stop = np.zeros(count), np.zeros(count)
        ends: list[float | _Meeting] = [0.0] * count
        columns = (tile.launch, tile.begin_ns, tile.return_ns, tile.stream, tile.target, tile.collective)
        for row, (launch, begin, back, stream, target, number) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        ):
            host.run_until(begin, paces[row], tile.host_ns)
            if launch < 0:
                several = list(free.values()) if stream == EVERYTHING else [free.get(stream, 0.0)]
                until = yield from _latest(host.now, [ends[target]] if target >= 0 else several)
                host.move(max(back, host.recorded), until + _RETURN_NS)
                continue
            if len(started) >= given.depth and started[-given.depth] > host.now:
                host.move(host.recorded + 0.9 * max(back - host.recorded, 0.0), started[-given.depth])
            waited_for = (free.get(stream, 0.0), *(ends[each] for each in tile.waits_for[row]), *pending)
            ready = yield from _latest(host.now + LATENCY_NS, waited_for)
            pending = []
            start[row] = ready
            started.append(ready)
            if number >= 0:
                meeting = meetings[step][number]
                meeting.come(ready)
                ends[row] = free[stream] = meeting
                if row not in awaited_rows:
                    unawaited.append(meeting)
            else:
                stop[row] = ready + tile.gpu_ns[row] * kernels[row]
                ends[row] = free[stream] = stop[row]
        host.run_until(tile.host_ns, 1.0, tile.host_ns)
        out.start_ns.append(start)
        old, new = (np.maximum.accumulate(side) for side in host.knots)
        out.knots.append((old, new))
        for row, one in enumerate(ends):
            if isinstance(one, _Meeting):
                stop[row] = yield from _latest(0.0, [one])
        out.stop_ns.append(stop)
    out.begin_ns.append(host.now)


def step_ns(times: Sequence[RankTimes], first: int) -> float:
    """The mean step of a run from step ``first`` on: by when the last GPU has finished each step."""
    done = np.zeros(len(times[0].stop_ns))
    for rank in times:
        done = np.maximum(done, [max(stop.max(initial=0.0), 0.0) for stop in rank.stop_ns])
        done = np.maximum(done, rank.begin_ns[1:])
    return float(done[-1] - done[first - 1]) / (len(done) - first)


def recorded(rank: Rank, order: Sequence[int], times: RankTimes, first: int, numbers: Ints) -> Profile:
    """The recording of a run from step ``first`` on: its tables with the run's times.

    Args:
        rank: what was run.
        order: of the run.
        times: of it.
        first: index of the first recorded step.
        numbers: of the recorded steps, as the user counts them.
    """
    profile = rank.profile
    view = ProfileView(profile)
    old = profile.iterations
    zero = times.begin_ns[first]
    steps = range(first, len(order))
    call_rows, call_step, call_start, call_stop = [], [], [], []
    launch_rows, launch_step, launch_start, launch_stop = [], [], [], []
    for step in steps:
        tile = rank.tiles[order[step]]
        rows = np.flatnonzero(view.call_iteration == tile.iteration)
        from_ns = profile.calls.start_ns[rows] - old.host_start_ns[tile.iteration]
        to_ns = from_ns + profile.calls.duration_ns[rows]
        knots = times.knots[step]
        call_rows.append(rows)
        call_step.append(np.full(len(rows), step))
        call_start.append(np.interp(from_ns, *knots))
        call_stop.append(np.interp(to_ns, *knots) + np.maximum(to_ns - knots[0][-1], 0))
        some = np.flatnonzero(tile.launch >= 0)
        launch_rows.append(tile.launch[some])
        launch_step.append(np.full(len(some), step))
        launch_start.append(times.start_ns[step][some])
        launch_stop.append(times.stop_ns[step][some])
    rows, step_of = np.concatenate(call_rows), np.concatenate(call_step)
    begin = np.rint(np.concatenate(call_start) - zero).astype(np.int64)
    end = np.rint(np.concatenate(call_stop) - zero).astype(np.int64)
    turn = np.lexsort((rows, step_of, profile.calls.thread[rows]))
    calls = replace(take_rows(profile.calls, rows[turn]), start_ns=begin[turn], duration_ns=(end - begin)[turn])
    width = len(profile.calls)
    place = {key: at for at, key in enumerate((step_of[turn] * width + rows[turn]).tolist())}

    def call_of(step: Ints, call: Ints) -> Ints:
        return np.array(
            [
                place.get(one * width + of, -1) if of >= 0 else -1
                for one, of in zip(step.tolist(), call.tolist(), strict=True)
            ],
            dtype=np.int64,
        )

    own, of_step = np.concatenate(launch_rows), np.concatenate(launch_step)
    begin = np.rint(np.concatenate(launch_start) - zero).astype(np.int64)
    end = np.rint(np.concatenate(launch_stop) - zero).astype(np.int64)
    by_start = np.argsort(begin, kind="stable")
    own, of_step, begin, end = own[by_start], of_step[by_start], begin[by_start], end[by_start]
    launches = replace(
        take_rows(profile.launches, own),
        start_ns=begin,
        duration_ns=np.maximum(end - begin, 1),
        call=call_of(of_step, profile.launches.call[own]),
    )
    launch_place = {key: at for at, key in enumerate((of_step * len(profile.launches) + own).tolist())}
    notes_rows, notes_call, notes_launch = [], [], []
    table = profile.communications
    of_call = np.where(table.call >= 0, view.call_iteration[np.maximum(table.call, 0)], -1)
    of_launch = np.where(table.launch >= 0, view.launch_iteration[np.maximum(table.launch, 0)], -1)
    of_note = np.where(of_call >= 0, of_call, of_launch)
    for step in steps:
        some = np.flatnonzero(of_note == rank.tiles[order[step]].iteration)
        notes_rows.append(some)
        notes_call.append(call_of(np.full(len(some), step), table.call[some]))
        notes_launch += [
            launch_place.get(step * len(profile.launches) + one, -1) if one >= 0 else -1
            for one in table.launch[some].tolist()
        ]
    communications = replace(
        take_rows(table, np.concatenate(notes_rows)),
        call=np.concatenate(notes_call),
        launch=np.array(notes_launch, dtype=np.int64),
    )
    host_start = np.rint(np.array(times.begin_ns[first:-1]) - zero).astype(np.int64)
    host_stop = np.rint(np.array(times.begin_ns[first + 1 :]) - zero).astype(np.int64)
    done = np.array([max(times.stop_ns[step].max(initial=0.0), times.begin_ns[step + 1]) - zero for step in steps])
    stop = np.maximum.accumulate(np.rint(done).astype(np.int64))
    start = np.maximum(np.r_[host_start[:1], stop[:-1]], host_start)
    kept = [order[step] for step in steps]
    iterations = Iterations(
        number=numbers,
        start_ns=start,
        stop_ns=stop,
        host_start_ns=host_start,
        host_stop_ns=host_stop,
        category_ns=old.category_ns[[rank.tiles[tile].iteration for tile in kept]],
        gpu_ids=old.gpu_ids,
        found_by=old.found_by,
        unrecorded_categories=old.unrecorded_categories,
    )
    return replace(
        profile,
        iterations=iterations,
        calls=calls,
        launches=launches,
        communications=communications,
        memory=Memory.none(),
        call_places=CallPlaces.none(),
        light_window=LightWindow.none(),
        tensor_activity=TensorActivity.none(),
        kernel_counters=KernelCounters.none(),
    )


def cut(profile: Profile, at_ns: int) -> Profile:
    """As the recording of a process that was stopped at a time: what began later is lost."""
    calls, launches = profile.calls, profile.launches
    kept_calls = np.flatnonzero(calls.start_ns < at_ns)
    place = np.full(len(calls), -1)
    place[kept_calls] = np.arange(len(kept_calls))
    kept = np.flatnonzero((launches.start_ns < at_ns) & ((launches.call < 0) | (place[launches.call] >= 0)))
    launch_place = np.full(len(launches), -1)
    launch_place[kept] = np.arange(len(kept))
    own = take_rows(launches, kept)
    table = profile.communications
    noted = np.flatnonzero(
        ((table.call >= 0) & (place[table.call] >= 0)) | ((table.launch >= 0) & (launch_place[table.launch] >= 0))
    )
    notes = take_rows(table, noted)
    iterations = profile.iterations
    whole = np.flatnonzero(iterations.host_start_ns < at_ns)
    columns = {
        one.name: getattr(iterations, one.name)[whole]
        for one in fields(iterations)
        if isinstance(getattr(iterations, one.name), np.ndarray)
    }
    return replace(
        profile,
        calls=take_rows(calls, kept_calls),
        launches=replace(own, call=np.where(own.call >= 0, place[own.call], -1)),
        communications=replace(
            notes,
            call=np.where(notes.call >= 0, place[notes.call], -1),
            launch=np.where(notes.launch >= 0, launch_place[notes.launch], -1),
        ),
        iterations=replace(iterations, **columns),
    )
