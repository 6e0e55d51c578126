"""Intervals of differences."""

from __future__ import annotations

import numpy as np
import pytest

from tb_dlprof_plugin.comparison.noise import differences, is_noise


def test_welchs_interval_of_a_textbook_case() -> None:
    # Means 20 and 22, variances 2.5 and 10 of five values each: t has 5.88 degrees of freedom, of which 5 are taken.
    a, b = np.array([[18.0, 19, 20, 21, 22]]), np.array([[18.0, 20, 22, 24, 26]])
    found = differences(a, b)
    half = 2.571 * np.sqrt(2.5 / 5 + 10 / 5)
    assert (found.low[0], found.high[0]) == (pytest.approx(2 - half), pytest.approx(2 + half))


def test_without_spread_every_difference_counts() -> None:
    found = differences(np.full((1, 3), 10), np.full((1, 3), 11))
    assert (found.low[0], found.high[0]) == (1, 1)
    assert is_noise(1, 1) is False


def test_one_iteration_tells_no_interval() -> None:
    found = differences(np.array([[1]]), np.array([[2, 3]]))
    assert np.isnan(found.low[0])
    assert is_noise(None, None) is None


def test_two_recordings_of_the_same_differ_by_noise_in_nineteen_of_twenty_cases() -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(100, 5, (2000, 6)), random.normal(100, 10, (2000, 10))
    found = differences(a, b)
    inside = ((found.low <= 0) & (found.high >= 0)).mean()
    assert 0.94 < inside < 0.98
