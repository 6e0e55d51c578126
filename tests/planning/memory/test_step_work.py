"""The time of a step with other work: another optimizer, more layers, more batches, gradients that are kept."""

from __future__ import annotations

import dataclasses

import msgspec
import numpy as np
import pytest

from tb_dlprof_plugin.model.plan_request import PlanRequest
from tb_dlprof_plugin.planning.memory.rewrite_optimizer import OPTIMIZER_WORK, OPTIMIZERS, recorded_optimizer
from tb_dlprof_plugin.planning.memory.step_time import NoStepTime, planned_step, step_time
from tb_dlprof_plugin.planning.memory.step_work import StepWork
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.simulator import simulation
from tb_dlprof_plugin.store.logdir import read_profiles
from tests.support.recorded_runs import ROOT


@pytest.fixture(scope="module")
def bert() -> ProfileView:
    """AdamW by `foreach`, paced by the GPU."""
    return ProfileView(read_profiles(ROOT / "tests" / "data" / "memory_plan" / "held_out" / "bert" / "base")[0].profile)


def ns(view: ProfileView, **request) -> float:
    return step_time(view, PlanRequest(**request)).ns


def with_facts(view: ProfileView, **facts) -> ProfileView:
    profile = view.profile
    return ProfileView(dataclasses.replace(profile, facts=msgspec.structs.replace(profile.facts, **facts)))


def test_each_optimizer_that_is_planned_has_its_work() -> None:
    assert OPTIMIZER_WORK.keys() == OPTIMIZERS.keys()


def test_the_recorded_optimizer_in_its_own_place_changes_nothing(bert: ProfileView) -> None:
    work = StepWork(bert, simulation(bert, bert.selection())).optimizer("adamw")
    assert work.gpu_ns == pytest.approx(0.0, abs=1.0)
    assert ns(bert, optimizer="adamw") == pytest.approx(ns(bert), rel=0.005)


def test_a_step_is_longer_the_more_its_optimizer_moves(bert: ProfileView) -> None:
    steps = [ns(bert, optimizer=name) for name in ("sgd", "adamw_fused", "momentum", "adam", "adamw", "adamw_loop")]
    assert steps == sorted(steps)
    # SGD reads gradients and writes parameters; AdamW takes 0.8 ms for seven times as much.
    assert ns(bert) - steps[0] == pytest.approx(0.81e6 * 17 / 20, rel=0.2)


def test_each_further_batch_takes_as_long_as_the_first_of_them(bert: ProfileView) -> None:
    one, two, five = ns(bert), ns(bert, accumulate=2), ns(bert, accumulate=5)
    assert five - one == pytest.approx(4 * (two - one))
    # All but the optimizer's step, 0.8 ms of 28, is done again.
    assert 0.94 * one < two - one < one


def test_each_further_layer_takes_as_long_as_the_first_of_them(bert: ProfileView) -> None:
    one, two, three = (ns(bert, layers={"blocks.5": count} if count else {}) for count in range(3))
    assert three - two == pytest.approx(two - one, rel=0.01)
    launches, ops = bert.profile.launches, bert.profile.ops
    module = np.array([path.startswith("blocks.5") for path in bert.profile.strings])
    op = bert.profile.calls.op[np.maximum(launches.call, 0)]
    own = launches.duration_ns[(launches.call >= 0) & module[ops.module[op]] & (bert.launch_iteration >= 0)].sum()
    assert two - one == pytest.approx(own / 2, rel=0.05)


def test_a_further_layer_within_checkpointed_modules_is_computed_again_too(bert: ProfileView) -> None:
    blocks = tuple(f"blocks.{i}" for i in range(6))
    six = ns(bert, checkpoint=blocks) - ns(bert)
    assert ns(bert, checkpoint=blocks, layers={"blocks.5": 6}) - ns(bert, layers={"blocks.5": 6}) == pytest.approx(
        2 * six, rel=0.02
    )


def test_gradients_that_are_kept_cost_what_it_takes_to_clear_and_add_them(bert: ProfileView) -> None:
    more = ns(bert, set_to_none=False) - ns(bert)
    # Four of the 20 values for which AdamW takes 0.8 ms, and 78 kernels.
    assert 0.81e6 * 4 / 20 < more < 0.81e6 * 4 / 20 + 78 * 4e3
    assert ns(bert, set_to_none=True) == ns(bert), "they are freed in the recorded step"


def test_other_work_is_added_to_another_precision(bert: ProfileView) -> None:
    half = ns(bert, precision="bf16")
    assert half < ns(bert)
    assert ns(bert, precision="bf16", accumulate=2) == pytest.approx(2 * half, rel=0.08)


def test_what_is_computed_again_in_half_precision_has_its_casts(bert: ProfileView) -> None:
    casts = planned_step(bert, PlanRequest(precision="bf16")).found
    assert casts is not None
    assert casts.cast_ns > 0
    again = planned_step(bert, PlanRequest(precision="bf16", accumulate=2)).more_gpu_ns
    assert again == pytest.approx(casts.gpu_ns - 0.81e6, rel=0.1)


def test_attention_grows_with_the_square_of_the_sequence_and_the_rest_in_a_line(bert: ProfileView) -> None:
    twice, samples = (planned_step(bert, PlanRequest(**one)) for one in ({"sequence_length": 256}, {"batch_size": 128}))
    ops, launches = bert.profile.ops, bert.profile.launches
    attention = np.array(["attention" in bert.profile.strings[name] for name in ops.name.tolist()])
    own = (bert.launch_iteration >= 0) & attention[bert.launch_op]
    recorded = launches.duration_ns[own].sum() / len(bert.profile.iterations)
    assert recorded > 1e6
    assert twice.more_gpu_ns == pytest.approx(2 * recorded, rel=0.1)
    assert twice.time.ns - samples.time.ns == pytest.approx(twice.more_gpu_ns, rel=0.1)


def test_a_larger_image_takes_what_was_timed() -> None:
    """The ResNet with 320 pixels in place of 224: 41.5 ms (`tests/data/memory_plan/inputs_and_splits_recorded`)."""
    resnet = ROOT / "tests" / "data" / "memory_plan" / "recorded" / "resnet" / "base"
    found = step_time(ProfileView(read_profiles(resnet)[0].profile), PlanRequest(image_size=320))
    assert found.ns == pytest.approx(41.519e6, rel=0.06)
    assert found.low_ns < 41.519e6 < found.high_ns


def test_relus_in_place_take_the_recorded_step(bert: ProfileView) -> None:
    assert ns(bert, relu="inplace") == ns(bert)


def test_a_changed_step_has_a_wider_interval(bert: ProfileView) -> None:
    recorded, changed = (step_time(bert, PlanRequest(accumulate=count)) for count in (1, 2))
    assert changed.high_ns / changed.low_ns > recorded.high_ns / recorded.low_ns * 1.08


def test_the_gpu_time_of_other_work_is_known_for_the_energy(bert: ProfileView) -> None:
    busy = bert.profile.launches.duration_ns[bert.launch_iteration >= 0].sum() / len(bert.profile.iterations)
    assert planned_step(bert, PlanRequest(accumulate=3)).more_gpu_ns == pytest.approx(2 * busy, rel=0.05)
    assert planned_step(bert, PlanRequest(optimizer="sgd")).more_gpu_ns < 0


@pytest.mark.parametrize("facts", [{"optimizer": "Adafactor"}, {"optimizer": None}])
def test_the_step_of_an_unknown_optimizer_is_not_forecast(bert: ProfileView, facts) -> None:
    view = with_facts(bert, **facts)
    with pytest.raises(NoStepTime, match=r"the work of .* is not known"):
        step_time(view, PlanRequest(optimizer="sgd"))
    assert ns(view, accumulate=2) > 1.9 * ns(view) * 0.95


@pytest.mark.parametrize(
    ("optimizer", "state", "ops", "name"),
    [
        ("SGD", 0, ["aten::_foreach_add_"], "sgd"),
        ("SGD", 100, ["aten::_foreach_add_"], "momentum"),
        ("Adam", 100, ["aten::_foreach_lerp_"], "adam"),
        ("AdamW", 100, ["aten::_fused_adamw_"], "adamw_fused"),
        ("AdamW", 100, ["aten::lerp_", "aten::addcdiv_"], "adamw_loop"),
    ],
)
def test_an_optimizer_is_known_by_its_class_and_its_ops(bert: ProfileView, optimizer, state, ops, name) -> None:
    facts = msgspec.structs.replace(bert.profile.facts, optimizer=optimizer, optimizer_state_bytes=state)
    assert recorded_optimizer(facts, ops) == OPTIMIZER_WORK[name]
