"""The step with another optimizer, with gradients that are kept or freed, and with several batches accumulated.

States per parameter, from `torch/optim`: none for SGD, one buffer with momentum, two for Adam and AdamW; the fused
implementation keeps each parameter's step counter on the GPU. During the step `foreach` makes a list of roots of all
second moments (Adam), the loop two tensors of one parameter at a time, `fused` and SGD nothing.

Values that a step reads and writes, from `torch/optim`, per element of a parameter, in values of its type. `foreach`
Adam: `_foreach_lerp_` 3, `mul_` 2, `addcmul_` 3, `sqrt` 2, `div_` 2, `add_` 2, `addcdiv_` 4; AdamW's decay 2 more; the
loop the same, tensor by tensor. `fused` reads four and writes three. SGD with momentum: `mul_` 2, `add_` 3, `add_` 3;
without it the last alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tb_dlprof_plugin.model.plan_request import OptimizerName
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.planning.memory.step_program import (
    EventEdits,
    Held,
    HeldKind,
    Places,
    Slot,
    SlotKind,
    StepProgram,
    places,
)

_COUNTER = 4


_LEAST_QUANTISED, _QUANTISED_BLOCK, _CODE_BYTES = 4096, 256, 256 * 4
"""Elements from which on a state has 8 bits (`min_8bit_size`), those that share a scale, and bytes of the two tables of
values that all states share: bitsandbytes 0.44 and later, `optim/optimizer.py`; before it 2,048 shared a scale."""


@dataclass(frozen=True, slots=True)
class Optimizer:
    """``states`` per parameter; ``lists`` of all parameters' size at a time, ``tensors`` of one at a time.

    ``quantised`` states have one byte an element and an FP32 scale for each 256 of them.
    """

    states: int
    lists: int = 0
    tensors: int = 0
    counters: bool = False
    quantised: bool = False


OPTIMIZERS: dict[OptimizerName, Optimizer] = {
    "sgd": Optimizer(0),
    "momentum": Optimizer(1),
    "adam": Optimizer(2, lists=1),
    "adamw": Optimizer(2, lists=1),
    "adam_fused": Optimizer(2, counters=True),
    "adamw_fused": Optimizer(2, counters=True),
    "adam_loop": Optimizer(2, tensors=2),
    "adamw_loop": Optimizer(2, tensors=2),
    "adamw_8bit": Optimizer(2, quantised=True),
}
"""By name: without a suffix the default implementation on a GPU, which is `foreach`; ``adamw_8bit`` is that of
bitsandbytes."""


def with_optimizer(program: StepProgram, name: OptimizerName, item: int = 4) -> StepProgram:
    """The program with another optimizer, of the same parameters.

    Args:
        program: with parameters whose sizes are known.
        name: one of `OPTIMIZERS`.
        item: bytes of an element of a parameter.

    Raises:
        KeyError: it is none of them.
    """
    optimizer = OPTIMIZERS[name]
    where, edits = places(program), EventEdits(program)
    edits.drop_optimizer(where)
    # Embeddings that got no gradient and frozen parameters have no state, either.
    parameters = [parameter for parameter in program.parameters() if parameter.bytes]
    made_events: list[int] = []
    for _ in range(optimizer.lists):
        slots = [edits.add(Slot(parameter.bytes, SlotKind.OPTIMIZER)) for parameter in parameters]
        made_events += [slot + 1 for slot in slots] + [-slot - 1 for slot in slots]
    if optimizer.tensors and parameters:
        largest = max(parameter.bytes for parameter in parameters)
        slots = [edits.add(Slot(largest, SlotKind.OPTIMIZER)) for _ in range(optimizer.tensors)]
        made_events += [slot + 1 for slot in slots] + [-slot - 1 for slot in slots]
    edits.put(program.optimizer_at, made_events)
    states = [state for state in program.states if state.kind != HeldKind.OPTIMIZER_STATE]
    for one in parameters:
        sizes = _quantised(one.bytes // item) if optimizer.quantised else [one.bytes]
        states += [Held(size, HeldKind.OPTIMIZER_STATE, one.module) for size in sizes * optimizer.states]
        if optimizer.counters:
            states.append(Held(_COUNTER, HeldKind.OPTIMIZER_STATE, one.module))
    if optimizer.quantised:
        states += [Held(_CODE_BYTES, HeldKind.OPTIMIZER_STATE)] * 2
    # What the step makes belongs to it.
    return replace(edits.changed(states=states), optimizer_at=program.optimizer_at)


def _quantised(elements: int) -> list[int]:
    """Bytes of one state of a parameter, and of its scales."""
    if elements < _LEAST_QUANTISED:
        return [4 * elements]
    return [elements, 4 * -(-elements // _QUANTISED_BLOCK)]


_TENSORS_PER_KERNEL = 40
"""Of the kernels of `foreach` and `fused`: their arguments hold 30 to 110 tensors, by how many lists they take."""


@dataclass(frozen=True, slots=True)
class OptimizerStepCost:
    """A step.

    Attributes:
        words: values read and written per element.
        kernels: passes over the parameters.
        calls: ops of the CPU, those within others counted.
        calls_by_parameter: more of these for each parameter tensor, such as its counter of steps.
        by_parameter: whether each parameter has kernels of its own.
    """

    words: float
    kernels: int
    calls: int
    calls_by_parameter: float = 0.0
    by_parameter: bool = False

    def kernels_for(self, parameters: int) -> int:
        """Kernels of a step over so many parameter tensors."""
        tensors = parameters if self.by_parameter else math.ceil(parameters / _TENSORS_PER_KERNEL)
        return max(1, self.kernels * max(1, tensors))


OPTIMIZER_WORK: dict[str, OptimizerStepCost] = {
    "sgd": OptimizerStepCost(3, 1, 4),
    "momentum": OptimizerStepCost(8, 3, 6),
    "adam": OptimizerStepCost(18, 7, 10, 5),
    "adamw": OptimizerStepCost(20, 8, 11, 5),
    "adam_fused": OptimizerStepCost(7, 1, 6),
    "adamw_fused": OptimizerStepCost(7, 1, 6),
    "adam_loop": OptimizerStepCost(18, 7, 4, 13, by_parameter=True),
    "adamw_loop": OptimizerStepCost(20, 8, 4, 14, by_parameter=True),
    # One kernel for each parameter, which reads values and gradients and both states of a byte.
    "adamw_8bit": OptimizerStepCost(4, 1, 4, 6, by_parameter=True),
}
"""By the names of `OptimizerName`. Calls per parameter of Adam, as recordings have them: `add_` and what
it makes, and two times `item` and what it calls."""


def recorded_optimizer(facts: RunFacts, ops: Iterable[str]) -> OptimizerStepCost | None:
    """The optimizer of a run by its class and the ops that launched its kernels; None for one that is not known."""
    kind = (facts.optimizer or "").lower()
    if kind == "sgd":
        return OPTIMIZER_WORK["momentum" if facts.optimizer_state_bytes else "sgd"]
    if kind not in ("adam", "adamw"):
        return None
    names = list(ops)
    if any("_fused_adam" in name for name in names):
        return OPTIMIZER_WORK[f"{kind}_fused"]
    if any("_foreach_" in name for name in names):
        return OPTIMIZER_WORK[kind]
    return OPTIMIZER_WORK[f"{kind}_loop"]


def with_kept_gradients(program: StepProgram) -> StepProgram:
    """`zero_grad(set_to_none=False)`: gradients stay, and the backward pass adds each new one to the one that is
    there."""
    where, edits = places(program), EventEdits(program)
    kept = []
    for slot in _gradients(program, where):
        edits.drop(where.freed[slot])
        edits.put(_behind_node(program, where.made[slot]), [-slot - 1])
        kept.append(Held(program.slots[slot].bytes, HeldKind.GRADIENT, program.slots[slot].module))
    return edits.changed(states=[*program.states, *kept])


def bytes_freed_late(program: StepProgram) -> int:
    """Gradients of the last step that are freed when the forward pass has made something already."""
    return sum(program.slots[slot].bytes for slot in _freed_late(program, places(program)))


def with_freed_gradients(program: StepProgram) -> StepProgram:
    """`zero_grad(set_to_none=True)`, the default since torch 2.0: gradients are freed before the forward pass and made
    again. Unchanged where they are already."""
    kept = [storage for storage in (*program.held, *program.states) if storage.kind == HeldKind.GRADIENT]
    where, edits = places(program), EventEdits(program)
    late = _freed_late(program, where)
    if not kept and not late:
        return program
    for slot in late:
        edits.drop(where.freed[slot])
        edits.put(0, [-slot - 1])
    waiting: dict[int, int] = {}
    for one in kept:
        waiting[one.bytes] = waiting.get(one.bytes, 0) + 1
    for slot, made in enumerate(where.made):
        was = program.slots[slot]
        if made >= program.backward_at and where.freed[slot] > made and waiting.get(was.bytes):
            waiting[was.bytes] -= 1
            edits.drop(where.freed[slot])
            edits.put(0, [-slot - 1])
            edits.slots[slot] = replace(was, kind=SlotKind.GRADIENT)
    return edits.changed(
        held=[storage for storage in program.held if storage.kind != HeldKind.GRADIENT],
        states=[state for state in program.states if state.kind != HeldKind.GRADIENT],
    )


def with_accumulation(program: StepProgram, batches: int) -> StepProgram:
    """Forward and backward pass ``batches`` times before each optimizer step: the gradients of the first are there
    while the others run, and each of theirs is added and freed at once."""
    where, edits = places(program), EventEdits(program)
    gradients = set(_gradients(program, where))
    # The batch that a step frees at its end is replaced by the next one.
    inputs = {
        slot: slot
        for slot, allocation in enumerate(program.slots)
        if allocation.kind == SlotKind.INPUT and where.made[slot] < program.optimizer_at <= where.freed[slot]
    }
    for _ in range(batches - 1):
        new: dict[int, int] = {}
        events: list[int] = []
        last = inputs
        added: list[int] = []
        for event in program.events[: program.optimizer_at]:
            slot = abs(event) - 1
            if event > 0:
                if last and program.slots[slot].kind != SlotKind.INPUT:
                    events += [-one - 1 for one in last.values()]
                    last = {}
                if added and not program.slots[slot].behind_node:
                    events += [-new.pop(one) - 1 for one in added]
                    added = []
                new[slot] = edits.copy(slot)
                events.append(new[slot] + 1)
                if slot in gradients:
                    added.append(slot)
            elif slot in new:
                events.append(-new.pop(slot) - 1)
        inputs = {slot: new.pop(slot) for slot in inputs}
        events += [-slot - 1 for slot in new.values()]
        edits.put(program.optimizer_at, events)
    for slot, last_one in inputs.items():
        edits.replace(where.freed[slot], -last_one - 1)
    return edits.changed()


def _behind_node(program: StepProgram, made: int) -> int:
    """The index at which a gradient has been added to the one that is there: when autograd is done with its node."""
    events = program.events
    return next(
        (i for i in range(made + 1, len(events)) if events[i] > 0 and not program.slots[events[i] - 1].behind_node),
        len(events),
    )


def _freed_late(program: StepProgram, where: Places) -> list[int]:
    """Slots of gradients that are freed behind the first activation."""
    activations = (
        where.made[slot] for slot, allocation in enumerate(program.slots) if allocation.kind == SlotKind.ACTIVATION
    )
    first = min(activations, default=len(program.events))
    return [slot for slot in _gradients(program, where) if where.freed[slot] > first]


def _gradients(program: StepProgram, where: Places) -> list[int]:
    """Slots of parameters' gradients that the next step frees."""
    return [slot for slot in where.carried if program.slots[slot].kind == SlotKind.GRADIENT]
