"""Replays of a run's iterations, with a CPU of some speed and changes to what it does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.model.profile import Bools, Floats, Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.change import Added, Change
from tb_dlprof_plugin.simulation.host_clock import HostClock
from tb_dlprof_plugin.simulation.replay import ALONE, WAIT, WAIT_FOR, WAIT_FOR_MARK, Replayed, Step, replay
from tb_dlprof_plugin.simulation.sequence import sequence
from tb_dlprof_plugin.simulation.waits import EVERYTHING

_MOST_ROWS = 8_000
"""A replay of so many takes some 10 ms."""
_LEAST_ITERATIONS = 3
_OUTLIER = 2.0
"""Iterations this many times as long as the median are left out."""


@per_selection
def replays(view: ProfileView, selection: Selection) -> Replays:
    """The launches of the selected iterations, prepared for any number of replays."""
    return Replays(view, chosen_iterations(view, selection))


def chosen_iterations(view: ProfileView, selection: Selection) -> Ints:
    """Indices of the iterations to replay: those nearest to the median, as many as are quickly replayed."""
    duration = view.profile.iterations.duration_ns[selection.first : selection.last + 1]
    numbers = np.arange(selection.first, selection.last + 1)
    median = float(np.median(duration))
    order = np.argsort(np.abs(duration - median), kind="stable")
    order = order[duration[order] <= _OUTLIER * median]
    rows = np.bincount(sequence(view, view.selection()).iteration, minlength=len(view.profile.iterations))
    until = np.searchsorted(np.cumsum(rows[numbers[order]]), _MOST_ROWS, side="right")
    return np.sort(numbers[order[: max(int(until), _LEAST_ITERATIONS)]])


class Replays:
    """Some iterations of a run, prepared."""

    def __init__(self, view: ProfileView, iterations: Ints) -> None:
        whole = sequence(view, view.selection())
        self._view, self.iterations = view, iterations
        self._whole = whole
        rows = np.flatnonzero(np.isin(whole.iteration, iterations))
        self._rows = rows
        self._launch, self._stream, self._gpu_ns = whole.launch[rows], whole.stream[rows], whole.gpu_ns[rows]
        self._iteration, self._call, self._first = whole.iteration[rows], whole.call[rows], whole.first_of_call[rows]
        self._lag_ns = whole.lag_ns[rows]
        self._mark, self._waits_for, self._joins = self._marked()
        self._streams = len(whole.device)

    @property
    def launches(self) -> int:
        """Number of activities in the iterations."""
        return int((self._launch >= 0).sum())

    @property
    def recorded_ns(self) -> float:
        """The mean recorded step of the iterations that are replayed."""
        return float(self._view.profile.iterations.duration_ns[self.iterations].mean())

    def run(self, clock: HostClock, changes: Sequence[Change] = (), backlog_ns: float | None = None) -> Replayed:
        """The mean step.

        Args:
            clock: of the CPU.
            changes: made all together.
            backlog_ns: see `replay`.
        """
        keep, gap, rest = np.ones(len(self._rows)), self._whole.gap_ns, 1.0
        launches = self._launch >= 0
        activity = np.maximum(self._launch, 0)
        runs = np.ones(len(self._rows), dtype=np.bool_)
        stream = self._stream.copy()
        concurrent = np.zeros(len(self._rows), dtype=np.bool_)
        added: dict[int, list[Added]] = {}
        for change in changes:
            rest *= change.keep_rest
            gap *= change.keep_gaps
            if change.cpu is not None:
                clock = clock.scaled(change.cpu, change.keep_cpu)
            if change.gpu is not None and len(change.gpu):
                keep[launches] *= change.gpu[activity[launches]]
            if change.removed_waits is not None:
                runs &= ~(~launches & change.removed_waits[self._call])
            if change.concurrent is not None and len(change.concurrent):
                concurrent |= launches & change.concurrent[activity]
            for row, more in change.added.items():
                added.setdefault(row, []).extend(more)
        runs &= keep > 0
        stream[concurrent] += self._streams
        replayed = replay(self._steps(clock, keep, gap, runs, stream, added), self._devices(), backlog_ns)
        if rest == 1.0:
            return replayed
        return Replayed(replayed.step_ns * rest, replayed.gpu_ns * rest, replayed.host_ns * rest)

    def _devices(self) -> list[int]:
        """Of the recorded streams, and of those of work that is moved away from them."""
        device: list[int] = self._whole.device.tolist()
        return device + device if device else [0]

    def _steps(
        self,
        clock: HostClock,
        keep: Floats,
        gap_ns: float,
        runs: Bools,
        stream: Ints,
        added: dict[int, list[Added]],
    ) -> list[Step]:
        """The iterations as they are to be replayed."""
        iterations = self._view.profile.iterations
        at = clock.at(self._whole.at_ns[self._rows])
        begin, end = clock.at(iterations.host_start_ns), clock.at(iterations.host_stop_ns)
        # Less time means fewer kernels, and so fewer gaps.
        gaps, lags = gap_ns * np.minimum(keep, 1.0), self._lag_ns * keep
        joins, mark = (self._joins, self._mark) if runs.all() else self._without(runs)
        what = self._coded(stream)
        thread = self._whole.thread[self._rows] if self._whole.parallel else None
        resumes = self._whole.resumes[self._rows]
        gpu_ns = self._gpu_ns * keep
        steps = []
        # Rows are in order of their iterations.
        begins, ends = (np.searchsorted(self._iteration, self.iterations, side) for side in ("left", "right"))
        for number, first, stop in zip(self.iterations.tolist(), begins.tolist(), ends.tolist(), strict=True):
            rows = first + np.flatnonzero(runs[first:stop])
            own = np.maximum.accumulate(np.maximum(at[rows] - begin[number], 0.0))
            last = max(float(end[number] - begin[number]), float(own[-1]) if len(own) else 0.0)
            step = Step(
                at_ns=own,
                stream=what[rows],
                gpu_ns=gpu_ns[rows],
                gap_ns=gaps[rows],
                lag_ns=lags[rows],
                joins=list(map(joins.__getitem__, rows.tolist())),
                queued=self._first[rows],
                mark=mark[rows],
                thread=None if thread is None else thread[rows],
                resumes=resumes[rows],
                end_ns=last,
            )
            if added:
                launch = self._launch[rows].tolist()
                here = {place: added[one] for place, one in enumerate(launch) if one in added}
                step = _with_added(step, here, gap_ns) if here else step
            steps.append(step)
        return steps

    def _coded(self, stream: Ints) -> Ints:
        """Streams as `replay` takes them."""
        waiting = self._launch < 0
        one = np.where(self._waits_for >= 0, WAIT_FOR_MARK - self._waits_for, WAIT_FOR - stream)
        return np.where(waiting, np.where((stream == EVERYTHING) & (self._waits_for < 0), WAIT, one), stream)

    def _without(self, runs: Bools) -> tuple[list[tuple[int, ...] | None], Ints]:
        """Dependencies and marks where some activities do not run: what waits for one waits for what was before it."""
        instead: dict[int, int] = {}
        last: dict[int, int] = {}
        marked = (self._mark >= 0).tolist()
        for row, (stream, stays) in enumerate(zip(self._stream.tolist(), runs.tolist(), strict=True)):
            if self._launch[row] < 0:
                continue
            if stays:
                last[stream] = row
            elif marked[row]:
                instead[row] = last.get(stream, -1)
        mark = self._mark.copy()
        kept = [one for one in instead.values() if one >= 0]
        mark[kept] = kept
        joins = [None if some is None else tuple(instead.get(one, one) for one in some) for some in self._joins]
        return joins, mark

    def _marked(self) -> tuple[Ints, Ints, list[tuple[int, ...] | None]]:
        """Numbers of the activities that are waited for by themselves; at the waits of the CPU for one its number, else
        -1; and per row those that it waits for on other streams."""
        whole, rows = self._whole, self._rows
        place = np.full(len(whole), -1)
        place[rows] = np.arange(len(rows))
        target = whole.target[rows]
        of_launch = dict(
            zip(self._launch[self._launch >= 0].tolist(), np.flatnonzero(self._launch >= 0).tolist(), strict=True)
        )
        waited = np.array([of_launch.get(one, -1) if one >= 0 else -1 for one in target.tolist()], dtype=np.int64)
        joins: list[tuple[int, ...] | None] = [None] * len(rows)
        for row, others in whole.waits_for.items():
            kept = tuple(int(place[other]) for other in others if place[other] >= 0)
            if place[row] >= 0 and kept:
                joins[int(place[row])] = kept
        mark = np.full(len(rows), -1)
        wanted = np.unique(
            np.array([*waited[waited >= 0].tolist(), *(one for some in joins if some for one in some)], dtype=np.int64)
        )
        mark[wanted] = wanted
        return mark, waited, joins


def _with_added(step: Step, added: dict[int, list[Added]], gap_ns: float) -> Step:
    """A step with more work before some of its rows."""
    place, host, gpu, stream = [], [], [], []
    any_stream = int(step.stream[step.stream >= 0][0]) if (step.stream >= 0).any() else 0
    for row in sorted(added):
        own = int(step.stream[row])
        for one in added[row]:
            place.append(row)
            host.append(one.host_ns)
            gpu.append(one.gpu_ns)
            stream.append((own if own >= 0 else any_stream) if one.gpu_ns else ALONE)
            if one.wait:
                place.append(row)
                host.append(0.0)
                gpu.append(0.0)
                stream.append(WAIT)
    where = np.array(place)
    cost = np.array(host)
    order = np.arange(len(place))
    # The CPU time of work added before a row delays that row and all after it.
    before = np.zeros(len(step.at_ns) + 1)
    np.add.at(before, where, cost)
    delay = np.cumsum(before)
    earlier = np.cumsum(cost)
    at_new = step.at_ns[where] + earlier[order]
    size = len(place)
    return Step(
        at_ns=np.insert(step.at_ns + delay[:-1], where, at_new),
        stream=np.insert(step.stream, where, stream),
        gpu_ns=np.insert(step.gpu_ns, where, gpu),
        gap_ns=np.insert(step.gap_ns, where, np.full(size, gap_ns)),
        lag_ns=np.insert(step.lag_ns, where, np.zeros(size)),
        joins=_inserted(step.joins, place),
        queued=np.insert(step.queued, where, np.ones(size, dtype=np.bool_)),
        mark=np.insert(step.mark, where, np.full(size, -1)),
        thread=None if step.thread is None else np.insert(step.thread, where, step.thread[where]),
        resumes=np.insert(step.resumes, where, step.resumes[where]),
        end_ns=step.end_ns + float(cost.sum()),
    )


def _inserted(joins: Sequence[tuple[int, ...] | None], places: Sequence[int]) -> list[tuple[int, ...] | None]:
    """The list with None before the given places."""
    result: list[tuple[int, ...] | None] = []
    done = 0
    for place in places:
        result.extend(joins[done:place])
        result.append(None)
        done = place
    result.extend(joins[done:])
    return result
