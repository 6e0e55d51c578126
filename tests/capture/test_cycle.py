"""What is measured in each step of a cycle."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from torch.profiler import ProfilerAction, schedule

from tb_dlprof_plugin.capture import cycle
from tb_dlprof_plugin.capture.cycle import LOOK_AHEAD, MOST_TIMED, LookAhead, StepKind, StepKinds
from tb_dlprof_plugin.capture.schedule import DEFAULT, make_schedule

LETTERS = {
    StepKind.REST: ".",
    StepKind.TIMED: "t",
    StepKind.LIGHT_WARMUP: "w",
    StepKind.LIGHT: "L",
    StepKind.FULL: "F",
}


@pytest.fixture(autouse=True)
def _gpu(monkeypatch):
    """As where a GPU is in use."""
    monkeypatch.setattr(cycle, "light_is_possible", lambda: True)


def plan(options: dict[str, int], steps: int, light: bool = True) -> str:
    """A letter a step, as a session goes through them."""
    ask = make_schedule(options)
    kinds, leading, light_due, letters = StepKinds(light), True, False, ""
    # The first step begins without a boundary.
    kinds.since = -1
    for step in range(steps):
        if ask(step) is not ProfilerAction.NONE:
            letters += LETTERS[kinds.full()]
            continue
        if letters.endswith("F"):
            leading, light_due = False, not letters.rstrip("F").endswith("L")
        letters += LETTERS[kinds.outside(ask, step, leading=leading, light_after=light_due)]
    return letters


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (DEFAULT, ".tttttwLLL" + "F" * 12 + ".." + "t" * MOST_TIMED + "...."),
        # Room for the light window before the full one, to the step.
        ({"wait": 8, "warmup": 1, "active": 1, "repeat": 1}, ".tttwLLLFF..tttt"),
        # None: it comes after.
        ({"wait": 7, "warmup": 1, "active": 1, "repeat": 1}, ".ttttttFF.wLLL.tttt"),
        ({"wait": 0, "warmup": 1, "active": 2, "repeat": 1}, "FFF.wLLL.tttt"),
        # Cycles that follow each other share the steps between them.
        ({"wait": 9, "warmup": 1, "active": 1, "repeat": 2}, ".ttttwLLLFF..tttwLLLFF..ttt"),
        ({"wait": 8, "warmup": 1, "active": 1, "repeat": 2}, ".tttwLLLFF..ttttttFF.wLLL.tt"),
        ({"wait": 4, "warmup": 1, "active": 1, "repeat": 2}, ".tttFF..ttFF.wLLL.tt"),
    ],
)
def test_plan_of_a_schedule(options, expected):
    assert plan(options, len(expected)) == expected


def test_without_a_gpu_the_steps_of_the_light_window_are_timed():
    assert plan(DEFAULT, 26, light=False) == "." + "t" * 9 + "F" * 12 + ".." + "tt"


def torchs_own(schedule):
    """A schedule that counts as torch's, and the steps that it is asked for."""
    asked = []

    def ask(step):
        asked.append(step)
        return schedule(step)

    ask.__module__ = "torch.profiler.profiler"
    return ask, asked


def test_a_schedule_that_counts_how_often_it_is_asked_is_not_asked_for_steps_to_come():
    asked = []

    def counting(step):
        asked.append(step)
        return ProfilerAction.NONE

    assert LookAhead().steps_until_full(counting, 3) is None
    assert asked == []


@pytest.mark.parametrize(
    "options",
    [
        {"wait": 5, "warmup": 1, "active": 1},
        {"wait": 50, "warmup": 1, "active": 1, "repeat": 2},
        {"wait": LOOK_AHEAD, "warmup": 1, "active": 3, "repeat": 1},
        {"wait": 0, "warmup": 1, "active": 2, "skip_first": LOOK_AHEAD + 1, "repeat": 1},
        {"wait": 1, "warmup": 1, "active": 1},
    ],
)
def test_the_next_full_window_is_seen_from_each_step_before_it_and_each_step_asked_for_once(options):
    plain = schedule(**options)
    ask, asked = torchs_own(plain)
    ahead, steps = LookAhead(), 120
    full = [step for step in range(steps + LOOK_AHEAD + 1) if plain(step) is not ProfilerAction.NONE]
    for step in range(steps):
        # As a session does: not within the window.
        if step not in full:
            nearest = next((one - step for one in full if step <= one <= step + LOOK_AHEAD), None)
            assert ahead.steps_until_full(ask, step) == nearest
    assert len(asked) == len(set(asked))
    assert len(asked) <= steps + LOOK_AHEAD


def test_where_steps_were_passed_over_all_is_asked_anew():
    ahead, plain = LookAhead(), schedule(wait=20, warmup=1, active=1, repeat=2)
    assert [ahead.steps_until_full(plain, step) for step in (0, 4, 5, 10, 22, 2, 3)] == [
        None,
        16,
        15,
        10,
        None,
        None,
        None,
    ]
    assert ahead.steps_until_full(plain, 20) == 0
    assert ahead.steps_until_full(plain, 21) == 0
