"""When a gain is called: quantiles against tables, and how often noise alone is taken for one."""

from __future__ import annotations

import math
import random

import pytest

from tb_dlprof_plugin.trial.statistics import LEAST_QUADS, LOOKS, gain, is_lost, student, together


@pytest.mark.parametrize(
    ("degrees", "two_sided_95", "two_sided_99"),
    [(1, 12.706, 63.657), (2, 4.303, 9.925), (3, 3.182, 5.841), (4, 2.776, 4.604), (10, 2.228, 3.169)],
)  # fmt: skip
def test_quantiles_are_those_of_the_tables(degrees: int, two_sided_95: float, two_sided_99: float) -> None:
    assert student(0.975, degrees) == pytest.approx(two_sided_95, abs=6e-4)
    assert student(0.995, degrees) == pytest.approx(two_sided_99, abs=6e-4)


def test_a_gain_is_the_share_of_time_that_is_saved() -> None:
    found = gain([math.log(0.8)] * 6)
    assert found.percent == pytest.approx(20.0)
    assert found.certain
    assert not found.certain_loss


def test_nothing_is_certain_before_enough_quads() -> None:
    assert not gain([-0.5, -0.5001, -0.4999][: LEAST_QUADS - 1]).certain
    assert math.isinf(gain([-0.5]).high)
    assert math.isnan(gain([]).percent)


def test_noise_alone_is_rarely_called_a_gain_or_a_loss_however_often_it_is_looked_at() -> None:
    drawn = random.Random(7)
    gains = losses = 0
    trials = 2000
    for _ in range(trials):
        ratios = [drawn.gauss(0.0, 0.05) for _ in range(LOOKS[-1])]
        looks = [gain(ratios[:count]) for count in LOOKS]
        gains += any(one.certain for one in looks)
        losses += any(is_lost(one) for one in looks)
    assert gains <= 0.03 * trials
    assert losses <= 0.03 * trials


def test_a_busy_machine_s_noise_is_rarely_called_either() -> None:
    # GIVEN ratios of which many lie far off, and some among others of their kind
    drawn = random.Random(3)
    trials, gains, losses = 2000, 0, 0
    for _ in range(trials):
        ratios = [math.tan(math.pi * (drawn.random() - 0.5)) * drawn.choice((0.01, 0.1)) for _ in range(LOOKS[-1])]
        looks = [gain(ratios[:count]) for count in range(LOOKS[0], LOOKS[-1] + 1)]
        gains += any(one.certain for one in looks)
        losses += any(is_lost(one) for one in looks)
    assert gains <= 0.03 * trials
    assert losses <= 0.03 * trials


def test_a_gain_on_a_busy_machine_is_called_by_its_signs() -> None:
    drawn, called, trials = random.Random(4), 0, 200
    for _ in range(trials):
        noise = [drawn.gauss(0.0, 0.02 if drawn.random() < 0.8 else 0.5) for _ in range(LOOKS[-1])]
        found = gain([math.log(0.9) + one for one in noise])
        called += found.certain and found.low < 10 < found.high
    # Student's t alone calls less than half of them.
    assert called > 0.8 * trials


def test_a_real_gain_of_five_percent_is_called() -> None:
    drawn = random.Random(8)
    ratios = [math.log(0.95) + drawn.gauss(0.0, 0.02) for _ in range(LOOKS[-1])]
    assert gain(ratios).certain


def test_a_gain_among_quads_that_lie_far_off_is_certain_by_its_signs() -> None:
    ratios = [math.log(one) for one in (0.6, 0.61, 0.59, 0.6, 0.62, 0.9, 0.1, 0.6, 0.58, 0.97)]
    found = gain(ratios)
    assert found.certain
    assert found.percent == pytest.approx(40, abs=1)
    assert 0 < found.low < found.percent < found.high
    assert not gain([*ratios[:-2], 0.1, 0.05]).certain


def test_two_quads_of_each_of_several_have_the_noise_of_all() -> None:
    drawn, holds, widths = random.Random(5), 0, []
    for _ in range(200):
        several = [[math.log(0.9) + drawn.gauss(0.0, 0.05) for _ in range(2)] for _ in range(8)]
        found = together(several)
        holds += sum(one.low <= 10 <= one.high for one in found)
        widths.append(found[0].half_width)
        assert not any(one.certain for one in found)
    assert 0.85 * 1600 < holds < 0.99 * 1600
    # Of two quads alone, Student's t makes it about 40 points.
    assert sorted(widths)[100] == pytest.approx(100 * 0.9 * 1.96 * 0.05 / math.sqrt(2), rel=0.1)
    assert together([]) == []
