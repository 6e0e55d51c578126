"""Which optimizer ends an iteration, and how iterations are counted."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tb_dlprof_plugin.capture.launcher.step_clock import StepBoundary, StepClock


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


def test_a_clock_tells_of_each_iteration_and_counts_those_in_which_it_rests():
    heard = []
    clock = StepClock(heard.append)
    optimizer = Named()
    for _ in range(2):
        clock.step(optimizer)
    clock.rest(3)
    for _ in range(4):
        clock.step(optimizer)
    assert (heard, clock.number) == ([1, 2, 6], 6)
    assert clock.optimizers == [optimizer]


def test_a_clock_that_rests_tells_of_another_optimizer_at_once_and_knows_what_it_counted():
    heard = []
    clock = StepClock(heard.append)
    first, second = Named(), Named()
    clock.step(first)
    clock.rest(1000)
    for _ in range(99):
        clock.step(first)
    for _ in range(100):
        clock.step(second)
    clock.step(first)
    assert heard[:100] == [1, *range(101, 200)]
    assert heard[-1] == clock.number == 200, "both have stepped as often"


def test_a_clock_that_was_woken_tells_of_the_next_iteration():
    heard = []
    clock = StepClock(heard.append)
    optimizer = Named()
    clock.step(optimizer)
    clock.rest(1000)
    clock.step(optimizer)
    clock.wake()
    clock.step(optimizer)
    assert heard == [1, 3]
