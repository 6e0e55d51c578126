"""Longer sequences, larger images and ReLUs elsewhere, on recorded models: against what was recorded where possible."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_dlprof_plugin.model.plan_request import PlanError, PlanRequest
from tb_dlprof_plugin.planning.memory.plan import planner
from tb_dlprof_plugin.planning.memory.recorded_step import recorded_program
from tb_dlprof_plugin.planning.memory.replay import replay
from tb_dlprof_plugin.planning.memory.rewrite_batch import input_size, with_input
from tb_dlprof_plugin.planning.memory.rewrite_modules import with_inplace_relu, with_relu_behind_pool
from tb_dlprof_plugin.planning.memory.rewrites import check
from tb_dlprof_plugin.planning.memory.step_program import places
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles
from tests.support.recorded_runs import ROOT

PLANS = ROOT / "tests" / "data" / "memory_plan"


def view_of(model: str, name: str = "base") -> ProfileView:
    """A recording of the benchmark."""
    return ProfileView(read_profiles(PLANS / model / name)[0].profile)


@pytest.mark.parametrize(
    ("model", "length", "side"),
    [
        ("recorded/gpt", 256, None), ("held_out/bert", 128, None), ("recorded/resnet", None, 224),
        ("recorded/vit", None, 224), ("held_out/unet", None, 256), ("recorded/perceptron", None, None),
    ],
)  # fmt: skip
def test_the_size_of_the_input_is_read_from_shapes(model: str, length: int | None, side: int | None) -> None:
    found = input_size(view_of(model))
    assert (found.length, found.side) == (length, side)


@pytest.mark.parametrize(
    ("model", "most_off"),
    [("recorded/gpt", 0.02), ("recorded/lstm", 0.05), ("recorded/resnet", 0.03), ("held_out/vgg", 0.04)],
)
def test_twice_the_positions_take_what_twice_the_batch_was_recorded_to_take(model: str, most_off: float) -> None:
    """Of models whose kernels do the same for a position as for a sample: convolutions, and attention that makes no
    matrix of scores."""
    view = view_of(model)
    forecast = replay(with_input(view, recorded_program(view), 2.0)).peak_allocated
    recorded = replay(recorded_program(view_of(model, "twice"))).peak_allocated
    assert forecast == pytest.approx(recorded, rel=most_off)


def test_what_has_no_positions_does_not_grow() -> None:
    view = view_of("recorded/perceptron")
    with pytest.raises(PlanError):
        with_input(view, recorded_program(view), 2.0)
    with pytest.raises(PlanError, match="no embedding"):
        check(view, PlanRequest(sequence_length=64))
    with pytest.raises(PlanError, match="at least one"):
        check(view, PlanRequest(image_size=0))


def test_a_smaller_image_is_asked_for_by_its_side() -> None:
    known = planner(view_of("recorded/resnet"))
    half = known.plan(PlanRequest(image_size=112)).peak_allocated.value
    held = known.recorded.steady
    # A quarter of the pixels.
    assert (half - held) / (known.recorded.peak_allocated - held) == pytest.approx(0.25, abs=0.01)


def test_relus_that_are_in_place_stay() -> None:
    view = view_of("recorded/resnet")
    program = recorded_program(view)
    assert with_inplace_relu(view, program).events == program.events
    assert with_relu_behind_pool(view, program).events == program.events


def test_in_place_a_relu_makes_nothing_and_what_is_kept_is_the_same() -> None:
    view = view_of("held_out/vgg")
    program = recorded_program(view)
    changed = with_inplace_relu(view, program)
    # Five of them: a stem, four blocks; the classifier's is the sixth.
    assert len(program.events) - len(changed.events) == 2 * 6
    kept = [kept_bytes(one) for one in (program, changed)]
    assert kept[0] == kept[1]
    assert replay(changed).peak_allocated <= replay(program).peak_allocated


def test_behind_its_pooling_a_relu_keeps_as_much_and_the_backward_pass_makes_less() -> None:
    view = view_of("held_out/unet")
    program = recorded_program(view)
    changed = with_relu_behind_pool(view, program)
    assert changed.events != program.events
    assert kept_bytes(changed) == pytest.approx(kept_bytes(program), rel=0.02)
    assert sum(changed.sizes[event - 1] for event in changed.events if event > 0) < sum(program.sizes)
    assert replay(changed).steady == replay(program).steady


def kept_bytes(program) -> int:
    """What is there when the backward pass begins."""
    where = places(program)
    return sum(
        slot.bytes
        for slot, made, freed in zip(program.slots, where.made, where.freed, strict=True)
        if 0 <= made < program.backward_at <= freed
    )


def test_fp8_keeps_less_than_bf16_and_that_less_than_fp32() -> None:
    known = planner(view_of("recorded/gpt"))
    peaks = [
        known.plan(replace(PlanRequest(), precision=precision)).peak_allocated.value
        for precision in (None, "bf16", "fp8")
    ]
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[2] > 0.5 * peaks[1]


def test_the_interval_of_fp8_holds_what_bf16_takes() -> None:
    """What an implementation takes that keeps the inputs of products in half precision."""
    known = planner(view_of("recorded/gpt"))
    half, eight = (known.plan(PlanRequest(precision=one)).peak_allocated for one in ("bf16", "fp8"))
    assert eight.low < eight.value < half.value <= eight.high
