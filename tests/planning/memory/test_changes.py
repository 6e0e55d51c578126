"""The rewriting of a step: what each change adds and removes, on a step of three layers and on a recorded one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tb_dlprof_plugin.planning.memory.op_calls import OpCalls
from tb_dlprof_plugin.planning.memory.recorded_step import recorded_program
from tb_dlprof_plugin.planning.memory.replay import replay
from tb_dlprof_plugin.planning.memory.rewrite_batch import with_batch
from tb_dlprof_plugin.planning.memory.rewrite_modules import with_layers
from tb_dlprof_plugin.planning.memory.rewrite_optimizer import (
    OPTIMIZERS,
    bytes_freed_late,
    with_accumulation,
    with_freed_gradients,
    with_kept_gradients,
    with_optimizer,
)
from tb_dlprof_plugin.planning.memory.rewrite_saved_tensors import with_checkpoints
from tb_dlprof_plugin.planning.memory.step_program import (
    EventEdits,
    Held,
    HeldKind,
    Slot,
    SlotKind,
    StepProgram,
    UnknownModule,
    places,
)
from tests.planning.memory.test_recorded_step import GROWING, MLP
from tests.support.recorded_runs import recorded_view

MB = 1 << 20
LAYERS = 3
WEIGHT, INNER, OUTPUT = 2 * MB, 16 * MB, 8 * MB


def three_layers() -> StepProgram:
    """Each layer keeps an inner activation and an output, which the next one needs; its backward pass makes the
    gradient of its input and that of its weight. The first step of the optimizer makes one state per weight."""
    slots, events = [], []

    def make(size: int, kind: SlotKind, layer: int, batch: float) -> int:
        slots.append(Slot(size, kind, module=f"layers.{layer}", batch=batch))
        events.append(len(slots))
        return len(slots) - 1

    def free(slot: int) -> None:
        events.append(-slot - 1)

    kept = [
        (make(INNER, SlotKind.ACTIVATION, n, 1.0), make(OUTPUT, SlotKind.ACTIVATION, n, 1.0)) for n in range(LAYERS)
    ]
    backward_at = len(events)
    gradients, above = [], None
    for n in reversed(range(LAYERS)):
        inner, _output = kept[n]
        below = make(OUTPUT, SlotKind.BACKWARD, n, 1.0)
        gradients.append(make(WEIGHT, SlotKind.GRADIENT, n, 0.0))
        if above is not None:
            free(above)
        free(inner)
        if n:
            free(kept[n - 1][1])
        above = below
    free(above)
    free(kept[-1][1])
    zero = [-slot - 1 for slot in gradients]
    weights = [Held(WEIGHT, HeldKind.PARAMETER, f"layers.{n}") for n in range(LAYERS)]
    states = [Held(WEIGHT, HeldKind.OPTIMIZER_STATE, one.module) for one in weights]
    at = len(zero) + len(events)
    return StepProgram(slots, zero + events, weights, states, {}, at, len(zero) + backward_at)


def peak(program: StepProgram) -> int:
    """Of a steady training."""
    return replay(program).peak_allocated


def steady(program: StepProgram) -> int:
    """Between two steps."""
    return replay(program).steady


CHANGES: list[Callable[[StepProgram], StepProgram]] = [
    lambda program: with_batch(program, 3.0),
    *(lambda program, name=name: with_optimizer(program, name) for name in OPTIMIZERS),
    with_kept_gradients,
    lambda program: with_accumulation(program, 3),
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_slot_is_made_once_and_freed_once_at_most(change: Callable[[StepProgram], StepProgram]) -> None:
    for program in (three_layers(), recorded_program(recorded_view(MLP)), recorded_program(recorded_view(GROWING))):
        changed = change(program)
        counted = Counter(changed.events)
        made = {event - 1 for event in changed.events if event > 0}
        assert set(counted.values()) == {1}
        assert {-event - 1 for event in changed.events if event < 0} <= made
        again = replay(changed)
        assert again.steady == replay(changed, most_steps=7).steady


def test_the_step_as_it_is() -> None:
    # Weights and states, what three layers keep, and the first gradients of the last layer.
    assert peak(three_layers()) == 6 * WEIGHT + 3 * (INNER + OUTPUT) + OUTPUT + WEIGHT
    assert steady(three_layers()) == 9 * WEIGHT


def test_twice_the_batch_doubles_what_grows_with_it() -> None:
    assert peak(with_batch(three_layers(), 2)) == 6 * WEIGHT + 2 * (3 * (INNER + OUTPUT) + OUTPUT) + WEIGHT
    assert steady(with_batch(three_layers(), 2)) == 9 * WEIGHT


def test_states_are_those_of_the_optimizer() -> None:
    per_weight = {name: steady(with_optimizer(three_layers(), name)) // WEIGHT for name in OPTIMIZERS}
    assert per_weight == {
        "sgd": 6, "momentum": 9, "adam": 12, "adamw": 12, "adam_fused": 12, "adamw_fused": 12, "adam_loop": 12,
        "adamw_loop": 12, "adamw_8bit": 7,
    }  # fmt: skip


def test_foreach_makes_a_list_of_all_weights_during_the_step() -> None:
    small = with_batch(three_layers(), 1e-6)
    list_of_roots = peak(with_optimizer(small, "adamw")) - peak(with_optimizer(small, "adamw_fused"))
    assert list_of_roots == pytest.approx(3 * WEIGHT, rel=1e-3)


def test_gradients_that_are_kept_are_there_in_the_forward_pass() -> None:
    kept = with_kept_gradients(three_layers())
    assert peak(kept) == peak(three_layers()) + 3 * WEIGHT
    assert steady(kept) == steady(three_layers())
    assert peak(with_freed_gradients(kept)) == peak(three_layers())


def test_accumulated_batches_run_beside_the_gradients_of_the_first() -> None:
    assert peak(with_accumulation(three_layers(), 2)) == peak(three_layers()) + 3 * WEIGHT
    assert peak(with_accumulation(three_layers(), 5)) == peak(with_accumulation(three_layers(), 2))


@pytest.mark.parametrize("module", ["layers.0", "layers.1", "layers.2"])
def test_more_layers_keep_as_much_each(module: str) -> None:
    for count in (1, 4):
        deeper = with_layers(three_layers(), module, count)
        assert peak(deeper) == peak(three_layers()) + count * (2 * WEIGHT + INNER + OUTPUT)
        assert steady(deeper) == steady(three_layers()) + count * 3 * WEIGHT
        assert max(Counter(deeper.events).values()) == 1


def test_a_checkpointed_layer_keeps_its_output_only() -> None:
    first = with_checkpoints(three_layers(), ["layers.0"], OpCalls())
    assert peak(first) == peak(three_layers()) - INNER
    # The last layer is computed again when all others are there as before.
    assert peak(with_checkpoints(three_layers(), ["layers.2"], OpCalls())) == peak(three_layers())
    everything = with_checkpoints(three_layers(), ["layers.0", "layers.1", "layers.2"], OpCalls())
    # In the middle one's backward pass: what it makes again, two outputs, two gradients of outputs and of weights.
    assert peak(everything) == 6 * WEIGHT + INNER + 4 * OUTPUT + 2 * WEIGHT
    assert steady(everything) == steady(three_layers())


def test_a_module_that_made_nothing_is_refused() -> None:
    for change in (lambda p: with_checkpoints(p, ["head"], OpCalls()), lambda p: with_layers(p, "head", 1)):
        with pytest.raises(UnknownModule, match="head"):
            change(three_layers())


def test_gradients_that_are_freed_late_are_freed_before_the_forward_pass() -> None:
    program = with_freed_gradients(three_layers())
    assert bytes_freed_late(program) == 0
    where, edits = places(program), EventEdits(program)
    for slot in where.carried:
        if program.slots[slot].kind == SlotKind.GRADIENT:
            edits.drop(where.freed[slot])
            edits.put(program.backward_at, [-slot - 1])
    late = edits.changed()
    assert bytes_freed_late(late) == LAYERS * WEIGHT
    early = with_freed_gradients(late)
    assert sorted(early.events) == sorted(program.events)
    assert all(event < 0 for event in early.events[:LAYERS])
    assert early.events[LAYERS:] == program.events[LAYERS:]
