"""The step with another optimizer: its states, and what its implementation makes during the step.

States per parameter, from `torch/optim`: none for SGD, one buffer with momentum, two for Adam and AdamW; the fused
implementation keeps each parameter's step counter on the GPU. During the step `foreach` makes a list of roots of all
second moments (Adam), the loop two tensors of one parameter at a time, `fused` and SGD nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tb_dlprof_plugin.model.plan_request import OptimizerName
from tb_dlprof_plugin.planning.memory.event_places import Rewrite, places
from tb_dlprof_plugin.planning.memory.step_program import Held, HeldKind, Slot, SlotKind, StepProgram

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
    where, rewrite = places(program), Rewrite(program)
    # The recorded optimizer's own: made and freed in its step.
    for slot, made in enumerate(where.made):
        freed = where.freed[slot]
        if made >= program.optimizer_at and program.slots[slot].kind in (SlotKind.OPTIMIZER, SlotKind.TEMPORARY):
            rewrite.drop(made)
            if freed >= 0:
                rewrite.drop(freed)
    # Embeddings that got no gradient and frozen parameters have no state, either.
    parameters = [one for one in program.parameters() if one.bytes]
    made_events: list[int] = []
    for _ in range(optimizer.lists):
        slots = [_new(rewrite, one.bytes) for one in parameters]
        made_events += [slot + 1 for slot in slots] + [-slot - 1 for slot in slots]
    if optimizer.tensors and parameters:
        largest = max(one.bytes for one in parameters)
        slots = [_new(rewrite, largest) for _ in range(optimizer.tensors)]
        made_events += [slot + 1 for slot in slots] + [-slot - 1 for slot in slots]
    rewrite.put(program.optimizer_at, made_events)
    states = [one for one in program.states if one.kind != HeldKind.OPTIMIZER_STATE]
    for one in parameters:
        sizes = _quantised(one.bytes // item) if optimizer.quantised else [one.bytes]
        states += [Held(size, HeldKind.OPTIMIZER_STATE, one.module) for size in sizes * optimizer.states]
        if optimizer.counters:
            states.append(Held(_COUNTER, HeldKind.OPTIMIZER_STATE, one.module))
    if optimizer.quantised:
        states += [Held(_CODE_BYTES, HeldKind.OPTIMIZER_STATE)] * 2
    # What the step makes belongs to it.
    return replace(rewrite.changed(states=states), optimizer_at=program.optimizer_at)


def _quantised(elements: int) -> list[int]:
    """Bytes of one state of a parameter, and of its scales."""
    if elements < _LEAST_QUANTISED:
        return [4 * elements]
    return [elements, 4 * -(-elements // _QUANTISED_BLOCK)]


def _new(rewrite: Rewrite, size: int) -> int:
    rewrite.slots.append(Slot(size, SlotKind.OPTIMIZER))
    return len(rewrite.slots) - 1
