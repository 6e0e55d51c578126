"""The step with gradients that are kept, and with several batches accumulated to one optimizer step."""

from __future__ import annotations

from dataclasses import replace

from tb_dlprof_plugin.planning.memory.event_places import Places, Rewrite, places
from tb_dlprof_plugin.planning.memory.step_program import Held, HeldKind, SlotKind, StepProgram


def with_kept_gradients(program: StepProgram) -> StepProgram:
    """`zero_grad(set_to_none=False)`: gradients stay, and the backward pass adds each new one to the one that is
    there."""
    where, rewrite = places(program), Rewrite(program)
    kept = []
    for slot in _gradients(program, where):
        rewrite.drop(where.freed[slot])
        rewrite.put(_behind_node(program, where.made[slot]), [-slot - 1])
        kept.append(Held(program.slots[slot].bytes, HeldKind.GRADIENT, program.slots[slot].module))
    return rewrite.changed(states=[*program.states, *kept])


def bytes_freed_late(program: StepProgram) -> int:
    """Gradients of the last step that are freed when the forward pass has made something already."""
    return sum(program.slots[slot].bytes for slot in _freed_late(program, places(program)))


def with_freed_gradients(program: StepProgram) -> StepProgram:
    """`zero_grad(set_to_none=True)`, the default since torch 2.0: gradients are freed before the forward pass and made
    again. Unchanged where they are already."""
    kept = [one for one in (*program.held, *program.states) if one.kind == HeldKind.GRADIENT]
    where, rewrite = places(program), Rewrite(program)
    late = _freed_late(program, where)
    if not kept and not late:
        return program
    for slot in late:
        rewrite.drop(where.freed[slot])
        rewrite.put(0, [-slot - 1])
    waiting: dict[int, int] = {}
    for one in kept:
        waiting[one.bytes] = waiting.get(one.bytes, 0) + 1
    for slot, made in enumerate(where.made):
        was = program.slots[slot]
        if made >= program.backward_at and where.freed[slot] > made and waiting.get(was.bytes):
            waiting[was.bytes] -= 1
            rewrite.drop(where.freed[slot])
            rewrite.put(0, [-slot - 1])
            rewrite.slots[slot] = replace(was, kind=SlotKind.GRADIENT)
    return rewrite.changed(
        held=[one for one in program.held if one.kind != HeldKind.GRADIENT],
        states=[one for one in program.states if one.kind != HeldKind.GRADIENT],
    )


def with_accumulation(program: StepProgram, batches: int) -> StepProgram:
    """Forward and backward pass ``batches`` times before each optimizer step: the gradients of the first are there
    while the others run, and each of theirs is added and freed at once."""
    where, rewrite = places(program), Rewrite(program)
    gradients = set(_gradients(program, where))
    # The batch that a step frees at its end is replaced by the next one.
    inputs = {
        slot: slot
        for slot, one in enumerate(program.slots)
        if one.kind == SlotKind.INPUT and where.made[slot] < program.optimizer_at <= where.freed[slot]
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
                new[slot] = rewrite.copy(slot)
                events.append(new[slot] + 1)
                if slot in gradients:
                    added.append(slot)
            elif slot in new:
                events.append(-new.pop(slot) - 1)
        inputs = {slot: new.pop(slot) for slot in inputs}
        events += [-slot - 1 for slot in new.values()]
        rewrite.put(program.optimizer_at, events)
    for slot, last_one in inputs.items():
        rewrite.replace(where.freed[slot], -last_one - 1)
    return rewrite.changed()


def _behind_node(program: StepProgram, made: int) -> int:
    """The index at which a gradient has been added to the one that is there: when autograd is done with its node."""
    events = program.events
    return next(
        (i for i in range(made + 1, len(events)) if events[i] > 0 and not program.slots[events[i] - 1].behind_node),
        len(events),
    )


def _freed_late(program: StepProgram, where: Places) -> list[int]:
    """Slots of gradients that are freed behind the first activation."""
    activations = (where.made[slot] for slot, one in enumerate(program.slots) if one.kind == SlotKind.ACTIVATION)
    first = min(activations, default=len(program.events))
    return [slot for slot in _gradients(program, where) if where.freed[slot] > first]


def _gradients(program: StepProgram, where: Places) -> list[int]:
    """Slots of parameters' gradients that the next step frees."""
    return [slot for slot in where.carried if program.slots[slot].kind == SlotKind.GRADIENT]
