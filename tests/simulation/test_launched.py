"""Launches as the replay takes them: order, streams, gaps, added work. Times in µs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tb_dlprof_plugin.frame import Frame
from tb_dlprof_plugin.simulation.host import host_clock
from tb_dlprof_plugin.simulation.launched import Added, Launched, events, launched
from tb_dlprof_plugin.simulation.replay import ALONE, WAIT, Event


def work_of(frame: Frame) -> Launched:
    return launched(frame, host_clock(frame, 1.0))


def names_of(frame: Frame, work: Launched) -> list[str]:
    profile = frame.profile
    return [
        profile.strings[profile.kernels.name[profile.launches.kernel[row]]] if row >= 0 else "wait"
        for row in work.launch.tolist()
    ]


def test_launches_stand_in_the_order_of_their_calls_over_all_threads(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.step(1, 100, 100)
    trace.launch("second", 20, 60, 5, tid=2)
    trace.launch("first", 10, 70, 5)
    trace.runtime(30, 8, name="cudaStreamSynchronize")
    trace.launch("third", 35, 80, 5, tid=2)
    trace.launch("next", 110, 130, 5)
    trace.launch("outside", 220, 230, 5)
    trace.kernel("orphan", 5, 5)
    frame = trace.frame()
    work = work_of(frame)
    # A wait is over when its call ends: what other threads launch until then comes before.
    assert names_of(frame, work) == ["first", "second", "third", "wait", "next"]
    assert work.iteration.tolist() == [0, 0, 0, 0, 1]
    assert (work.stream == WAIT).tolist() == [False, False, False, True, False]
    assert (work.host_ns / 1000).tolist() == [10, 20, 35, 38, 110]
    assert (work.begin_ns / 1000).tolist() == [0, 100]
    assert (work.end_ns / 1000).tolist() == [100, 200]


def streams(new_trace: Callable[..., Any], kernels: list[tuple[float, float, int, int]]) -> list[int]:
    """Streams of kernels that start and take so long, on a stream and a device; numbered as they appear."""
    trace = new_trace()
    trace.gpu(id=0)
    trace.gpu(id=1)
    trace.step(0, 0, 1000)
    for number, (start, duration, stream, device) in enumerate(kernels):
        trace.launch("k", 2 * number, start, duration, stream=stream, device=device)
    found = work_of(trace.frame()).stream.tolist()
    return [list(dict.fromkeys(found)).index(stream) for stream in found]


def test_streams_that_take_turns_are_one(new_trace: Callable[..., Any]) -> None:
    assert streams(new_trace, [(100, 50, 7, 0), (150, 50, 8, 0), (200, 50, 7, 0)]) == [0, 0, 0]
    # 2 of 50 µs side by side are less than a twentieth.
    assert streams(new_trace, [(100, 50, 7, 0), (148, 50, 8, 0)]) == [0, 0]


def test_streams_that_run_side_by_side_stay_apart(new_trace: Callable[..., Any]) -> None:
    assert streams(new_trace, [(100, 50, 7, 0), (120, 50, 8, 0), (180, 50, 7, 0)]) == [0, 1, 0]
    # The third takes turns with the first, which is longer than the second.
    assert streams(new_trace, [(100, 50, 7, 0), (110, 30, 8, 0), (150, 20, 9, 0)]) == [0, 1, 0]


def test_streams_of_two_gpus_stay_apart(new_trace: Callable[..., Any]) -> None:
    assert streams(new_trace, [(100, 50, 7, 0), (150, 50, 7, 1), (200, 50, 7, 0)]) == [0, 1, 0]


def gap(new_trace: Callable[..., Any], gaps_us: list[float], called_before_us: float = 100) -> float:
    """The gap (µs) found between kernels of 200 µs that stand so far apart and were launched so long before."""
    trace = new_trace()
    trace.step(0, 0, 10_000)
    start = 300.0
    for between in [0, *gaps_us]:
        trace.launch("k", start - called_before_us, start, 200)
        start += 200 + between
    return work_of(trace.frame()).gap_ns / 1000


def test_the_gap_is_that_of_kernels_launched_well_before_the_one_before_them_ended(
    new_trace: Callable[..., Any],
) -> None:
    # A quarter is the lower quartile, whatever the others wait for.
    assert gap(new_trace, [1.5] * 8 + [40] * 12) == 1.5
    assert gap(new_trace, [1.5] * 19) == 0
    # Launched just as the stream gets free: then the CPU makes the gap.
    assert gap(new_trace, [1.5] * 25, called_before_us=3) == 0


@pytest.mark.parametrize("model", ["resnet50", "lenet"])
def test_recorded_gaps_are_about_a_microsecond(recorded: Callable[[str], Frame], model: str) -> None:
    assert 300 < work_of(recorded(f"{model}/fp32")).gap_ns < 3000


def work(**columns: Any) -> Launched:
    """Two iterations of 100 µs with two launches each; the last row of the first is a wait."""
    known: dict[str, Any] = {
        "iteration": [0, 0, 0, 1, 1], "launch": [0, 1, -1, 2, 3], "call": [0, 1, 2, 3, 4],
        "stream": [7, 8, WAIT, 7, 8],
    }  # fmt: skip
    return Launched(
        **{name: np.array(columns.get(name, values)) for name, values in known.items()},
        host_ns=np.array([10.0, 30.0, 60.0, 120.0, 150.0]),
        begin_ns=np.array([0.0, 100.0]),
        end_ns=np.array([100.0, 200.0]),
        gap_ns=0.0,
    )


def test_events_hold_the_cpu_time_since_the_one_before() -> None:
    assert events(work(), np.array([5.0, 6.0, 0.0, 7.0, 8.0]), {}) == [
        [Event(10, 5, 7), Event(20, 6, 8), Event(30, 0, WAIT), Event(40, 0, ALONE)],
        [Event(20, 7, 7), Event(30, 8, 8), Event(50, 0, ALONE)],
    ]


def test_added_work_comes_before_its_row_on_the_rows_stream() -> None:
    cast, scaler, own = Added(2.0, 3.0), Added(4.0, 5.0, wait=True), Added(6.0, 0.0)
    found = events(work(), np.zeros(5), {1: [cast, scaler], 2: [cast], 3: [own]})
    assert found == [
        [
            Event(10, 0, 7), Event(2, 3, 8), Event(4, 5, 8), Event(0, 0, WAIT), Event(20, 0, 8),
            Event(2, 3, 7), Event(30, 0, WAIT), Event(40, 0, ALONE),
        ],
        [Event(6, 0, ALONE), Event(20, 0, 7), Event(30, 0, 8), Event(50, 0, ALONE)],
    ]  # fmt: skip


def test_an_iteration_without_launches_is_work_of_the_cpu() -> None:
    empty = Launched(
        *(np.zeros(0, dtype=np.int64),) * 4, host_ns=np.zeros(0), begin_ns=np.zeros(1), end_ns=np.array([50.0]),
        gap_ns=0.0,
    )  # fmt: skip
    assert events(empty, np.zeros(0), {}) == [[Event(50, 0, ALONE)]]
