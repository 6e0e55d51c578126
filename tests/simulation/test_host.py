"""The clock of a CPU without the profiler and without waits: literal calls, times in µs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tb_dlprof_plugin.frame import Frame
from tb_dlprof_plugin.simulation.host import host_clock, synchronisations


def clean(frame: Frame, unprofiled: float, *times_us: float) -> list[float]:
    """Clean times (µs) of times since the recording's first iteration (µs)."""
    first = int(frame.profile.iterations.host_start_ns.min())
    times = np.array([first + round(1000 * time) for time in times_us])
    return [float(time) / 1000 for time in host_clock(frame, unprofiled).at(times)]


def calls(trace: Any, durations: list[float], name: str = "cudaLaunchKernel", start: float = 100) -> None:
    """Runtime calls 50 µs apart, each with its kernel."""
    for number, duration in enumerate(durations):
        trace.runtime(start + 50 * number, duration, 10_000 + int(start) + number, name=name)
        trace.kernel("k", start + 50 * number, 1, 10_000 + int(start) + number)


def test_all_time_is_scaled_where_nothing_waits_or_loads(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    calls(trace, [2, 2, 2, 3])
    assert clean(trace.frame(), 0.5, 0, 10, 600, 1000) == [0, 5, 300, 500]
    assert clean(trace.frame(), 1.0, 250) == [250]


def test_a_call_much_longer_than_those_of_its_name_waits_from_then_on(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    # Calls take 2 µs, so that one of 42 waits after 3: from 303 to 342.
    calls(trace, [2, 2, 2, 2, 42, 2])
    assert clean(trace.frame(), 0.5, 300, 303, 342, 1000) == [150, 151.5, 151.5, 480.5]


def test_each_name_has_its_own_typical_time(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    calls(trace, [2, 2, 2])
    calls(trace, [40, 40, 40], "cudaMalloc", start=500)
    assert clean(trace.frame(), 1.0, 1000) == [1000]


@pytest.mark.parametrize("name", ["cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaMemcpyAsync"])
def test_calls_that_may_wait_each_time_are_not_typical_for_themselves(new_trace: Callable[..., Any], name: str) -> None:
    # GIVEN synchronising calls of 100 µs in every step, of which the CPU needs 20 at most
    trace = new_trace()
    for step in range(2):
        trace.step(step, 500 * step, 500)
        trace.runtime(500 * step + 100, 100, name=name)
        trace.launch("k", 500 * step + 10, 500 * step + 20, 5)
    assert clean(trace.frame(), 1.0, 100, 120, 200, 1000) == [100, 120, 120, 840]


def test_loading_takes_its_time_with_and_without_the_profiler(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    trace.loader(0, 200)
    calls(trace, [2, 2], start=400)
    assert clean(trace.frame(), 0.5, 100, 200, 1000) == [100, 200, 600]


def test_the_clock_stands_still_outside_the_iterations(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    calls(trace, [2], start=50)
    assert clean(trace.frame(), 1.0, -30, 100, 130) == [0, 100, 100]


def test_synchronising_calls_of_the_iterations_are_found(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    trace.launch("k", 10, 20, 5)
    for name, start in (
        ("cudaStreamSynchronize", 100),
        ("cudaDeviceSynchronize", 200),
        ("cudaEventRecord", 300),
        ("cudaStreamSynchronize", 1200),
    ):
        trace.runtime(start, 5, name=name)
    trace.op("Synchronize", 400, 5)
    frame = trace.frame()
    profile = frame.profile
    first = int(profile.iterations.host_start_ns[0])
    rows = synchronisations(frame)
    assert [
        (profile.strings[profile.ops.name[profile.calls.op[row]]], (int(profile.calls.start_ns[row]) - first) // 1000)
        for row in rows.tolist()
    ] == [("cudaStreamSynchronize", 100), ("cudaDeviceSynchronize", 200)]


def test_a_run_that_the_gpu_paces_waits_for_most_of_its_time(recorded: Callable[[str], Frame]) -> None:
    frame = recorded("vgg16/fp32")
    iterations = frame.profile.iterations
    whole = host_clock(frame, 1.0).at(iterations.host_stop_ns)[-1]
    assert whole < 0.2 * (iterations.host_stop_ns[-1] - iterations.host_start_ns[0])
