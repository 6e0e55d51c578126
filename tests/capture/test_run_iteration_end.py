"""Which optimizer ends an iteration."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tb_dlprof_plugin.capture.launcher.step_boundary import StepBoundary


class Named:
    """Stands for an optimizer: only which one it is counts."""


def ends(pattern: str, rounds: int) -> str:
    """Of a pattern of optimizers, repeated, the steps that end an iteration; "." for the others."""
    named = {name: Named() for name in set(pattern)}
    end = StepBoundary()
    return "".join(name if end.ends(named[name]) else "." for name in pattern * rounds)


@pytest.mark.parametrize(
    ("pattern", "settled"),
    [
        ("a", "a"),
        ("ab", ".b"),
        ("abc", "..c"),
        ("dg", ".g"),
        ("dddg", "...g"),
        ("ddg", "..g"),
        ("gddd", "g..."),
    ],
)
def test_one_step_of_each_round(pattern, settled):
    assert ends(pattern, 50)[len(pattern) * 2 :] == settled * 48


def test_the_first_round_may_end_an_iteration_too_many():
    assert ends("dddg", 2) == "dddg...g"


def test_an_optimizer_that_takes_the_place_of_another():
    old, new = Named(), Named()
    end = StepBoundary()
    assert all(end.ends(old) for _ in range(1000))
    assert all(end.ends(new) for _ in range(1000))


def test_an_optimizer_that_comes_back_ends_iterations_again():
    old, new = Named(), Named()
    end = StepBoundary()
    for _ in range(1000):
        end.ends(old)
    for _ in range(20):
        end.ends(new)
    assert sum(end.ends(old) for _ in range(1000)) >= 700
