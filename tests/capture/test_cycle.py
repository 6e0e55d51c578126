"""What is measured in each step of a cycle."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from torch.profiler import ProfilerAction, schedule

from tb_dlprof_plugin.capture.cycle import MOST_TIMED, StepKind, kind_outside, steps_until_full
from tb_dlprof_plugin.capture.schedule import DEFAULT, make_schedule

LETTERS = {
    StepKind.REST: ".",
    StepKind.TIMED: "t",
    StepKind.LIGHT_WARMUP: "w",
    StepKind.LIGHT: "L",
    StepKind.FULL: "F",
}


def plan(options: dict[str, int], steps: int, light: bool = True) -> str:
    """A letter a step, as a session goes through them."""
    ask = make_schedule(options)
    since, leading, light_due, letters = -1, True, False, ""
    for step in range(steps):
        if ask(step) is not ProfilerAction.NONE:
            letters += "F"
            since = -1
            continue
        if since < 0 and "F" in letters:
            before = letters.rstrip("F")
            leading, light_due = False, not before.endswith("L")
        since += 1
        kind = kind_outside(since, steps_until_full(ask, step), leading=leading, light_after=light_due, light=light)
        letters += LETTERS[kind]
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


def test_a_schedule_that_counts_how_often_it_is_asked_is_not_asked_for_steps_to_come():
    asked = []

    def counting(step):
        asked.append(step)
        return ProfilerAction.NONE

    assert steps_until_full(counting, 3) is None
    assert asked == []
    assert steps_until_full(schedule(wait=5, warmup=1, active=1), 3) == 2
    assert steps_until_full(schedule(wait=50, warmup=1, active=1), 3) is None
