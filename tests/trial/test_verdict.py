"""Whether a training is the same: what another seed differs by is the yardstick."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from tb_dlprof_plugin.trial.protocol import Checks
from tb_dlprof_plugin.trial.verdict import BROKEN, DIFFERS, NOISE, SAME, compare

STEPS = 16


def checks(seed: int, scale: float = 1.0, rate: float = 0.1, noise: float = 0.05) -> Checks:
    """A training whose batches differ by some percent."""
    drawn = random.Random(seed)
    losses = [2.3 - 0.02 * step + drawn.gauss(0.0, noise) for step in range(STEPS)]
    norms = [math.exp(drawn.gauss(0.0, noise)) for _ in range(STEPS)]
    return Checks(
        loss=list(losses),
        gradient_norm=list(norms),
        update_norm=[rate * one * scale for one in norms],
        skipped=[False] * STEPS,
        hyperparameters=[{"SGD.0.lr": rate, "SGD.0.momentum": 0.9}] * STEPS,
    )


def rounded(of: Checks, by: float) -> Checks:
    return replace(of, loss=[one * (1 + by) for one in of.loss if one], gradient_norm=[
        one * (1 - by) for one in of.gradient_norm if one])  # fmt: skip


BASELINE, SEEDS = checks(1), [checks(2)]


def test_equal_series_are_the_same_to_the_bit() -> None:
    assert compare(BASELINE, checks(1), SEEDS).verdict == SAME


def test_rounding_is_within_the_noise() -> None:
    assert compare(BASELINE, rounded(BASELINE, 0.002), SEEDS).verdict == NOISE


def test_a_script_that_does_not_repeat_its_steps_is_no_yardstick_for_what_differs_slightly() -> None:
    """One that acts in a world of its own: the same steps differ without a remedy."""
    world = rounded(checks(1, noise=0.3), 0.05)
    changed = rounded(checks(1, noise=0.3), 0.15)
    assert compare(checks(1, noise=0.3), changed, [], repeated=world).verdict is None
    assert compare(checks(1, noise=0.3), changed, [], repeated=checks(1, noise=0.3)).verdict == DIFFERS
    clearly = checks(1, noise=0.3, scale=3.0)
    assert compare(checks(1, noise=0.3), clearly, [], repeated=world).verdict == DIFFERS


def test_another_seed_is_within_its_own_noise() -> None:
    assert compare(BASELINE, checks(3), SEEDS).verdict == NOISE


def test_a_learning_rate_that_is_set_is_named() -> None:
    found = compare(BASELINE, checks(1, rate=0.2), SEEDS)
    assert found.verdict == DIFFERS
    assert "lr is 0.2 instead of 0.1 from step 0 on" in found.detail


def test_updates_that_are_too_large_show_where_no_hyperparameter_says_so() -> None:
    found = compare(BASELINE, checks(1, scale=1.5), SEEDS)
    assert found.verdict == DIFFERS
    assert "parameter update" in found.detail


def test_a_shift_of_all_steps_shows_where_steps_differ_by_more_than_it() -> None:
    before, seeds = checks(1, noise=0.5), [checks(2, noise=0.5)]
    variant = checks(1, noise=0.5)
    variant.gradient_norm = [1.5 * (one or 0) for one in variant.gradient_norm]
    found = compare(before, variant, seeds)
    assert (found.verdict, found.detail) == (DIFFERS, "gradient norm is 50 % larger in the mean step")


@pytest.mark.parametrize("noise", [0.05, 0.5])
def test_other_random_numbers_are_no_shift(noise: float) -> None:
    before, seeds = checks(1, noise=noise), [checks(2, noise=noise)]
    found = [compare(before, checks(seed, noise=noise), seeds, random=True) for seed in range(3, 203)]
    assert sum(one.verdict == DIFFERS for one in found) <= 2


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_broken(value: float) -> None:
    variant = checks(1)
    variant.loss[5] = value
    found = compare(BASELINE, variant, SEEDS)
    assert (found.verdict, "step 5" in found.detail) == (BROKEN, True)


def test_an_autocast_that_overflows_is_broken_and_a_scale_that_is_still_found_is_not() -> None:
    variant = checks(1)
    variant.skipped = [True] * 2 + [False] * 14
    variant.gradient_norm[:2] = [math.inf, math.inf]
    assert compare(BASELINE, variant, SEEDS).verdict == NOISE
    variant.skipped = [True] * 12 + [False] * 4
    assert compare(BASELINE, variant, SEEDS).verdict == BROKEN


def test_a_loss_that_leaves_its_range_is_broken() -> None:
    variant = checks(1)
    variant.loss[9] = 40.0
    assert compare(BASELINE, variant, SEEDS).verdict == BROKEN


def test_another_training_differs_by_what_it_is() -> None:
    assert compare(BASELINE, checks(1), SEEDS, training="twice the batch").detail == "twice the batch"
