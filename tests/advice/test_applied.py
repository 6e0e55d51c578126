"""How a change that a rule advised shows in a later run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from advice.recorded import opened, with_facts
from advice.recordings import ADD, FUSED, launches, one_by_one, optimizing, over_lists, zeroing

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.rules.idle_gpu import launch_bound
from tb_dlprof_plugin.advice.rules.multi_gpu import (
    fsdp_large_units,
    fsdp_prefetch,
    fsdp_reshard,
    fsdp_units,
    gradient_bucket_copies,
    gradient_buckets,
    hybrid_sharding,
)
from tb_dlprof_plugin.advice.rules.optimizer import (
    gradients_without_optimizer,
    optimizer_not_fused,
    single_tensor_optimizer,
    zero_grad_to_zero,
)
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


def test_a_fixed_body_is_recognised() -> None:
    run = opened("memory_plan/recorded/perceptron/base")
    before, after = (with_facts(run, unstepped_gradients=count) for count in (4, 0))
    assert gradients_without_optimizer.was_applied(before, after) == "no gradients without an optimizer"
    assert gradients_without_optimizer.was_applied(after, before) == ""


def test_changed_settings_of_a_job_are_recognised() -> None:
    names = ("wide_one", "wide_copied", "wide", "sharded_tiny_units", "sharded")
    one, copied, wide, tiny, sharded = (opened(f"ranks/settings_recorded/{name}") for name in names)
    assert gradient_buckets.was_applied(one, wide) == "buckets of 25 instead of 100000 MiB"
    assert gradient_bucket_copies.was_applied(copied, wide) == "gradient_as_bucket_view on"
    assert fsdp_units.was_applied(tiny, sharded) == "6 instead of 42 units of FSDP"
    for rule in (gradient_buckets, gradient_bucket_copies, fsdp_units):
        assert rule.was_applied(wide, wide) == ""


def test_changed_settings_of_fsdp_are_recognised() -> None:
    names = ("gloo_flat", "gloo_hybrid", "gloo_one_unit", "gloo_units")
    flat, hybrid, one, units = (opened(f"ranks/settings_recorded/{name}") for name in names)
    assert hybrid_sharding.was_applied(flat, hybrid) == "HSDP: 2 copies, each over 2 ranks"
    assert fsdp_prefetch.was_applied(flat, hybrid) == "forward prefetch on"
    assert fsdp_reshard.was_applied(flat, hybrid) == "0 instead of 2 units gathered twice"
    assert fsdp_large_units.was_applied(one, units) == "2 instead of 1 units of FSDP"
