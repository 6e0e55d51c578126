"""The replay of launches, held to times computed by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_dlprof_plugin.simulation import replay as module
from tb_dlprof_plugin.simulation.replay import (
    ALONE,
    LAUNCH_LATENCY_NS,
    QUEUE_LENGTH,
    WAIT,
    WAIT_FOR,
    WAIT_FOR_MARK,
    Replayed,
    Steps,
    replay,
)

US = 1000.0
LATENCY = 3 * US


@dataclass(frozen=True)
class Row:
    """What the CPU does after ``host_us`` of its own work."""

    host_us: float
    gpu_us: float = 0.0
    stream: int = 0
    joins: tuple[int, ...] | None = None
    mark: int = -1
    lag_us: float = 0.0
    in_graph: bool = False
    thread: int = 0
    resumes: bool = False


def kernel(host_us: float, gpu_us: float, stream: int = 0) -> Row:
    return Row(host_us, gpu_us, stream)


def own(host_us: float) -> Row:
    return Row(host_us, stream=ALONE)


def waits(host_us: float = 0, stream: int = WAIT) -> Row:
    return Row(host_us, stream=stream)


def steps(*iterations: list[Row], gap_us: float = 0.0, threads: bool = False) -> Steps:
    """Iterations of these rows; all threads share one sum of the CPU's work."""
    rows = [row for iteration in iterations for row in iteration]
    at = np.cumsum([0.0] + [row.host_us * US for row in rows])
    begins = np.cumsum([0] + [len(iteration) for iteration in iterations])
    return Steps(
        at_ns=at[1:],
        stream=np.array([row.stream for row in rows], dtype=np.int64),
        gpu_ns=np.array([row.gpu_us * US for row in rows], dtype=np.float64),
        gap_ns=np.full(len(rows), gap_us * US),
        lag_ns=np.array([row.lag_us * US for row in rows], dtype=np.float64),
        joins={at: row.joins for at, row in enumerate(rows) if row.joins},
        queued=np.array([not row.in_graph for row in rows], dtype=np.bool_),
        mark=np.array([row.mark for row in rows], dtype=np.int64),
        thread=np.array([row.thread for row in rows], dtype=np.int64) if threads else None,
        resumes=np.array([row.resumes for row in rows], dtype=np.bool_),
        begins=begins[:-1],
        starts_ns=at[begins],
    )


def once(rows: list[Row], gap_us: float = 0.0, threads: bool = False) -> Replayed:
    """One step on an idle GPU."""
    return replay(steps(rows, gap_us=gap_us, threads=threads), [0, 0, 1], backlog_ns=0.0)


def again(rows: list[Row], gap_us: float = 0.0) -> Replayed:
    """The step over and over."""
    return replay(steps(rows, rows, rows, gap_us=gap_us), [0, 0, 1])


def test_the_times_below_count_on_this_latency() -> None:
    assert LAUNCH_LATENCY_NS == LATENCY


def test_a_slow_cpu_sets_the_pace() -> None:
    assert again([kernel(10, 1), kernel(10, 1), own(5)]) == Replayed(step_ns=25 * US, gpu_ns=2 * US, host_ns=25 * US)


def test_slow_kernels_set_the_pace() -> None:
    rows = [kernel(1, 100), kernel(1, 100), own(1)]
    assert again(rows) == Replayed(step_ns=200 * US, gpu_ns=200 * US, host_ns=3 * US)


def test_kernels_that_wait_for_each_other_stand_a_gap_apart() -> None:
    assert again([kernel(1, 100), kernel(1, 100)], gap_us=2).step_ns == 204 * US
    # The CPU is the slower one: there is no kernel to wait for.
    assert again([kernel(10, 1), own(10)], gap_us=2).step_ns == 20 * US


def test_a_loss_that_is_read_makes_cpu_and_gpu_take_turns() -> None:
    # Launched at 10, runs from 13 to 63; the CPU goes on from there for 20.
    rows = [kernel(10, 50), waits(), own(20)]
    assert again(rows) == Replayed(step_ns=83 * US, gpu_ns=50 * US, host_ns=30 * US)


def test_a_wait_for_an_idle_gpu_costs_nothing() -> None:
    assert once([kernel(1, 1), own(30), waits(5), own(4)]).step_ns == 40 * US


def test_streams_run_side_by_side_and_a_wait_for_the_device_is_for_all() -> None:
    # From 4 to 104 and from 5 to 105 µs; on one stream from 104 to 204.
    assert once([kernel(1, 100, 0), kernel(1, 100, 1), waits(), own(5)]).step_ns == 110 * US
    assert once([kernel(1, 100, 0), kernel(1, 100, 0), waits(), own(5)]).step_ns == 209 * US


def test_a_wait_for_a_stream_is_for_that_stream_alone() -> None:
    rows = [kernel(1, 100, 0), kernel(1, 500, 1), waits(stream=WAIT_FOR), own(300)]
    # On from 104: the other stream ends at 505.
    assert once(rows).step_ns == 505 * US
    assert once([*rows[:2], waits(stream=WAIT_FOR - 1), own(300)]).step_ns == 805 * US


def test_a_wait_for_one_kernel_is_over_before_what_comes_behind_it() -> None:
    rows = [replace(kernel(1, 100), mark=4), kernel(1, 500), waits(stream=WAIT_FOR_MARK - 4), own(600)]
    assert once(rows).step_ns == 704 * US


def test_what_depends_on_another_stream_begins_when_that_is_done() -> None:
    fork = [replace(kernel(1, 100, 0), mark=0), kernel(1, 50, 1)]
    assert once(fork).step_ns == 104 * US
    # Behind the first one: from 104 to 154.
    assert once([fork[0], replace(fork[1], joins=(0,))]).step_ns == 154 * US


def test_what_is_held_up_begins_so_much_later() -> None:
    assert once([replace(kernel(1, 10), lag_us=7)]).step_ns == 21 * US


def test_kernels_of_two_gpus_do_not_add_up() -> None:
    found = once([kernel(1, 100, 0), kernel(1, 80, 2)])
    assert (found.step_ns, found.gpu_ns) == (104 * US, 100 * US)


def test_a_launch_waits_while_the_queue_is_full() -> None:
    # GIVEN kernels of 10 µs that are launched at once: kernel number n ends at 3 + 10 n µs
    def many(launches: int, in_graph: bool = False) -> list[Row]:
        return [replace(kernel(0, 10), in_graph=in_graph)] * launches + [own(20_000)]

    # THEN launch number 1024 + n waits until kernel n has ended, and the CPU's own work begins so much later
    assert once(many(QUEUE_LENGTH)).step_ns == 20_000 * US
    assert once(many(QUEUE_LENGTH + 1)).step_ns == 20_013 * US
    assert once(many(QUEUE_LENGTH + 5)).step_ns == 20_053 * US
    # The kernels of a graph take one place together.
    assert once(many(QUEUE_LENGTH + 5, in_graph=True)).step_ns == 20_000 * US


def test_threads_that_launch_side_by_side_wait_each_for_itself() -> None:
    first = [replace(kernel(1, 500, 0), thread=0), replace(waits(1, WAIT_FOR), thread=0)]
    second = [replace(kernel(1, 5, 1), thread=1), replace(own(100), thread=1)]
    # The second thread goes on to 103 while the first waits until 504.
    side_by_side = once(
        [first[0], second[0], first[1], *second[1:], replace(kernel(1, 600, 1), thread=1)], threads=True
    )
    # Launched at 104, not behind the wait at 504.
    assert side_by_side.step_ns == (104 + 3 + 600) * US
    # A thread that was waited for hands on that it is late.
    joined = replace(kernel(1, 600, 1), thread=1, resumes=True)
    assert (
        once([first[0], second[0], first[1], *second[1:], joined], threads=True).step_ns == (504 + 101 + 3 + 600) * US
    )
    alone = once([first[0], second[0], first[1], *second[1:], replace(kernel(1, 600, 1), thread=1)])
    assert alone.step_ns == (504 + 101 + 3 + 600) * US


def test_the_gpu_may_be_behind_when_the_first_step_begins() -> None:
    # Free at 50, done at 70: 20 behind the step before.
    found = replay(steps([kernel(1, 20)]), [0], backlog_ns=50 * US)
    assert found.step_ns == 20 * US


def test_nothing_takes_no_time() -> None:
    assert replay(steps(), [0]) == Replayed(0.0, 0.0, 0.0)
    assert once([]) == Replayed(0.0, 0.0, 0.0)


_ROWS = st.lists(
    st.builds(Row, st.integers(0, 50), st.integers(0, 50), st.sampled_from([0, 1, WAIT, ALONE])), max_size=40
)


def kernels_of(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.stream >= 0]


@given(_ROWS, st.integers(0, 3))
def test_a_step_takes_as_long_as_the_cpu_or_a_stream_at_least_and_as_all_of_them_at_most(
    rows: list[Row], gap: int
) -> None:
    found = once(rows, gap)
    kernels = kernels_of(rows)
    of_streams = [sum(row.gpu_us for row in kernels if row.stream == which) * US for which in (0, 1)]
    host = sum(row.host_us for row in rows) * US
    assert found.host_ns == host
    assert max(of_streams) - 1e-6 <= found.gpu_ns <= sum(of_streams) + 1e-6
    assert max(host, *of_streams) <= found.step_ns + 1e-6
    assert found.step_ns <= host + sum(of_streams) + len(kernels) * (LAUNCH_LATENCY_NS + gap * US) + 1e-6


@given(_ROWS)
def test_steps_over_and_over_are_never_shorter_than_the_cpus_or_the_gpus_work(rows: list[Row]) -> None:
    found = again(rows)
    assert found.step_ns >= found.host_ns
    assert found.step_ns >= found.gpu_ns - 1e-6


@given(_ROWS.filter(bool), st.data())
def test_a_longer_kernel_never_makes_one_step_shorter(rows: list[Row], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(rows) - 1))
    longer = list(rows)
    longer[at] = replace(rows[at], gpu_us=rows[at].gpu_us + 10)
    assert once(longer).step_ns >= once(rows).step_ns


@pytest.mark.parametrize("copies", [2, 5])
def test_equal_iterations_have_one_step(copies: int) -> None:
    rows = [kernel(3, 20), waits(), kernel(4, 5, 1), own(9)]
    # 3 + 3 + 20 to the wait, then 4 and 9 of the CPU, while the last kernel runs from 33 to 38.
    assert replay(steps(*[rows] * copies), [0, 0]).step_ns == 39 * US


_MANY_ROWS = st.lists(
    st.builds(
        Row,
        st.floats(0, 5),
        st.floats(0, 9),
        st.sampled_from([0, 1, 2, 0, 1, 2, 0, WAIT, ALONE, WAIT_FOR - 1, WAIT_FOR_MARK - 7]),
        joins=st.sampled_from([None] * 9 + [(7,)]),
        mark=st.sampled_from([-1, -1, 7]),
        lag_us=st.sampled_from([0.0, 0.0, 1.1]),
        in_graph=st.booleans(),
        thread=st.sampled_from([0] * 9 + [1]),
        resumes=st.sampled_from([False] * 9 + [True]),
    ),
    max_size=60,
)


@given(_MANY_ROWS, st.integers(1, 90), st.integers(0, 2), st.booleans())
def test_launches_in_a_row_by_columns_are_what_they_are_one_by_one(
    rows: list[Row], copies: int, gap: int, threads: bool
) -> None:
    # More than the queue holds, too.
    iterations = steps(rows * copies, rows, rows, gap_us=gap, threads=threads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MANY", 1)
        patch.setattr(module, "_FEW_JOINS", 100)
        by_columns = replay(iterations, [0, 0, 1])
        patch.setattr(module, "_MANY", 1 << 62)
        assert by_columns == replay(iterations, [0, 0, 1])
