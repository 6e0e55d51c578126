"""How a change that a rule advised shows in a later run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from advice.recordings import ADD, FUSED, launches, one_by_one, optimizing, over_lists, zeroing

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.rules.idle_gpu import launch_bound
from tb_dlprof_plugin.advice.rules.optimizer import optimizer_not_fused, single_tensor_optimizer, zero_grad_to_zero
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView


@pytest.fixture
def view_of(new_trace) -> Callable[..., ProfileView]:
    def make(events: Callable[[Any], None], **facts: Any) -> ProfileView:
        trace = new_trace()
        events(trace)
        view: ProfileView = trace.view(facts=RunFacts(**facts))
        return view

    return make


def test_a_changed_optimizer_is_recognised(view_of) -> None:
    single = view_of(optimizing(one_by_one(100, 2), "Adam"))
    lists, fused = view_of(optimizing(over_lists())), view_of(optimizing(FUSED))
    assert single_tensor_optimizer.was_applied(single, lists) == "optimizer over lists of parameters"
    assert single_tensor_optimizer.was_applied(single, fused) == "fused optimizer"
    assert single_tensor_optimizer.was_applied(lists, fused) == ""
    assert optimizer_not_fused.was_applied(lists, fused) == "fused optimizer"
    assert optimizer_not_fused.was_applied(fused, lists) == ""


def test_gradients_set_to_none_are_recognised(view_of) -> None:
    before, after = view_of(zeroing()), view_of(zeroing(zeroed=False, added=False))
    assert zero_grad_to_zero.was_applied(before, after) == "gradients set to None"
    assert zero_grad_to_zero.was_applied(before, before) == ""


def test_what_makes_launching_cheaper_is_recognised(view_of) -> None:
    def graphs(trace: Any) -> None:
        trace.gpu()
        trace.step(0, 0, 1000)
        trace.runtime(10, 20, 5, name="cudaGraphLaunch")
        trace.kernel(ADD, 40, 500, 5)

    after = view_of(graphs, batch_size=8, compiled=False)
    before = view_of(launches((10, 50, 10, {})), batch_size=4, compiled=False)
    assert launch_bound.was_applied(before, after) == "batch size 4 to 8, CUDA graphs"
    assert launch_bound.was_applied(after, after) == ""


def test_one_iteration_alone_can_be_looked_at(view_of) -> None:
    view = view_of(launches((40, 50, 10, {})), unprofiled_step_ns=2_000_000)
    context = RuleContext(view, view.selection(1, 1))
    assert context.steps.average_ns == pytest.approx(2_000_000, rel=0.02)
    outcomes = {status.rule: status.outcome for status in advise(view, view.selection(1, 1)).rules}
    assert outcomes["launch_bound"] == "fired"
    assert "failed" not in outcomes.values()
