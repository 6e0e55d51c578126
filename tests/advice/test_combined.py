"""What findings save together, on a step of two kernels that the CPU waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.combined import combined
from tb_dlprof_plugin.advice.savings import Saving, shorter_step, stated
from tb_dlprof_plugin.simulation.change import Change
from tb_dlprof_plugin.storage.facts import RunFacts


@pytest.fixture
def case(new_trace: Callable[..., Any]) -> Case:
    """Steps of 1000 us: kernels of 500 and 300, which the CPU waits for, and 190 of the CPU's own work."""
    trace = new_trace()
    trace.gpu()
    for number in range(4):
        at = 1000 * number
        trace.step(number, at, 1000)
        trace.launch("first", at + 5, at + 8, 500)
        trace.launch("second", at + 10, at + 508, 300)
        trace.runtime(at + 12, 798, name="cudaStreamSynchronize")
    frame = trace.frame(facts=RunFacts(unprofiled_step_ns=1_000_000))
    return Case(frame, frame.selection())


def _without(case: Case, *names: str, left: float = 0.0) -> Saving:
    """What some kernels take."""
    strings, kernels = case.profile.strings, case.profile.kernels
    chosen = np.array([strings[i] in names for i in kernels.name.tolist()])[case.profile.launches.kernel]
    change = Change(gpu=np.where(chosen, left, 1.0))
    return shorter_step(case, change, change, change, "")


def _together_us(case: Case, *savings: tuple[Saving, str]) -> float:
    found = combined(case, savings)
    assert found is not None
    assert found.added_up_ns == sum(saving.expected_ns for saving, _ in savings)
    assert found.low_ns <= found.expected_ns <= found.high_ns <= case.step_ns
    return found.expected_ns / 1000


def test_nothing_comes_of_nothing(case: Case) -> None:
    assert combined(case, []) is None


def test_savings_of_different_kernels_add_up_as_far_as_the_cpu_lets_them(case: Case) -> None:
    first, second = _without(case, "first", left=0.5), _without(case, "second", left=0.5)
    assert (first.expected_ns, second.expected_ns) == (
        pytest.approx(250_000, rel=0.01),
        pytest.approx(150_000, rel=0.01),
    )
    assert _together_us(case, (first, ""), (second, "")) == pytest.approx(400, rel=0.01)


def test_of_the_same_kernels_each_saves_its_share_of_what_is_left(case: Case) -> None:
    # A half of 500, then a half of the other 250.
    half = _without(case, "first", left=0.5)
    assert _together_us(case, (half, ""), (half, "")) == pytest.approx(375, rel=0.01)
    # What goes altogether goes once.
    gone = _without(case, "second")
    assert _together_us(case, (gone, ""), (gone, "")) == pytest.approx(gone.expected_ns / 1000, rel=0.01)


def test_of_alternatives_the_largest_counts(case: Case) -> None:
    amp, tf32 = _without(case, "first", "second", left=0.4), _without(case, "first", left=0.5)
    assert _together_us(case, (amp, "precision"), (tf32, "precision")) == pytest.approx(480, rel=0.01)


def test_what_no_replay_shows_takes_its_share_of_the_rest(case: Case) -> None:
    ranks = stated(case, 100_000, 300_000, 400_000, "")
    half = _without(case, "first", left=0.5)
    # 250 go, and three tenths of the 750 that are left.
    assert _together_us(case, (half, ""), (ranks, "")) == pytest.approx(250 + 0.3 * 750, rel=0.01)


def test_never_more_than_the_step_and_never_less_than_the_best(case: Case) -> None:
    everything = stated(case, 0, 1_500_000, 2_000_000, "")
    assert (everything.expected_ns, everything.high_ns) == (1_000_000, 1_000_000)
    assert _together_us(case, (everything, ""), (everything, "")) == 1000
    assert _together_us(case, (_without(case, "first"), ""), (stated(case, 0, 700_000, 700_000, ""), "")) >= 700
