"""What findings save together, on a step of two kernels that the CPU waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tb_dlprof_plugin.advice.combined_saving import combined
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.savings import Saving, shorter_step, stated
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.simulation.basis import Basis
from tb_dlprof_plugin.simulation.change import Change


@pytest.fixture
def context(new_trace: Callable[..., Any]) -> RuleContext:
    """Steps of 1000 us: kernels of 500 and 300, which the CPU waits for, and 190 of the CPU's own work."""
    trace = new_trace()
    trace.gpu()
    for number in range(4):
        at = 1000 * number
        trace.step(number, at, 1000)
        trace.launch("first", at + 5, at + 8, 500)
        trace.launch("second", at + 10, at + 508, 300)
        trace.runtime(at + 12, 798, name="cudaStreamSynchronize")
    view = trace.view(facts=RunFacts(unprofiled_step_ns=1_000_000))
    return RuleContext(view, view.selection())


def _without(context: RuleContext, *names: str, left: float = 0.0) -> Saving:
    """What some kernels take."""
    strings, kernels = context.profile.strings, context.profile.kernels
    chosen = np.array([strings[i] in names for i in kernels.name.tolist()])[context.profile.launches.kernel]
    change = Change(gpu=np.where(chosen, left, 1.0))
    return shorter_step(context, change, change, change, "")


def _together_us(context: RuleContext, *savings: tuple[Saving, str]) -> float:
    found = combined(context, savings)
    assert found is not None
    assert found.added_up_ns == sum(saving.expected_ns for saving, _ in savings)
    assert found.low_ns <= found.expected_ns <= found.high_ns <= context.step_ns
    return found.expected_ns / 1000


def test_nothing_comes_of_nothing(context: RuleContext) -> None:
    assert combined(context, []) is None


def test_savings_of_different_kernels_add_up_as_far_as_the_cpu_lets_them(context: RuleContext) -> None:
    first, second = _without(context, "first", left=0.5), _without(context, "second", left=0.5)
    assert (first.expected_ns, second.expected_ns) == (
        pytest.approx(250_000, rel=0.01),
        pytest.approx(150_000, rel=0.01),
    )
    assert _together_us(context, (first, ""), (second, "")) == pytest.approx(400, rel=0.01)


def test_of_the_same_kernels_each_saves_its_share_of_what_is_left(context: RuleContext) -> None:
    # A half of 500, then a half of the other 250.
    half = _without(context, "first", left=0.5)
    assert _together_us(context, (half, ""), (half, "")) == pytest.approx(375, rel=0.01)
    # What goes altogether goes once.
    gone = _without(context, "second")
    assert _together_us(context, (gone, ""), (gone, "")) == pytest.approx(gone.expected_ns / 1000, rel=0.01)


def test_of_alternatives_the_largest_counts(context: RuleContext) -> None:
    amp, tf32 = _without(context, "first", "second", left=0.4), _without(context, "first", left=0.5)
    assert _together_us(context, (amp, "precision"), (tf32, "precision")) == pytest.approx(480, rel=0.01)


def test_what_no_replay_shows_takes_its_share_of_the_rest(context: RuleContext) -> None:
    ranks = stated(context, 100_000, 300_000, 400_000, "")
    half = _without(context, "first", left=0.5)
    # 250 go, and three tenths of the 750 that are left.
    assert _together_us(context, (half, ""), (ranks, "")) == pytest.approx(250 + 0.3 * 750, rel=0.01)


def test_never_more_than_the_step_and_never_less_than_the_best(context: RuleContext) -> None:
    everything = stated(context, 0, 1_500_000, 2_000_000, "")
    assert (everything.expected_ns, everything.high_ns) == (1_000_000, 1_000_000)
    assert _together_us(context, (everything, ""), (everything, "")) == 1000
    assert (
        _together_us(context, (_without(context, "first"), ""), (stated(context, 0, 700_000, 700_000, ""), "")) >= 700
    )


def test_a_change_is_replayed_once_for_each_pace_of_the_cpu(
    context: RuleContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[int, float]] = []
    replay = Basis.run

    def counted(basis: Basis, share: float, changes: Any = ()) -> Any:
        made.extend((id(change), share) for change in changes)
        return replay(basis, share, changes)

    monkeypatch.setattr(Basis, "run", counted)
    assert _without(context, "first", left=0.5).expected_ns > 0
    assert len(made) == len(set(made)) == 3
