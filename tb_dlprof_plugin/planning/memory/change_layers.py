"""The step of a deeper model: copies of a module in front of it, each with its parameters, states and gradients.

The copies run before the module in the forward pass and after it in the backward pass. What the module leaves to the
next one, or to the one before it in the backward pass, a copy leaves to its neighbour.
"""

from __future__ import annotations

from tb_dlprof_plugin.planning.memory.event_places import Rewrite, places
from tb_dlprof_plugin.planning.memory.module_events import inside, module_events
from tb_dlprof_plugin.planning.memory.step_program import StepProgram


def with_layers(program: StepProgram, module: str, count: int) -> StepProgram:
    """The program with ``count`` more modules like one that is there.

    Raises:
        UnknownModule: the module made nothing in the forward pass.
    """
    if count <= 0:
        return program
    where, rewrite = places(program), Rewrite(program)
    own = module_events(program, where, module)
    copies = [{slot: rewrite.copy(slot) for slot in own.slots} for _ in range(count)]
    # The order of both passes: the copies, then the module; and the reverse.
    forward = range(own.forward_first, own.forward_last + 1)
    backward = range(own.backward_first, own.backward_last + 1)
    behind_forward: list[int] = []
    for new in copies:
        rewrite.put(own.forward_first, _within(program, forward, new) + behind_forward)
        behind_forward = [
            -new[slot] - 1
            for slot in own.slots
            if where.made[slot] in forward and own.forward_last < where.freed[slot] < program.backward_at
        ]
    rewrite.put(own.forward_last + 1, behind_forward)
    end = own.backward_last + 1
    # What a neighbour's backward pass frees: the kept output of the module before it, then its own input's gradient.
    outputs = [
        slot
        for slot in own.slots
        if where.made[slot] in forward and program.backward_at <= where.freed[slot] < own.backward_first
    ]
    later = [
        slot for slot in own.slots if where.made[slot] >= program.backward_at and where.freed[slot] > own.backward_last
    ]
    rewrite.put(end, [-copies[-1][slot] - 1 for slot in outputs])
    for number in range(count - 1, -1, -1):
        new = copies[number]
        rewrite.put(end, _within(program, backward, new))
        rest = [slot for slot in own.slots if where.made[slot] in forward and where.freed[slot] > own.backward_last]
        rewrite.put(end, [-new[slot] - 1 for slot in rest])
        if number:
            rewrite.put(end, [-copies[number - 1][slot] - 1 for slot in outputs])
        rewrite.put(end, [-new[slot] - 1 for slot in later])
    for slot in where.carried & own.slots:
        rewrite.put(where.freed[slot], [-new[slot] - 1 for new in copies])
    held = [one for one in program.held if inside(one.module, module)] if module else []
    states = [one for one in program.states if inside(one.module, module)] if module else []
    return rewrite.changed([*program.held, *held * count], [*program.states, *states * count])


def _within(program: StepProgram, events: range, new: dict[int, int]) -> list[int]:
    """The events of a stretch that concern the copied slots, of the copies."""
    found = []
    for index in events:
        event = program.events[index]
        copied = new.get(abs(event) - 1)
        if copied is not None:
            found.append(copied + 1 if event > 0 else -copied - 1)
    return found
