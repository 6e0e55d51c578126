"""How two steps differ, and how sure that is, by how each of them is known."""

from __future__ import annotations

import math

import pytest

from tb_dlprof_plugin.comparison.step_intervals import (
    LEAST_ERROR_BETWEEN_RUNS,
    TimedStep,
    agree,
    difference_interval,
    ratio_interval,
)
from tb_dlprof_plugin.simulation.estimate import StepEstimate, StepSource


def step(ns: float, below: float, above: float, source: StepSource = "measured", *iterations: int) -> TimedStep:
    """A step whose interval goes down and up by these factors."""
    return TimedStep(StepEstimate(ns, ns / below, ns * above, source, 2 * ns), iterations or (1, 9))


def test_errors_of_both_steps_are_added_in_quadrature() -> None:
    # WHEN the base may be 1.3 times as short and 1.1 as long, the candidate 1.2 and 1.4
    found = ratio_interval(step(200.0, 1.3, 1.1), step(100.0, 1.2, 1.4))
    assert found is not None
    low, high = found
    # THEN a short base and a long candidate make the speedup small
    assert low == pytest.approx(2 * math.exp(-math.hypot(math.log(1.3), math.log(1.4))))
    assert high == pytest.approx(2 * math.exp(math.hypot(math.log(1.1), math.log(1.2))))


def test_no_step_is_known_better_than_its_source_allows() -> None:
    for source, least in LEAST_ERROR_BETWEEN_RUNS.items():
        low, high = step(100.0, 1.0, 1.0, source).ends_ns
        assert (low, high) == (pytest.approx(100 / (1 + least)), pytest.approx(100 * (1 + least)))
    assert step(100.0, 1.3, 1.0, "simulated").ends_ns == (pytest.approx(100 / 1.3), pytest.approx(105))
    # An interval from 0 is as wide as one by ten times.
    boundless = TimedStep(StepEstimate(100.0, 0.0, 5000.0, "simulated", 200.0), ())
    assert boundless.ends_ns == (pytest.approx(10), pytest.approx(1000))


def test_recorded_steps_vary_with_their_iterations_and_timed_ones_do_not() -> None:
    iterations = (90, 110, 95, 105)
    timed = ratio_interval(step(100.0, 1.02, 1.02), step(100.0, 1.02, 1.02, "measured", *iterations))
    recorded = ratio_interval(step(100.0, 1.02, 1.02), step(100.0, 1.02, 1.02, "recorded", *iterations))
    assert timed is not None
    assert recorded is not None
    floor = math.hypot(math.log(1.02), math.log(1.02))
    assert timed[1] == pytest.approx(math.exp(floor))
    # Student's t of 3 degrees of freedom times the standard error, 3.182 * sqrt(250 / 3 / 4) / 100.
    scatter = 3.182 * math.sqrt(250 / 3 / 4) / 100
    assert recorded[1] == pytest.approx(math.exp(math.hypot(floor, scatter)))


def test_one_recorded_iteration_tells_no_interval_but_a_timed_step_does() -> None:
    timed, recorded = step(100.0, 1.02, 1.02, "measured", 100), step(100.0, 1.0, 1.0, "recorded", 100)
    assert ratio_interval(timed, timed) is not None
    assert ratio_interval(timed, recorded) is None
    assert difference_interval(recorded, timed) is None


def test_the_difference_is_candidate_less_base_with_the_candidate_scaled() -> None:
    base, candidate = step(200.0, 1.1, 1.1), step(100.0, 1.25, 1.25)
    found = difference_interval(base, candidate)
    assert found == (
        pytest.approx(-100 - math.hypot(20, 200 - 160 - 20)),
        pytest.approx(-100 + math.hypot(25, 200 - 200 / 1.1)),
    )
    scaled = difference_interval(base, candidate, scale=2.0)
    assert scaled == (pytest.approx(-math.hypot(40, 20)), pytest.approx(math.hypot(50, 200 - 200 / 1.1)))


@pytest.mark.parametrize(
    ("was", "same"),
    [
        ((31.0, 31.0, 31.0), True),
        ((36.0, 36.0, 36.0), False),
        ((32.0, 36.0, 40.0), True),
        ((24.5, 25.0, 25.5), False),
        ((24.5, 25.0, 30.0), True),
    ],
)
def test_values_agree_where_their_gap_is_within_both_intervals_together(
    was: tuple[float, float, float], same: bool
) -> None:
    assert agree((28.0, 30.0, 35.0), was) is same
