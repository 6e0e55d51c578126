"""What findings save together, on a step of two kernels and two waits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.claims import Claim, combined
from tb_dlprof_plugin.advice.finding import SavingItem


def _saving(expected_us: int, low_us: int = 0, high_us: int | None = None) -> SavingItem:
    high = expected_us if high_us is None else high_us
    return SavingItem(low_us * 1000, expected_us * 1000, high * 1000, 0.0, "")


@pytest.fixture
def case(new_trace: Any) -> Case:
    """One step of 1000 us: a kernel of 400, one of 200, the CPU's ops in between."""
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1000)
    trace.op("aten::mm", 0, 1000, dims=[[8, 8], [8, 8]], types=["float", "float"])
    trace.launch("ampere_sgemm_128x64_nn", 10, 100, 400)
    trace.launch("ampere_sgemm_128x64_nn", 20, 600, 200)
    frame = trace.frame()
    return Case(frame, frame.selection())


def _launches(case: Case, *rows: int) -> Any:
    chosen = np.zeros(len(case.profile.launches), dtype=np.bool_)
    chosen[list(rows)] = True
    return chosen


def _together_us(case: Case, *savings: tuple[SavingItem, Claim]) -> float:
    found = combined(case, savings)
    assert found is not None
    assert found.added_up_ns == sum(item.expected_ns for item, _ in savings)
    assert found.low_ns <= found.expected_ns <= found.high_ns <= case.step_ns
    return found.expected_ns / 1000


def test_nothing_comes_of_nothing(case: Case) -> None:
    assert combined(case, []) is None


def test_savings_of_different_time_add_up(case: Case) -> None:
    first, second = Claim(launches=_launches(case, 0)), Claim(launches=_launches(case, 1))
    assert _together_us(case, (_saving(100), first), (_saving(50), second)) == 150
    assert _together_us(case, (_saving(100), first), (_saving(80), Claim(waits=("cpu",)))) == 180


def test_of_the_same_time_each_saves_its_share_of_what_is_left(case: Case) -> None:
    both = Claim(launches=_launches(case, 0, 1))
    # A half of 600, then a half of the other 300.
    assert _together_us(case, (_saving(300), both), (_saving(300), both)) == 450
    # All of the 400, so that nothing is left of it for the other: it keeps its half of the 200.
    assert _together_us(case, (_saving(400), Claim(launches=_launches(case, 0))), (_saving(300), both)) == 500


def test_of_alternatives_the_largest_counts(case: Case) -> None:
    amp = Claim(launches=_launches(case, 0, 1), group="precision")
    tf32 = Claim(launches=_launches(case, 0), group="precision")
    assert _together_us(case, (_saving(300), amp), (_saving(350), tf32)) == 350
    assert _together_us(case, (_saving(300), amp), (_saving(200), tf32)) == 300


def test_never_more_than_the_step_and_never_less_than_the_best(case: Case) -> None:
    everything = Claim(launches=_launches(case, 0, 1), waits=("cpu", "other"))
    assert _together_us(case, (_saving(1500), everything), (_saving(900), everything)) == 1000
    # A promise beyond what it claims stays what it is.
    assert _together_us(case, (_saving(700), Claim(launches=_launches(case, 0)))) == 700
