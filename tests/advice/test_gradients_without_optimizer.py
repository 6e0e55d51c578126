"""Gradients that no optimizer uses, on a recorded perceptron whose facts say so."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import msgspec
import pytest
from advice.helpers import finding_of, status_of
from support.recorded_runs import ROOT

from tb_dlprof_plugin.advice.rules.optimizer import gradients_without_optimizer
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles


@cache
def _perceptron() -> ProfileView:
    return ProfileView(read_profiles(ROOT / "tests/data/memory_plan/recorded/perceptron/base")[0].profile)


def _with(view: ProfileView, **facts: object) -> ProfileView:
    return ProfileView(replace(view.profile, facts=msgspec.structs.replace(view.profile.facts, **facts)))


@pytest.mark.parametrize(
    ("facts", "outcome", "words"),
    [
        ({}, "not_applicable", "was not recorded"),
        ({"unstepped_gradients": 0}, "silent", "Every gradient belongs"),
        (
            {"unstepped_gradients": 4, "unstepped_gradient_bytes": 33_570_816, "unstepped_gradient_modules": ["stem"]},
            "fired",
            "4 parameters of stem",
        ),
    ],
)
def test_gradients_that_no_optimizer_uses_are_named(facts, outcome: str, words: str) -> None:
    status = status_of(_with(_perceptron(), **facts), "gradients_without_optimizer")
    assert (status.outcome, words in status.why) == (outcome, True), status.why


def test_the_backward_pass_of_what_comes_first_is_saved_and_of_what_comes_later_at_best() -> None:
    facts = {"unstepped_gradients": 2, "unstepped_gradient_bytes": 1 << 24}
    first, later = (
        finding_of(
            _with(_perceptron(), **facts, unstepped_gradient_modules=[name]), "gradients_without_optimizer"
        ).saving
        for name in ("blocks.0", "blocks.6")
    )
    assert first is not None
    assert later is not None
    # The stem is trained and lies before both, so their gradients go on to it; the block itself has a weight gradient.
    assert later.high_ns > 0
    assert later.low_ns <= 0.02 * later.high_ns + later.expected_ns
    every = _with(_perceptron(), **facts, unstepped_gradient_modules=["stem", *(f"blocks.{i}" for i in range(8))])
    body = finding_of(every, "gradients_without_optimizer").saving
    assert body is not None
    # All but the head: two thirds of a step are its backward pass, of which the head's is small.
    assert 40 < body.percent < 70


def test_a_fixed_body_is_seen_between_two_runs() -> None:
    before, after = (_with(_perceptron(), unstepped_gradients=count) for count in (4, 0))
    assert gradients_without_optimizer.was_applied(before, after) == "no gradients without an optimizer"
    assert gradients_without_optimizer.was_applied(after, before) == ""
