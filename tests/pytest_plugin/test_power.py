"""Verdicts from log ratios, and how often a slow-down gets each of them."""

from __future__ import annotations

import math
import random

import pytest

from tb_dlprof_plugin.pytest_plugin.judging import decided, verdict, verdict_of_pairs
from tb_dlprof_plugin.pytest_plugin.power import FOUND, detected, power_of, smallest
from tb_dlprof_plugin.trial.statistics import LEAST_QUADS, LOOKS

ROUND, PROCESSES = 0.03, 0.01


def _run(drawn: random.Random, slowdown_percent: float = 0.0) -> list[float]:
    """The rounds of a pair of processes."""
    offset = drawn.gauss(0.0, PROCESSES) + math.log1p(slowdown_percent / 100)
    return [offset + drawn.gauss(0.0, ROUND) for _ in range(LOOKS[-1])]


def _as_a_test(drawn: random.Random, slowdown_percent: float, limit_percent: float) -> str:
    def measure() -> list[float]:
        taken: list[float] = []
        for ratio in _run(drawn, slowdown_percent):
            taken.append(ratio)
            if decided(taken, limit_percent):
                break
        return taken

    return verdict_of_pairs(measure, limit_percent)[0].verdict


@pytest.mark.parametrize("slowdown_percent", [0.0, 3.0, 5.0])
def test_a_slowdown_is_found_as_often_as_runs_of_the_same_code_predict(slowdown_percent: float) -> None:
    drawn = random.Random(5)
    predicted = detected([_run(drawn) for _ in range(60)], slowdown_percent, 1.0).slower_percent
    tests = 300
    found = sum(_as_a_test(drawn, slowdown_percent, 1.0) == "slower" for _ in range(tests))
    assert abs(100 * found / tests - predicted) < 12
    if not slowdown_percent:
        assert found <= 0.02 * tests


def test_the_smallest_slowdown_is_found_and_a_smaller_one_is_not() -> None:
    runs = [_run(random.Random(seed)) for seed in range(12)]
    least = smallest(runs, 1.0)
    assert least is not None
    assert detected(runs, least, 1.0).slower_percent >= FOUND > detected(runs, least - 0.1, 1.0).slower_percent
    assert smallest([[2 * (-1) ** k for k in range(4)]] * 2, 1.0) is None
    shares = detected(runs, least, 1.0)
    assert shares.slower_percent + shares.cannot_say_percent + shares.not_slower_percent == pytest.approx(100)


@pytest.mark.parametrize(
    ("runs", "words"),
    [([[0.0] * 4], "two runs are needed"), ([[0.0] * 4, [0.0] * 3], "time for 3 of 4 rounds; give the test more")],
)
def test_too_few_runs_or_rounds_are_refused(runs: list[list[float]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        power_of({"log_ratios": runs, "limit_percent": 5.0})


@pytest.mark.parametrize(
    ("percent", "limit", "expected"),
    [(10.0, 5.0, "slower"), (3.0, 5.0, "not_slower"), (5.0, 5.01, "cannot_say"), (-10.0, 5.0, "not_slower")],
)
def test_three_verdicts(percent: float, limit: float, expected: str) -> None:
    noise = [0.002, -0.002, 0.001, -0.001]
    ratios = [math.log1p(percent / 100) + one for one in noise]
    assert verdict(ratios, limit).verdict == expected
    assert bool(decided(ratios, limit)) == (expected != "cannot_say")


def test_nothing_is_said_of_too_few_rounds() -> None:
    found = verdict([0.5] * (LEAST_QUADS - 1), 5.0)
    assert (found.verdict, found.percent) == ("cannot_say", None)
    assert "give more seconds" in found.why


def test_slower_has_to_hold_in_a_second_pair_unless_it_is_plain() -> None:
    slow, same = [0.1, 0.101, 0.099, 0.1], [-0.001, 0.0, 0.001, -0.001]
    pairs = iter([slow, same])
    found, ratios = verdict_of_pairs(lambda: next(pairs), 5.0)
    assert found.verdict == "cannot_say"
    assert len(ratios) == 8
    pairs = iter([slow, slow])
    assert verdict_of_pairs(lambda: next(pairs), 5.0)[0].verdict == "slower"
    assert verdict_of_pairs(iter([[0.5, 0.501, 0.499, 0.5]]).__next__, 5.0)[0].verdict == "slower"
