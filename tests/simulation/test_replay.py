"""The replay of launches, held to times computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_dlprof_plugin.simulation.replay import (
    ALONE,
    LAUNCH_LATENCY_NS,
    QUEUE_LENGTH,
    WAIT,
    Event,
    Replayed,
    replay,
)

US = 1000.0
LATENCY = 3 * US


def kernel(host_us: float, gpu_us: float, stream: int = 7) -> Event:
    return Event(host_us * US, gpu_us * US, stream)


def own(host_us: float) -> Event:
    return Event(host_us * US, 0.0, ALONE)


def waits(host_us: float = 0) -> Event:
    return Event(host_us * US, 0.0, WAIT)


def test_the_times_below_count_on_this_latency() -> None:
    assert LAUNCH_LATENCY_NS == LATENCY


def test_a_slow_cpu_sets_the_pace() -> None:
    # The last kernel ends at 10 + 10 + 3 + 1 µs, the CPU's own work at 25.
    steps = [[kernel(10, 1), kernel(10, 1), own(5)]] * 3
    assert replay(steps) == Replayed(step_ns=25 * US, gpu_ns=2 * US, host_ns=25 * US)


def test_slow_kernels_set_the_pace() -> None:
    steps = [[kernel(1, 100), kernel(1, 100), own(1)]] * 4
    assert replay(steps) == Replayed(step_ns=200 * US, gpu_ns=200 * US, host_ns=3 * US)


def test_kernels_that_wait_for_each_other_stand_a_gap_apart() -> None:
    assert replay([[kernel(1, 100), kernel(1, 100)]] * 3, gap_ns=2 * US).step_ns == 204 * US
    # The CPU is the slower one: there is no kernel to wait for.
    assert replay([[kernel(10, 1), own(10)]] * 3, gap_ns=2 * US).step_ns == 20 * US


def test_a_loss_that_is_read_makes_cpu_and_gpu_take_turns() -> None:
    # Launched at 10, runs from 13 to 63; the CPU goes on from there for 20.
    steps = [[kernel(10, 50), waits(), own(20)]] * 3
    assert replay(steps) == Replayed(step_ns=83 * US, gpu_ns=50 * US, host_ns=30 * US)


def test_a_wait_for_an_idle_gpu_costs_nothing() -> None:
    assert replay([[kernel(1, 1), own(30), waits(5), own(4)]]).step_ns == 40 * US


def test_streams_run_side_by_side_and_a_wait_is_for_all() -> None:
    # From 4 to 104 and from 5 to 105 µs; on one stream from 104 to 204.
    assert replay([[kernel(1, 100, 1), kernel(1, 100, 2), waits(), own(5)]]).step_ns == 110 * US
    assert replay([[kernel(1, 100, 1), kernel(1, 100, 1), waits(), own(5)]]).step_ns == 209 * US


def test_a_launch_waits_while_the_queue_is_full() -> None:
    # GIVEN kernels of 10 µs that are launched at once: kernel number n ends at 3 + 10 n µs
    def step(launches: int) -> list[Event]:
        return [kernel(0, 10)] * launches + [own(20_000)]

    # THEN launch number 1024 + n waits until kernel n has ended, and the CPU's own work begins so much later
    assert replay([step(QUEUE_LENGTH)]).step_ns == 20_000 * US
    assert replay([step(QUEUE_LENGTH + 1)]).step_ns == 20_013 * US
    assert replay([step(QUEUE_LENGTH + 5)]).step_ns == 20_053 * US


def test_one_iteration_counts_from_its_start() -> None:
    assert replay([[kernel(2, 30), own(1)]]) == Replayed(step_ns=35 * US, gpu_ns=30 * US, host_ns=3 * US)


def test_the_first_of_several_iterations_only_fills_the_queue() -> None:
    slow, fast = [kernel(500, 900)], [kernel(1, 40)]
    assert replay([slow, fast, fast]) == Replayed(step_ns=40 * US, gpu_ns=40 * US, host_ns=1 * US)


def test_kernels_of_the_first_iteration_may_outlast_the_others() -> None:
    # The GPU is done at 5003 µs, long after the CPU's 30.
    assert replay([[kernel(10, 5000)], [own(10)], [own(10)]]) == Replayed(step_ns=10 * US, gpu_ns=0, host_ns=10 * US)


def test_nothing_takes_no_time() -> None:
    assert replay([[]]) == Replayed(0.0, 0.0, 0.0)


_EVENTS = st.lists(
    st.builds(Event, st.integers(0, 50_000), st.integers(0, 50_000), st.sampled_from([1, 2, WAIT, ALONE])), max_size=40
)


@settings(max_examples=100, deadline=None)
@given(_EVENTS, st.integers(0, 3000))
def test_a_step_takes_as_long_as_the_cpu_or_a_stream_at_least_and_as_all_of_them_at_most(
    events: list[Event], gap: int
) -> None:
    found = replay([events], gap)
    kernels = [event for event in events if event.stream > 0]
    of_streams = [sum(event.gpu_ns for event in kernels if event.stream == which) for which in (1, 2)]
    assert found.host_ns == sum(event.host_ns for event in events)
    assert found.gpu_ns == sum(of_streams)
    assert max(found.host_ns, *of_streams) <= found.step_ns
    assert found.step_ns <= found.host_ns + found.gpu_ns + len(kernels) * (LAUNCH_LATENCY_NS + gap)


@settings(max_examples=100, deadline=None)
@given(st.lists(_EVENTS, min_size=2, max_size=4))
def test_steps_are_never_shorter_than_the_cpus_own_work(iterations: list[list[Event]]) -> None:
    found = replay(iterations)
    count = len(iterations) - 1
    assert found.host_ns == sum(event.host_ns for events in iterations[1:] for event in events) / count
    assert found.step_ns >= found.host_ns


@settings(max_examples=100, deadline=None)
@given(_EVENTS.filter(bool), st.data())
def test_a_longer_kernel_never_makes_one_iteration_shorter(events: list[Event], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(events) - 1))
    longer = list(events)
    longer[at] = Event(events[at].host_ns, events[at].gpu_ns + 10_000, events[at].stream)
    assert replay([longer]).step_ns >= replay([events]).step_ns


@pytest.mark.parametrize("copies", [2, 5])
def test_equal_iterations_have_the_step_of_two(copies: int) -> None:
    step = [kernel(3, 20), waits(), kernel(4, 5, 2), own(9)]
    # 3 + 3 + 20 to the wait, then 4 and 9 of the CPU, while the last kernel runs from 33 to 38.
    assert replay([step] * copies).step_ns == 39 * US
