"""The clock of a CPU that neither waits nor records: literal calls, times in µs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.host_clock import EVENT_NS, clock_of


def clean(view: ProfileView, share: float, *times_us: float) -> list[float]:
    """Clean times (µs) of times since the recording's first iteration (µs)."""
    first = int(view.profile.iterations.host_start_ns.min())
    times = np.array([first + round(1000 * time) for time in times_us])
    return [round(float(time) / 1000, 3) for time in clock_of(view, share).at(times)]


def calls(trace: Any, durations: list[float], name: str = "cudaLaunchKernel", start: float = 100) -> None:
    """Runtime calls 50 µs apart, each with its kernel."""
    for number, duration in enumerate(durations):
        trace.runtime(start + 50 * number, duration, 10_000 + int(start) + number, name=name)
        trace.kernel("k", start + 50 * number, 1, 10_000 + int(start) + number)


def test_all_time_is_scaled_where_nothing_waits_or_loads(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    calls(trace, [2, 2, 2, 3])
    assert clean(trace.view(), 0.5, 0, 10, 600, 1000) == [0, 5, 300, 500]
    assert clean(trace.view(), 1.0, 250) == [250]


def test_a_wait_lasts_until_the_gpu_is_done(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    trace.launch("k", 100, 110, 200)
    trace.runtime(150, 180, name="cudaStreamSynchronize")
    # From 150 to 310; what the call takes afterwards is the CPU's own time.
    assert clean(trace.view(), 1.0, 150, 310, 330, 1000) == [150, 150, 170, 840]
    assert clean(trace.view(), 0.5, 310, 1000) == [75, 420]


def test_a_wait_for_nothing_and_a_slow_launch_are_the_cpus_own_time(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    trace.launch("k", 100, 110, 10)
    trace.runtime(200, 40, name="cudaStreamSynchronize")
    calls(trace, [2, 2, 90, 2], start=300)
    assert clean(trace.view(), 1.0, 1000) == [1000]


def test_a_launch_that_the_full_queue_blocks_waits(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 100_000)
    for number in range(500):
        trace.launch("k", 3 * number, 10 + 100 * number, 100)
    trace.runtime(1600, 500, 99_999)
    trace.kernel("blocked", 60_000, 100, 99_999)
    assert clean(trace.view(), 1.0, 1600, 2100) == [1600, 1602]


def test_loading_takes_its_time_with_and_without_the_profiler(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    trace.loader(0, 200)
    calls(trace, [2, 2], start=400)
    assert clean(trace.view(), 0.5, 100, 200, 1000) == [100, 200, 600]


def test_a_pause_takes_its_time_but_for_the_events_in_it(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 4000)
    calls(trace, [2, 2], start=100)
    calls(trace, [2, 2], start=3000)
    for number in range(10):
        trace.op("aten::add", 1000 + 20 * number, 10)
    # Nothing is launched from 152 to 3000.
    assert clean(trace.view(), 0.5, 152, 3000) == [76, 76 + 2848 - 10 * EVENT_NS / 1000]


def test_the_clock_stands_still_outside_the_iterations(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    calls(trace, [2], start=50)
    assert clean(trace.view(), 1.0, -30, 100, 130) == [0, 100, 100]


def test_a_share_of_some_of_its_time_can_be_left(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    calls(trace, [2, 2])
    clock = clock_of(trace.view(), 1.0)
    first = clock.edges[0]
    halved = clock.scaled((np.array([first + 200_000]), np.array([first + 400_000])), 0.25)
    assert halved.at(first + np.array([200_000, 300_000, 1_000_000])).tolist() == [200_000, 225_000, 850_000]


def test_a_run_that_the_gpu_paces_waits_for_most_of_its_time(recorded: Callable[[str], ProfileView]) -> None:
    view = recorded("vgg16/fp32")
    iterations = view.profile.iterations
    whole = clock_of(view, 1.0).at(iterations.host_stop_ns)[-1]
    assert whole < 0.3 * (iterations.host_stop_ns[-1] - iterations.host_start_ns[0])
