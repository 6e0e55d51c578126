"""`try_step` finds what a step gains in this process, and leaves the training as it was."""

from __future__ import annotations

import time
from typing import Any

import pytest

import tb_dlprof_plugin
import tb_dlprof_plugin.trial.inside.try_step as try_step_module
from tb_dlprof_plugin.trial.inside import switching
from tb_dlprof_plugin.trial.inside.hooks import TrialHooks
from tb_dlprof_plugin.trial.inside.remedies import classes
from tb_dlprof_plugin.trial.inside.remedy import Remedy

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


class Work:
    """What a step spends its time with."""

    seconds = 0.03


class Other:
    """What it spends at the same time."""

    seconds = 0.0


class NoOtherWork(Remedy):
    name = "no_other_work"
    in_running_process = True

    def on_import(self, hooks: TrialHooks) -> None:
        hooks.set(Other, "seconds", 0.0005)


class Idle(Remedy):
    name = "idle"
    in_running_process = True


class NoWork(Remedy):
    name = "no_work"
    in_running_process = True

    def on_import(self, hooks: TrialHooks) -> None:
        hooks.set(Work, "seconds", 0.0005)


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, nn.Module, Any]:
    """A step that mostly waits, and a remedy against that."""
    monkeypatch.setitem(classes(), "no_work", NoWork)
    torch.manual_seed(0)
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    inputs = torch.randn(4, 8)

    def step() -> None:
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
        time.sleep(max(Work.seconds, Other.seconds))

    return step, model, optimizer


def test_finds_the_gain_and_restores_the_training(training: Any) -> None:
    step, model, optimizer = training
    before = model.weight.tolist()
    result = tb_dlprof_plugin.try_step(
        step, model=model, optimizer=optimizer, remedies=["no_work", "persistent_workers"], budget_s=15
    )
    quick, persistent = result.rows
    assert quick.is_gain
    assert quick.verdict == "same to the bit"
    assert "tb-dlprof try" in persistent.not_tried
    assert result.best.remedies == ["no_work"]
    assert (model.weight.tolist(), Work.seconds) == (before, 0.03)
    assert not optimizer.state_dict()["state"]


class Clock:
    """A time that passes in steps alone."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    perf_counter = process_time = monotonic


def test_what_pays_only_next_to_another_one_is_in_the_best_set(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    for module in (try_step_module, switching):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(Other, "seconds", 0.02)
    for remedy in (NoWork, NoOtherWork, Idle):
        monkeypatch.setitem(classes(), remedy.name, remedy)
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    count = 0

    def step() -> None:
        nonlocal count
        optimizer.zero_grad()
        model(torch.ones(4, 8)).square().mean().backward()
        optimizer.step()
        count += 1
        clock.now_s += max(Work.seconds, Other.seconds) * (1 + 0.01 * (count % 3))

    names = ["idle", "no_other_work", "no_work"]
    result = tb_dlprof_plugin.try_step(step, model=model, optimizer=optimizer, remedies=names, budget_s=120)
    assert {row.remedy: row.is_gain for row in result.rows} == {"no_work": True, "no_other_work": False, "idle": False}
    assert set(result.best.remedies) == {"no_work", "no_other_work"}
    assert result.best.gain_percent == pytest.approx(98, abs=1)


def test_a_remedy_without_effect_says_so(training: Any) -> None:
    step, model, optimizer = training
    result = tb_dlprof_plugin.try_step(step, model=model, optimizer=optimizer, remedies=["channels_last"], budget_s=5)
    assert result.rows[0].no_effect == "The model has no convolutions of images."
    assert result.best.remedies == []


def test_an_unknown_remedy_is_an_error(training: Any) -> None:
    step, model, _ = training
    with pytest.raises(ValueError, match="unheard_of"):
        tb_dlprof_plugin.try_step(step, model=model, remedies=["unheard_of"])


def test_an_error_of_the_step_itself_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        tb_dlprof_plugin.try_step(lambda: 1 / 0, model=nn.Linear(1, 1))
