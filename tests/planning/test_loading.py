"""Waits for the workers of the DataLoader: a shorter step waits longer, so that the forecast predicts no gain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.planning import forecast
from tb_dlprof_plugin.planning.dataloader import loading
from tb_dlprof_plugin.profile_view import ProfileView

WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


@pytest.fixture
def waiting(training: Callable[..., Any]) -> Callable[..., ProfileView]:
    """A training whose steps wait for 100 µs from ``begin`` on; the GPU is idle for the first 110 µs of a step."""

    def make(begin: float, name: str = WORKERS) -> ProfileView:
        trace = training("fp32", loader=0)
        for step in range(3):
            trace.annotation(name, 1000 * step + begin, 100)
        view: ProfileView = trace.view(facts=RunFacts(unprofiled_step_ns=1_500_000, unprofiled_steps=10))
        return view

    return make


def test_a_step_that_waits_for_the_workers_gets_no_shorter(waiting: Callable[..., ProfileView]) -> None:
    view = waiting(0)
    assert loading(view, view.selection()).least_step_ns == 1_500_000
    for precision in ("tf32", "fp16", "bf16"):
        found = forecast(view, precision)
        assert found.base_ns == 1_500_000 <= found.low_ns <= found.predicted_ns
    assert forecast(view, "tf32").predicted_ns == 1_500_000
    assert forecast(view, "tf32").limited_by == "dataloader"
    (status,) = [one for one in advise(view, view.selection()).rules if one.rule == "tf32_off"]
    assert status.outcome == "silent"
    assert "the loading of data sets the pace" in status.why


def test_waits_behind_the_gpu_limit_nothing_yet_but_may(waiting: Callable[..., ProfileView]) -> None:
    hidden, none = waiting(300), waiting(300, "a range of the user")
    found = loading(hidden, hidden.selection())
    assert (found.least_step_ns, found.hidden) == (0, True)
    with_waits, without = forecast(hidden, "tf32"), forecast(none, "tf32")
    assert with_waits.predicted_ns < without.predicted_ns
    assert with_waits.high_ns >= with_waits.base_ns


def test_loading_in_the_training_thread_is_its_work(waiting: Callable[..., ProfileView]) -> None:
    view = waiting(0, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    found = loading(view, view.selection())
    assert (found.least_step_ns, found.hidden, len(found.waits[0])) == (0, False, 0)
