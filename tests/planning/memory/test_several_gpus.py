"""Several GPUs, memory on the CPU and deeper networks: what each rank keeps, on the step of three layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import get_args

import pytest

from tb_dlprof_plugin.model.plan_request import OFFLOADED_OPTIMIZER, Sharding
from tb_dlprof_plugin.planning.memory.allocator import MIB, AllocatorSettings
from tb_dlprof_plugin.planning.memory.module_choices import most_layers, pipeline, repeated_module
from tb_dlprof_plugin.planning.memory.op_calls import OpCalls
from tb_dlprof_plugin.planning.memory.replay import replay, runs_under
from tb_dlprof_plugin.planning.memory.rewrite_gpus import (
    BUCKET,
    FIRST_BUCKET,
    buckets,
    largest_part,
    while_rebuilding,
    with_sharding,
)
from tb_dlprof_plugin.planning.memory.rewrite_modules import with_layers
from tb_dlprof_plugin.planning.memory.rewrite_optimizer import with_optimizer
from tb_dlprof_plugin.planning.memory.rewrite_saved_tensors import with_offload
from tb_dlprof_plugin.planning.memory.step_program import StepProgram, UnknownModule
from tests.planning.memory.test_changes import INNER, LAYERS, OUTPUT, WEIGHT, peak, steady, three_layers

UNITS = [f"layers.{n}" for n in range(LAYERS)]
MODEL = LAYERS * WEIGHT

CHANGES: list[Callable[[StepProgram], StepProgram]] = [
    *(lambda program, how=how: with_sharding(program, how, 4, UNITS) for how in get_args(Sharding)),
    *(lambda program, how=how: with_sharding(program, how, 4, UNITS[:1]) for how in get_args(Sharding)),
    lambda program: with_offload(program, [OFFLOADED_OPTIMIZER, "layers.1"], OpCalls()),
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_slot_is_made_once_and_freed_once_at_most(change: Callable[[StepProgram], StepProgram]) -> None:
    changed = change(three_layers())
    made = {event - 1 for event in changed.events if event > 0}
    assert set(Counter(changed.events).values()) == {1}
    assert {-event - 1 for event in changed.events if event < 0} <= made
    assert replay(changed).steady == replay(changed, most_steps=7).steady


def test_ddp_keeps_buckets_of_all_gradients() -> None:
    ddp = with_sharding(three_layers(), "ddp", 8, UNITS)
    assert peak(ddp) == peak(three_layers()) + MODEL
    assert steady(ddp) == steady(three_layers()) + MODEL


def test_the_second_step_has_ddps_buckets_twice() -> None:
    ddp = with_sharding(three_layers(), "ddp", 8, UNITS)
    assert peak(while_rebuilding(ddp)) == peak(ddp) + MODEL


def test_zero1_gives_whole_parameters_to_the_rank_that_has_least() -> None:
    assert largest_part(three_layers(), 2) == pytest.approx(2 / 3)


def test_buckets_are_closed_by_what_fills_them_from_the_last_parameter_on() -> None:
    small = 300_000
    found = buckets([2 * BUCKET, 10 * MIB, small, small, small, small])
    assert found == [4 * small, 10 * MIB + 2 * BUCKET]
    assert 3 * small < FIRST_BUCKET <= 4 * small
    assert sum(buckets([MIB] * 100)) == 100 * MIB
    assert buckets([]) == []


@pytest.mark.parametrize(
    ("how", "kept"), [("zero1", 3 + 1 / 3), ("zero2", 1 + 2 / 4), ("zero3", 3 / 4), ("fsdp2", 3 / 4)]
)
def test_each_rank_keeps_its_part_between_steps(how, kept: float) -> None:
    """Parameters, gradients and states; ZeRO-1 has DDP's buckets, too, and divides states by whole parameters."""
    assert steady(with_sharding(three_layers(), how, 4, UNITS)) == pytest.approx(kept * MODEL, rel=1e-3)


def test_more_ranks_never_take_more() -> None:
    for how in get_args(Sharding):
        peaks = [peak(with_sharding(three_layers(), how, ranks, UNITS)) for ranks in (1, 2, 4, 8)]
        assert peaks == sorted(peaks, reverse=True)


def test_fsdp_gathers_one_unit_at_a_time() -> None:
    fsdp = with_sharding(three_layers(), "fsdp2", 4, UNITS)
    whole = with_sharding(three_layers(), "fsdp2", 4, [])
    # At the peak, in the backward pass of the last layer: its parameters and the next one's buffer, and its gradient.
    assert peak(fsdp) == 2 * MODEL // 4 + 3 * (INNER + OUTPUT) + OUTPUT + 3 * WEIGHT
    assert peak(whole) > peak(fsdp)


def test_states_on_the_cpu_are_not_on_the_gpu() -> None:
    assert steady(with_offload(three_layers(), [OFFLOADED_OPTIMIZER], OpCalls())) == steady(three_layers()) - MODEL
    lists = with_optimizer(three_layers(), "adamw")
    assert peak(with_offload(lists, [OFFLOADED_OPTIMIZER], OpCalls())) == peak(lists) - 2 * MODEL


def test_activations_on_the_cpu_come_back_for_the_backward_pass() -> None:
    assert peak(with_offload(three_layers(), ["layers.0"], OpCalls())) == peak(three_layers()) - INNER
    # The last layer's are needed at the peak.
    assert peak(with_offload(three_layers(), ["layers.2"], OpCalls())) == peak(three_layers())
    with pytest.raises(UnknownModule):
        with_offload(three_layers(), ["head"], OpCalls())


def test_adamw_of_8_bits_keeps_a_byte_and_a_scale_for_each_256() -> None:
    elements = WEIGHT // 4
    scales = 4 * elements // 256
    codes = 2 * 1024
    assert steady(with_optimizer(three_layers(), "adamw_8bit")) == 2 * MODEL + 2 * LAYERS * (elements + scales) + codes
    # Of a small parameter they stay FP32.
    tiny = StepProgram([], [], held=[type(next(three_layers().parameters()))(4 * 100, 0)])
    assert sum(one.bytes for one in with_optimizer(tiny, "adamw_8bit").states) == 2 * 4 * 100 + codes


def test_stages_level_their_peaks_and_share_all_modules() -> None:
    for gpus in (1, 2, 3, 5):
        stages = pipeline(three_layers(), AllocatorSettings(), UNITS, gpus)
        assert [module for stage in stages for module in stage.modules] == UNITS
        assert len(stages) == min(gpus, LAYERS)
    two = pipeline(three_layers(), AllocatorSettings(), UNITS, 2)
    cuts = [max(replay_of(UNITS[:cut]), replay_of(UNITS[cut:])) for cut in (1, 2)]
    assert max(stage.peak_allocated for stage in two) == min(cuts)


def replay_of(modules: list[str]) -> int:
    """The peak of one stage alone."""
    (stage,) = (one for one in pipeline(only(modules), AllocatorSettings(), modules, 1))
    return stage.peak_allocated


def only(modules: list[str]) -> StepProgram:
    """The three layers without the others."""
    program = three_layers()
    events = [event for event in program.events if program.slots[abs(event) - 1].module in modules]
    first_backward = next(i for i, event in enumerate(events) if event > 0 and program.slots[event - 1].kind > 1)
    return StepProgram(
        program.slots, events, [one for one in program.held if one.module in modules],
        [one for one in program.states if one.module in modules], {}, len(events), first_backward,
    )  # fmt: skip


def test_the_deepest_network_runs_and_one_more_layer_does_not() -> None:
    limit = 512 * MIB
    module = repeated_module(three_layers())
    assert module == "layers.2"
    more = most_layers(three_layers(), AllocatorSettings(), module, limit)
    assert runs_under(with_layers(three_layers(), module, more), AllocatorSettings(), limit)
    assert not runs_under(with_layers(three_layers(), module, more + 2), AllocatorSettings(), limit)
    assert most_layers(three_layers(), AllocatorSettings(), module, MIB) == 0
    assert repeated_module(StepProgram([], [])) is None
