"""The simulated DataLoader: rates, order, hand-over and cores."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tb_dlprof_plugin.simulation.loader import LoaderWork, fewest_workers, steps_with

MS = 1e6


def work(make_off: object = 40.0, make_cpu: float = 0.0, train: float = 10.0, **fields: object) -> LoaderWork:
    """In ms; handing over takes no time, and no other program runs, unless given."""
    off = np.atleast_1d(np.asarray(make_off, dtype=float)) * MS
    nothing = np.zeros(len(off))
    given = LoaderWork(
        make_cpu=nothing + make_cpu * MS, make_off=off, alone_cpu=nothing + make_cpu * MS, put_cpu=nothing,
        unpickle=nothing, unpickle_wait=nothing, pin=nothing, handover=0.0, next_cpu=0.0,
        train=np.full(1, train * MS), train_cpu=np.zeros(1), prefetch=2, in_order=True, pins=False, cores=64.0,
    )  # fmt: skip
    return dataclasses.replace(given, **fields)  # type: ignore[arg-type]


def steps(of: LoaderWork, *counts: int) -> list[float]:
    return [one.ns / MS for one in steps_with(of, counts)]


def test_equal_batches_come_at_the_rate_of_all_workers_or_of_the_training() -> None:
    assert steps(work(), 0, 1, 2, 4, 8) == pytest.approx([50, 40, 20, 10, 10], rel=0.01)


def test_a_slow_batch_holds_up_those_behind_it_unless_any_may_come() -> None:
    skewed = work([12.0] * 9 + [120.0], train=6.0)
    mean = 22.8
    (in_order,), (any_order,) = steps(skewed, 4), steps(dataclasses.replace(skewed, in_order=False), 4)
    assert in_order > 1.3 * mean / 4
    assert mean / 4 <= any_order < 0.85 * in_order
    (more_ahead,) = steps(dataclasses.replace(skewed, prefetch=16), 4)
    assert more_ahead < 0.85 * in_order


def test_workers_that_compute_share_the_cores() -> None:
    computes = work(0.0, 40.0, cores=2.0)
    assert steps(computes, 1, 2, 4, 8) == pytest.approx([40, 20, 20, 20], rel=0.02)
    others = dataclasses.replace(computes, others=2.0)
    # Four threads for two cores: each runs at half speed; with four workers six, of which theirs are four.
    assert steps(others, 2, 4) == pytest.approx([40, 30], rel=0.02)


def test_the_training_s_own_threads_take_cores_from_workers() -> None:
    computes = work(0.0, 40.0, train=40.0, train_cpu=np.full(1, 80 * MS), cores=2.0)
    # 40 ms of a worker and 80 of two threads on two cores.
    assert steps(computes, 1) == pytest.approx([60], rel=0.05)


def test_serialising_a_batch_overlaps_with_waiting_for_the_next_and_not_with_computing_it() -> None:
    put = np.full(1, 20 * MS)
    assert steps(work(put_cpu=put), 1) == pytest.approx([40], rel=0.02)
    assert steps(work(0.0, 40.0, put_cpu=put), 1) == pytest.approx([60], rel=0.02)
    assert steps(work(put_cpu=3 * put), 1) == pytest.approx([60], rel=0.02)


def test_without_workers_a_batch_takes_what_it_takes_in_the_training_process() -> None:
    shared = work(0.0, 40.0, alone_cpu=np.full(1, 15 * MS), next_cpu=5 * MS)
    assert steps(shared, 0, 1) == pytest.approx([25, 40], rel=0.02)


def test_unpickling_is_the_training_s_own_time_unless_a_thread_pins() -> None:
    heavy = work(unpickle=np.full(1, 9 * MS), unpickle_wait=np.full(1, 6 * MS), pin=np.full(1, 2 * MS))
    assert steps(heavy, 8) == pytest.approx([25], rel=0.02)
    assert steps(dataclasses.replace(heavy, pins=True), 8) == pytest.approx([17], rel=0.02)


def test_the_fewest_workers_are_those_within_what_is_worth_it_of_the_shortest_step() -> None:
    found = steps_with(work(), (0, 1, 2, 4, 8))
    assert fewest_workers(found, 0.03).workers == 4
    assert fewest_workers(found, 1.5).workers == 2


def test_an_interval_holds_what_other_draws_give() -> None:
    skewed = steps_with(work([12.0] * 19 + [400.0], train=6.0), (4,), error=0.1)[0]
    assert skewed.low_ns < 0.9 * skewed.ns
    assert skewed.high_ns > 1.1 * skewed.ns
    even = steps_with(work(), (4,), error=0.1)[0]
    assert (even.low_ns, even.high_ns) == (pytest.approx(0.9 * even.ns), pytest.approx(1.1 * even.ns))
