"""Recorded iterations as one sequence of launches and waits, in the CPU's order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.intervals import covered_by_others
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection, per_view
from tb_dlprof_plugin.simulation.streams import joined
from tb_dlprof_plugin.simulation.waits import EVERYTHING, stream_numbers, waits

_MOST_ROWS = 60_000
"""Of a longer run the sequence of all iterations takes too long for a page: dependencies are found row by row."""
_WELL_BEFORE_NS = 20_000
_ENOUGH = 20
_TYPICAL = 0.25
_AT_ONCE = 0.05
"""Share of the calls of a thread that begin while another thread launches, from which they launch at the same time: a
thread that another one waits for, as autograd's is, has none."""
_JOINED_NS = 200_000
"""A thread without a call for so long has waited for others. Ours: threads that launch concurrently call every few tens
of microseconds."""


@dataclass(frozen=True, eq=False)
class Sequence:
    """Rows by iteration and CPU time.

    Attributes:
        iteration: index of each row's iteration.
        launch: row of `Profile.launches`, -1 for a wait.
        call: row of `Profile.calls` that launches or waits.
        at_ns: the recorded time of the call; for a wait when what it waited for was done.
        stream: a small number; for a wait the stream that it waits for, `EVERYTHING` for all.
        device: of each stream's number, its GPU.
        thread: of the CPU, as small numbers.
        gpu_ns: recorded GPU time, 0 for a wait.
        waits_for: rows that also wait for activities of other streams, with the rows of those.
        lag_ns: by how much other streams, or its CUDA graph, delay a row's start.
        target: for a wait for one activity, its row in `Profile.launches`; else -1.
        first_of_call: False for the second and later activities of a CUDA graph.
        parallel: whether several threads launch at the same time.
        resumes: whether the row's thread has called nothing for so long that it waited for others.
        gap_ns: the time between two kernels of a stream of which the second waits for the first.
    """

    iteration: Ints
    launch: Ints
    call: Ints
    at_ns: Ints
    stream: Ints
    device: Ints
    thread: Ints
    gpu_ns: Floats
    waits_for: dict[int, tuple[int, ...]]
    lag_ns: Floats
    target: Ints
    first_of_call: Bools
    parallel: bool
    resumes: Bools
    gap_ns: float

    def __len__(self) -> int:
        return len(self.launch)


@per_view
def rows_by_iteration(view: ProfileView) -> Ints:
    """How many rows the sequence has of each iteration."""
    launches, known = view.profile.launches, waits(view, view.selection())
    called = np.concatenate([launches.call[launches.call >= 0], known.call[~known.nothing]])
    iteration = view.call_iteration[called] if len(called) else called
    return np.bincount(iteration[iteration >= 0], minlength=len(view.profile.iterations))


@per_selection
def sequence(view: ProfileView, _: Selection) -> Sequence:
    """The sequence of all iterations of a run."""
    return _sequence(view, np.ones(len(view.profile.iterations), dtype=np.bool_))


def sequence_of(view: ProfileView, iterations: Ints) -> Sequence:
    """A sequence with some iterations: of a short run all; of a long one those before them too, which they wait for."""
    if rows_by_iteration(view).sum() <= _MOST_ROWS:
        return sequence(view, view.selection())
    wanted = np.zeros(len(view.profile.iterations), dtype=np.bool_)
    wanted[np.concatenate([iterations, np.maximum(iterations - 1, 0)])] = True
    return _sequence(view, wanted)


def _sequence(view: ProfileView, wanted: Bools) -> Sequence:
    launches, calls = view.profile.launches, view.profile.calls
    rows = np.flatnonzero((launches.call >= 0) & take_or(wanted, view.launch_iteration, False))
    known = waits(view, view.selection())
    useful = ~known.nothing & take_or(wanted, view.call_iteration[known.call], False)
    call = np.concatenate([launches.call[rows], known.call[useful]])
    at = np.concatenate([calls.start_ns[launches.call[rows]], known.until_ns[useful]])
    begun = calls.start_ns[call]
    waiting = np.concatenate([np.zeros(len(rows), np.int64), np.ones(int(useful.sum()), np.int64)])
    started = np.concatenate([launches.start_ns[rows], known.until_ns[useful]])
    iteration = view.call_iteration[call]
    order = np.lexsort((started, waiting, begun, at, iteration))
    number = np.concatenate([stream_numbers(view)[rows], known.stream[useful]])[order]
    names = np.unique(number[number != EVERYTHING])
    stream = np.where(number == EVERYTHING, EVERYTHING, np.searchsorted(names, number))
    launch = np.concatenate([rows, np.full(int(useful.sum()), -1)])[order]
    call = call[order]
    device = _devices(view, names)
    gap = _gap_ns(view, rows)
    dependent = joined(view, launch, stream, device)
    thread = np.unique(calls.thread[call], return_inverse=True)[1].reshape(-1)
    repeated = np.zeros(len(call), dtype=np.bool_)
    repeated[1:] = (call[1:] == call[:-1]) & (launch[1:] >= 0)
    return Sequence(
        iteration=iteration[order],
        launch=launch,
        call=call,
        at_ns=at[order],
        stream=stream,
        device=device,
        thread=thread,
        gpu_ns=take_or(launches.duration_ns, launch, 0).astype(np.float64),
        waits_for=dependent.waits_for,
        lag_ns=np.maximum(dependent.lag_ns - gap, 0),
        target=np.concatenate([np.full(len(rows), -1), known.launch[useful]])[order],
        first_of_call=~repeated,
        parallel=_in_parallel(view, call, thread),
        resumes=_resumes(view, call, thread),
        gap_ns=gap,
    )


def _devices(view: ProfileView, names: Ints) -> Ints:
    """The GPU of each stream, as small numbers."""
    launches, number = view.profile.launches, stream_numbers(view)
    device = np.zeros(len(names), dtype=np.int64)
    known = np.isin(number, names)
    device[np.searchsorted(names, number[known])] = launches.device[known]
    return np.unique(device, return_inverse=True)[1].reshape(-1)


def _in_parallel(view: ProfileView, call: Ints, thread: Ints) -> bool:
    """Whether calls of one thread begin inside those of another again and again."""
    calls = view.profile.calls
    start, stop = calls.start_ns[call], calls.start_ns[call] + calls.duration_ns[call]
    inside = covered_by_others(thread, start, stop, np.arange(len(call)), start, start + 1) > 0
    of_thread = np.bincount(thread)
    enough = np.maximum(_ENOUGH, _AT_ONCE * of_thread)
    return bool((np.bincount(thread[inside], minlength=len(of_thread)) >= enough).any())


def _resumes(view: ProfileView, call: Ints, thread: Ints) -> Bools:
    calls = view.profile.calls
    result = np.zeros(len(call), dtype=np.bool_)
    order = np.lexsort((calls.start_ns[call], thread))
    start, stop = calls.start_ns[call[order]], calls.start_ns[call[order]] + calls.duration_ns[call[order]]
    result[order[1:]] = (np.diff(thread[order]) == 0) & (start[1:] - stop[:-1] > _JOINED_NS)
    return result


def _gap_ns(view: ProfileView, rows: Ints) -> float:
    """Lower quartile over kernels launched well before the one before them ended; 0 where there are too few.

    The larger ones wait for events of other streams, or for a copy.
    """
    launches, calls = view.profile.launches, view.profile.calls
    order = np.lexsort((launches.start_ns[rows], launches.stream[rows], launches.device[rows]))
    rows = rows[order]
    before, after = rows[:-1], rows[1:]
    ended = launches.start_ns[before] + launches.duration_ns[before]
    called = calls.start_ns[launches.call[after]] + calls.duration_ns[launches.call[after]]
    same = (launches.stream[before] == launches.stream[after]) & (launches.device[before] == launches.device[after])
    waiting = same & (called + _WELL_BEFORE_NS < ended)
    gaps = (launches.start_ns[after] - ended)[waiting]
    return float(max(np.quantile(gaps, _TYPICAL), 0)) if len(gaps) >= _ENOUGH else 0.0
