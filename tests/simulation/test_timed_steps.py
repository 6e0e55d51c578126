"""The step from single unprofiled steps: robust against single long ones, as wide as the CPU's speed drifts."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.simulation.timed_steps import LEAST_ERROR, timed_step

MS = 1_000_000


def test_steps_that_are_all_alike_have_the_least_interval() -> None:
    value, low, high = timed_step([[10 * MS] * 5, [10 * MS] * 20])
    assert value == 10 * MS
    assert (low, high) == pytest.approx(((1 - LEAST_ERROR) * value, (1 + LEAST_ERROR) * value))


def test_a_single_long_step_changes_nothing() -> None:
    value, _, high = timed_step([[10 * MS] * 5, [10 * MS] * 10 + [900 * MS] + [10 * MS] * 9])
    assert value == 10 * MS
    assert high < 10.2 * MS


def test_steps_that_alternate_between_two_lengths_have_their_mean() -> None:
    value, _, _ = timed_step([[10 * MS, 20 * MS] * 10])
    assert value == 15 * MS


def test_a_cpu_that_drifts_makes_the_interval_wide() -> None:
    """Ten against twelve milliseconds: the middle of them is known to no better than by their difference."""
    value, low, high = timed_step([[10 * MS] * 20, [12 * MS] * 20])
    assert value == 11 * MS
    assert low <= 10 * MS
    assert high >= 12 * MS


def test_a_drift_within_one_group_counts_as_well() -> None:
    steady = timed_step([[10 * MS + (i % 2) * MS for i in range(40)]])
    drifting = timed_step([[10 * MS + i * MS // 8 for i in range(40)]])
    assert drifting[2] - drifting[1] > 3 * (steady[2] - steady[1])


def test_few_steps_count_less_than_many() -> None:
    value, _, _ = timed_step([[20 * MS] * 3, [10 * MS] * 100])
    assert 10 * MS < value < 13 * MS


def test_the_first_steps_of_a_training_that_has_just_begun_do_not_count() -> None:
    value, _, high = timed_step([[60 * MS, 14 * MS, 10 * MS, 10 * MS, 10 * MS], [10 * MS] * 20])
    assert value == 10 * MS
    assert high < 10.2 * MS
