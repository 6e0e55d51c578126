"""What a module leaves to its neighbours and what autograd frees behind a node, in steps of a few layers."""

from __future__ import annotations

from collections import Counter

import pytest

from tb_dlprof_plugin.planning.memory.op_calls import OpCalls
from tb_dlprof_plugin.planning.memory.replay import replay
from tb_dlprof_plugin.planning.memory.rewrite_modules import with_layers
from tb_dlprof_plugin.planning.memory.rewrite_optimizer import with_accumulation, with_kept_gradients
from tb_dlprof_plugin.planning.memory.rewrite_saved_tensors import with_checkpoints
from tb_dlprof_plugin.planning.memory.step_program import Held, HeldKind, Slot, SlotKind, StepProgram

MB = 1 << 20
OUTPUT, WEIGHT, BUFFER, BATCH = 16 * MB, 2 * MB, 32 * MB, 8 * MB
LAYERS = 3


def relu_layers() -> StepProgram:
    """A batch, then layers of a product and a ReLU: the product's result goes with the ReLU, whose own result is kept
    by itself. The gradient of the bias is summed in a buffer while the gradient of the weight is there."""
    slots: list[Slot] = []
    events: list[int] = []

    def make(size: int, kind: SlotKind, layer: int | None, behind: bool = False) -> int:
        slots.append(Slot(size, kind, module=f"layers.{layer}" if layer is not None else "", behind_node=behind))
        events.append(len(slots))
        return len(slots) - 1

    batch = make(BATCH, SlotKind.INPUT, None)
    kept = []
    for n in range(LAYERS):
        product = make(OUTPUT, SlotKind.ACTIVATION, n)
        kept.append(make(OUTPUT, SlotKind.ACTIVATION, n))
        events.append(-product - 1)
    backward_at = len(events)
    # The gradient of the last output, from the loss.
    gradients, above = [], make(OUTPUT, SlotKind.BACKWARD, None)
    for n in reversed(range(LAYERS)):
        of_relu = make(OUTPUT, SlotKind.BACKWARD, n)
        events += [-above - 1, -kept[n] - 1]
        above = make(OUTPUT, SlotKind.BACKWARD, n)
        gradients.append(make(WEIGHT, SlotKind.GRADIENT, n))
        buffer = make(BUFFER, SlotKind.TEMPORARY, n, behind=True)
        events += [-buffer - 1, -of_relu - 1]
    events.append(-above - 1)
    zero = [-slot - 1 for slot in gradients]
    at = len(zero) + len(events)
    weights = [Held(WEIGHT, HeldKind.PARAMETER, f"layers.{n}") for n in range(LAYERS)]
    return StepProgram(slots, [*zero, *events, -batch - 1], weights, [], {}, at, len(zero) + backward_at)


def peak(program: StepProgram) -> int:
    return replay(program).peak_allocated


def test_the_step_as_it_is() -> None:
    # The last layer's backward pass: two outputs are kept, two gradients, one of a weight, and the buffer.
    assert peak(relu_layers()) == 3 * WEIGHT + BATCH + 4 * OUTPUT + WEIGHT + BUFFER


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("module", ["layers.0", "layers.1", "layers.2"])
def test_a_copy_takes_the_place_of_a_neighbour(module: str, count: int) -> None:
    deeper = with_layers(relu_layers(), module, count)
    assert max(Counter(deeper.events).values()) == 1
    assert peak(deeper) == peak(relu_layers()) + count * (WEIGHT + OUTPUT)


def test_an_output_that_a_module_keeps_for_itself_is_not_saved_by_a_checkpoint() -> None:
    every = [f"layers.{n}" for n in range(LAYERS)]
    assert peak(with_checkpoints(relu_layers(), every, OpCalls())) == peak(relu_layers())
    steady = replay(with_checkpoints(relu_layers(), every, OpCalls())).steady
    assert steady == replay(relu_layers()).steady


def test_a_checkpoint_holds_an_input_that_no_op_saved() -> None:
    """As a pooling's result that is joined with others: without a checkpoint it goes in the forward pass."""
    slots = [
        Slot(OUTPUT, SlotKind.ACTIVATION, module="pool"),
        Slot(BUFFER, SlotKind.ACTIVATION, module="block", reads=frozenset({OUTPUT // 4})),
        Slot(MB, SlotKind.ACTIVATION, module="head", reads=frozenset({BUFFER // 4})),
        Slot(2 * MB, SlotKind.BACKWARD, module="head"),
        Slot(MB, SlotKind.BACKWARD, module="block"),
    ]
    step = StepProgram(slots, [1, 2, -1, 3, 4, 5, -2, -4, -3, -5], optimizer_at=10, backward_at=4)
    assert peak(step) == max(OUTPUT + BUFFER, BUFFER + 4 * MB)
    changed = with_checkpoints(step, ["block"], OpCalls())
    held = changed.events.index(-1)
    assert held > max(place for place, event in enumerate(changed.events) if event == 5)


def test_what_was_made_again_is_gone_when_autograd_sums_the_gradient_of_a_bias() -> None:
    slots = [
        Slot(OUTPUT, SlotKind.ACTIVATION, module="layer"),
        Slot(MB, SlotKind.ACTIVATION, module="layer"),
        Slot(OUTPUT, SlotKind.BACKWARD, module="layer"),
        Slot(BUFFER, SlotKind.TEMPORARY, module="layer", behind_node=True),
    ]
    # The buffer is made before the tensor goes that the layer has kept.
    step = StepProgram(slots, [1, 2, 3, 4, -4, -1, -3, -2], optimizer_at=8, backward_at=2)
    assert peak(step) == 2 * OUTPUT + BUFFER + MB
    assert peak(with_checkpoints(step, ["layer"], OpCalls())) == OUTPUT + BUFFER


def test_a_gradient_that_is_added_goes_when_the_node_is_over() -> None:
    kept = with_kept_gradients(relu_layers())
    assert peak(kept) == peak(relu_layers()) + 3 * WEIGHT


def test_an_accumulated_batch_replaces_the_one_before() -> None:
    assert peak(with_accumulation(relu_layers(), 3)) == peak(relu_layers()) + 3 * WEIGHT
