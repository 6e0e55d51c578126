"""What is launched and waited for, in order: streams and their dependencies, waits, gaps, graphs. Times in µs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.operations import operations

from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.sequence import Sequence, sequence
from tb_dlprof_plugin.simulation.streams import joined
from tb_dlprof_plugin.simulation.waits import EVERYTHING, waits

NewTrace = Callable[..., Any]


def of(view: ProfileView) -> Sequence:
    return sequence(view, view.selection())


def names_of(view: ProfileView) -> list[str]:
    profile = view.profile
    return [
        profile.strings[profile.kernels.name[profile.launches.kernel[row]]] if row >= 0 else "wait"
        for row in of(view).launch.tolist()
    ]


def test_launches_stand_in_the_order_of_their_calls_over_all_threads(new_trace: NewTrace) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.step(1, 100, 100)
    trace.launch("second", 20, 60, 5, tid=2)
    trace.launch("first", 10, 70, 5)
    trace.runtime(30, 60, name="cudaDeviceSynchronize")
    trace.launch("third", 35, 80, 5, tid=2)
    trace.launch("next", 110, 130, 5)
    trace.launch("outside", 220, 230, 5)
    trace.kernel("orphan", 5, 5)
    view = trace.view()
    found = of(view)
    # The wait is over when the work before it is: at 75.
    assert names_of(view) == ["first", "second", "third", "wait", "next"]
    assert found.iteration.tolist() == [0, 0, 0, 0, 1]
    assert (found.at_ns / 1000).tolist() == [10, 20, 35, 75, 110]
    assert (found.launch < 0).tolist() == [False, False, False, True, False]


def dependencies(new_trace: NewTrace, rows: list[tuple[str, float, float, int]], events: list[float]) -> dict[int, Any]:
    """Which row waits for which: kernels called 10 µs apart that begin and take so long on a stream, with calls of
    ``cudaStreamWaitEvent`` at some times."""
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 2000)
    for number, (name, start, duration, stream) in enumerate(rows):
        trace.launch(name, 10 * number, start, duration, stream=stream)
    for time in events:
        trace.runtime(time, 1, name="cudaStreamWaitEvent")
    return of(trace.view()).waits_for


FORK = [("a", 100, 50, 7), ("b", 150, 50, 8), ("c", 150, 80, 9), ("d", 230, 50, 7)]


def test_a_fork_and_a_join_by_events_order_streams(new_trace: NewTrace) -> None:
    # Streams 8 and 9 wait for the first kernel, stream 7 for both of them.
    assert dependencies(new_trace, FORK, [2, 4, 22, 24]) == {1: (0,), 2: (0,), 3: (2, 1)}


def test_a_kernel_that_began_before_another_ended_did_not_wait_for_it(new_trace: NewTrace) -> None:
    early = [FORK[0], ("b", 120, 50, 8), FORK[2], ("d", 210, 50, 7)]
    assert dependencies(new_trace, early, [2, 4, 22, 24]) == {2: (0,), 3: (1,)}


def test_there_are_no_more_dependencies_than_waits_for_events(new_trace: NewTrace) -> None:
    # One wait before the last kernel: for the one that ended last.
    assert dependencies(new_trace, FORK, [2, 4, 22]) == {1: (0,), 2: (0,), 3: (2,)}


def test_streams_without_events_between_them_are_independent(new_trace: NewTrace) -> None:
    assert dependencies(new_trace, FORK, [1500]) == {}


def test_without_any_recorded_event_the_order_of_turns_counts(new_trace: NewTrace) -> None:
    assert dependencies(new_trace, [FORK[0], FORK[1], ("d", 210, 50, 7)], []) == {1: (0,), 2: (1,)}
    assert dependencies(new_trace, [FORK[0], ("b", 120, 50, 8)], []) == {}


@pytest.mark.parametrize("overlap", [0, 15])
def test_many_streams_take_as_many_times_as_long(new_trace: NewTrace, overlap: int) -> None:
    def steps(streams: int) -> int:
        rows = [("k", 10.0 * at + 5, 5.0 + overlap, 7 + at % streams) for at in range(3 * streams)]
        trace = new_trace()
        trace.gpu()
        trace.step(0, 0, 40 * streams)
        for number, (name, start, duration, stream) in enumerate(rows):
            trace.launch(name, 10 * number, start, duration, stream=stream)
        view = trace.view()
        known = of(view)
        launch, stream = known.launch, known.stream
        return operations(lambda: joined(view, launch, stream, known.device))

    assert steps(160) < 6 * steps(40)


def test_what_other_streams_hold_up_begins_so_much_later(new_trace: NewTrace) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1000)
    trace.launch("long", 10, 100, 200, stream=7)
    trace.launch("late", 50, 250, 50, stream=8)
    trace.launch("alone", 400, 500, 50, stream=8)
    # Called at 50 it began at 250, while the other stream worked; after 400 nothing ran that could delay it.
    assert (of(trace.view()).lag_ns / 1000).tolist() == [0, 200, 0]


def test_kernels_of_a_graph_keep_their_distances(new_trace: NewTrace) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1000)
    trace.runtime(10, 20, 1, name="cudaGraphLaunch")
    for start in (40, 60, 75):
        trace.kernel("k", start, 10, 1)
    found = of(trace.view())
    assert (found.lag_ns / 1000).tolist() == [30, 10, 5]
    assert found.first_of_call.tolist() == [True, False, False]


def known_waits(trace: Any) -> list[tuple[int, int, float, bool]]:
    """Of each wait its stream, what it waits for alone, when that was done (µs), and whether for nothing."""
    view = trace.view()
    found = waits(view, view.selection())
    first = int(view.profile.iterations.host_start_ns[0])
    return [
        (stream, launch, (until - first) / 1000, nothing)
        for stream, launch, until, nothing in zip(
            found.stream.tolist(), found.launch.tolist(), found.until_ns.tolist(), found.nothing.tolist(), strict=True
        )
    ]


def test_a_wait_for_a_stream_is_one_for_the_stream_launched_on_last(new_trace: NewTrace) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1000)
    trace.launch("other", 10, 20, 500, stream=8)
    trace.launch("own", 30, 40, 100, stream=7)
    trace.runtime(60, 90, name="cudaStreamSynchronize")
    assert known_waits(trace) == [(7, -1, 140, False)]


def test_a_wait_that_returns_with_work_left_is_for_what_was_done(new_trace: NewTrace) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1000)
    trace.launch("awaited", 10, 20, 100)
    trace.launch("later", 30, 120, 300)
    trace.runtime(60, 70, name="cudaEventSynchronize")
    trace.runtime(140, 5, name="cudaEventSynchronize")
    # The second one found its event done: nothing ended while it waited.
    assert known_waits(trace) == [(EVERYTHING, 0, 120, False), (EVERYTHING, -1, 140, True)]


@pytest.mark.parametrize(
    ("name", "kernel"),
    [("cudaMemcpy", "Memcpy DtoH (Device -> Pinned)"), ("cudaMemcpyAsync", "Memcpy HtoD (Pageable -> Device)")],
)
def test_copies_that_block_wait_for_themselves(new_trace: NewTrace, name: str, kernel: str) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1000)
    trace.launch("k", 10, 20, 100)
    trace.runtime(30, 250, 5, name=name)
    trace.event(kernel, "gpu_memcpy", 130, 140, pid=0, tid=7, correlation=5, device=0, stream=7, bytes=1_000_000)
    assert known_waits(trace) == [(7, -1, 270, False)]


def gap(new_trace: NewTrace, gaps_us: list[float], called_before_us: float = 100) -> float:
    """The gap (µs) found between kernels of 200 µs that stand so far apart and were launched so long before."""
    trace = new_trace()
    trace.step(0, 0, 10_000)
    start = 300.0
    for between in [0, *gaps_us]:
        trace.launch("k", start - called_before_us, start, 200)
        start += 200 + between
    return of(trace.view()).gap_ns / 1000


def test_the_gap_is_that_of_kernels_launched_well_before_the_one_before_them_ended(new_trace: NewTrace) -> None:
    # A quarter is the lower quartile, whatever the others wait for.
    assert gap(new_trace, [1.5] * 8 + [40] * 12) == 1.5
    assert gap(new_trace, [1.5] * 19) == 0
    # Launched just as the stream gets free: then the CPU makes the gap.
    assert gap(new_trace, [1.5] * 25, called_before_us=3) == 0


@pytest.mark.parametrize("model", ["resnet50", "lenet"])
def test_recorded_gaps_are_about_a_microsecond(recorded: Callable[[str], ProfileView], model: str) -> None:
    assert 300 < of(recorded(f"{model}/fp32")).gap_ns < 3000


def test_threads_whose_calls_overlap_launch_in_parallel(new_trace: NewTrace) -> None:
    def parallel(apart: float, threads: list[int]) -> bool:
        trace = new_trace()
        trace.step(0, 0, 1000)
        for number, thread in enumerate(threads):
            # Calls take 2 µs.
            trace.launch("k", apart * number, apart * number + 3, 1, tid=thread)
        return of(trace.view()).parallel

    assert parallel(1, [1, 2] * 40)
    # In turns, as the thread of the loop and that of autograd.
    assert not parallel(3, [1, 2] * 40)


def test_a_thread_that_calls_nothing_for_long_has_waited_for_others(new_trace: NewTrace) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    for at, thread in ((10, 1), (50, 2), (290, 2), (300, 1)):
        trace.launch("k", at, at + 5, 1, tid=thread)
    assert of(trace.view()).resumes.tolist() == [False, False, True, True]
