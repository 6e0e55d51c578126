"""Replays of a run's iterations, with a CPU of some speed and changes to what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tb_dlprof_plugin.model.lookup import joined, take_or
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.change import Added, Change
from tb_dlprof_plugin.simulation.host_clock import HostClock
from tb_dlprof_plugin.simulation.replay import ALONE, WAIT, WAIT_FOR, WAIT_FOR_MARK, Joins, Replayed, Steps, replay
from tb_dlprof_plugin.simulation.sequence import rows_by_iteration, sequence_of
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
    until = np.searchsorted(np.cumsum(rows_by_iteration(view)[numbers[order]]), _MOST_ROWS, side="right")
    return np.sort(numbers[order[: max(int(until), _LEAST_ITERATIONS)]])


class Replays:
    """Some iterations of a run, prepared."""

    def __init__(self, view: ProfileView, iterations: Ints) -> None:
        whole = sequence_of(view, iterations)
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
        added = joined([change.added for change in changes], Added)
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
        added: Added,
    ) -> Steps:
        """The iterations as they are to be replayed."""
        iterations = self._view.profile.iterations
        rows = np.flatnonzero(runs)
        begin, end = (clock.at(times[self.iterations]) for times in (iterations.host_start_ns, iterations.host_stop_ns))
        # Rows are in order of their iterations.
        begins = np.searchsorted(self._iteration[rows], self.iterations)
        number = np.searchsorted(self.iterations, self._iteration[rows])
        own = np.maximum(clock.at(self._whole.at_ns[self._rows[rows]]) - begin[number], 0.0)
        lasts = end - begin
        np.maximum.at(lasts, number, own)
        starts = np.concatenate([[0.0], np.cumsum(lasts)])
        # Less time means fewer kernels, and so fewer gaps.
        gaps, lags = gap_ns * np.minimum(keep, 1.0), self._lag_ns * keep
        joins, mark = (self._joins, self._mark) if len(rows) == len(runs) else self._without(runs)
        steps = Steps(
            at_ns=np.maximum.accumulate(own + starts[number]),
            stream=self._coded(stream)[rows],
            gpu_ns=(self._gpu_ns * keep)[rows],
            gap_ns=gaps[rows],
            lag_ns=lags[rows],
            joins=_moved(joins, np.cumsum(runs) - 1, runs),
            queued=self._first[rows],
            mark=mark[rows],
            thread=self._whole.thread[self._rows[rows]] if self._whole.parallel else None,
            resumes=self._whole.resumes[self._rows[rows]],
            begins=begins,
            starts_ns=starts,
        )
        if not len(added):
            return steps
        place = np.full(len(self._view.profile.launches), -1)
        launched = np.flatnonzero(self._launch[rows] >= 0)
        place[self._launch[rows][launched]] = launched
        return _with_added(steps, place[added.launch], added, gap_ns)

    def _coded(self, stream: Ints) -> Ints:
        """Streams as `replay` takes them."""
        waiting = self._launch < 0
        one = np.where(self._waits_for >= 0, WAIT_FOR_MARK - self._waits_for, WAIT_FOR - stream)
        return np.where(waiting, np.where((stream == EVERYTHING) & (self._waits_for < 0), WAIT, one), stream)

    def _without(self, runs: Bools) -> tuple[Joins, Ints]:
        """Dependencies and marks where some activities do not run: what waits for one waits for what was before it."""
        if not (self._mark >= 0).any():
            return self._joins, self._mark
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
        return {row: tuple(instead.get(one, one) for one in some) for row, some in self._joins.items()}, mark

    def _marked(self) -> tuple[Ints, Ints, Joins]:
        """Numbers of the activities that are waited for by themselves; at the waits of the CPU for one its number, else
        -1; and per row those that it waits for on other streams."""
        whole, rows = self._whole, self._rows
        place = np.full(len(whole), -1)
        place[rows] = np.arange(len(rows))
        of_launch = np.full(len(self._view.profile.launches), -1)
        launched = np.flatnonzero(self._launch >= 0)
        of_launch[self._launch[launched]] = launched
        waited = take_or(of_launch, whole.target[rows], -1)
        joins: dict[int, tuple[int, ...]] = {}
        waiting = np.fromiter(whole.waits_for, np.int64, len(whole.waits_for))
        for row in waiting[place[waiting] >= 0].tolist():
            if kept := tuple(int(place[other]) for other in whole.waits_for[row] if place[other] >= 0):
                joins[int(place[row])] = kept
        mark = np.full(len(rows), -1)
        wanted = np.unique(
            np.array([*waited[waited >= 0].tolist(), *(one for some in joins.values() for one in some)], dtype=np.int64)
        )
        mark[wanted] = wanted
        return mark, waited, joins


def _moved(joins: Joins, to: Ints, stays: Bools | None = None) -> Joins:
    """The same by the rows' new places, of those that stay."""
    return {int(to[row]): some for row, some in joins.items() if stays is None or stays[row]}


def _with_added(steps: Steps, place: Ints, added: Added, gap_ns: float) -> Steps:
    """Steps with more work before some of their rows; ``place`` is -1 for what is added before none of them."""
    order = np.argsort(place, kind="stable")
    order = order[place[order] >= 0]
    # A wait is a row of its own.
    rows = np.repeat(order, 1 + added.wait[order])
    waits = np.concatenate([[False], rows[1:] == rows[:-1]]) if len(rows) else np.zeros(0, dtype=np.bool_)
    where, count = place[rows], len(steps.at_ns)
    host, gpu = np.where(waits, 0.0, added.host_ns[rows]), np.where(waits, 0.0, added.gpu_ns[rows])
    stream = np.where(waits, WAIT, np.where(gpu > 0, steps.stream[where], ALONE))
    # The CPU time of work added before a row delays that row and all after it.
    earlier = np.concatenate([[0.0], np.cumsum(host)])
    delay = earlier[np.searchsorted(where, np.arange(count), side="right")]
    before = np.searchsorted(where, np.append(steps.begins, count), side="left")

    def inserted(column: Any, values: Any) -> Any:
        return np.insert(column, where, values)

    return Steps(
        at_ns=inserted(steps.at_ns + delay, steps.at_ns[where] + earlier[1:]),
        stream=inserted(steps.stream, stream),
        gpu_ns=inserted(steps.gpu_ns, gpu),
        gap_ns=inserted(steps.gap_ns, gap_ns),
        lag_ns=inserted(steps.lag_ns, 0.0),
        joins=_moved(steps.joins, np.arange(count) + np.searchsorted(where, np.arange(count), side="right")),
        queued=inserted(steps.queued, True),
        mark=inserted(steps.mark, -1),
        thread=None if steps.thread is None else inserted(steps.thread, steps.thread[where]),
        resumes=inserted(steps.resumes, steps.resumes[where]),
        begins=steps.begins + before[:-1],
        starts_ns=steps.starts_ns + earlier[before],
    )
