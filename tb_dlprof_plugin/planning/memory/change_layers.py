"""The step of a deeper model: copies of a module in front of it, each with its parameters, states and gradients.

The copies run before the module in the forward pass and after it in the backward pass. What the module frees of its
neighbours', such as its input and the gradient of its output, each copy frees of the copy or module in that place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tb_dlprof_plugin.planning.memory.allocator import rounded
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
    copies = [{slot: rewrite.copy(slot) for slot in sorted(own.slots)} for _ in range(count)]
    # The module itself comes behind its copies.
    order: list[Mapping[int, int]] = [*copies, {slot: slot for slot in own.slots}]
    forward = range(own.forward_first, own.forward_last + 1)
    backward = range(own.backward_first, own.backward_last + 1)
    made, freed = where.made, where.freed

    def left(within: range, freed_in: range) -> list[int]:
        return sorted(
            (slot for slot in own.slots if made[slot] in within and freed[slot] in freed_in), key=freed.__getitem__
        )

    def taken(within: range, made_in: range) -> list[int]:
        frees = [-program.events[index] - 1 for index in within if program.events[index] < 0]
        return [slot for slot in frees if slot not in own.slots and made[slot] in made_in]

    before = range(own.forward_first)
    left_forward = left(forward, range(own.forward_last + 1, program.backward_at))
    left_kept = left(forward, range(program.backward_at, own.backward_first))
    left_behind = left(backward, range(own.backward_last + 1, len(program.events)))
    inputs = _paired(program, taken(forward, before), left_forward)
    # The module behind may not keep what the module itself keeps of the one before it, or the other way round.
    kept = _paired(program, taken(backward, before), [*left_kept, *_without(left_forward, inputs)])
    inputs |= _paired(program, taken(forward, before), _without(left_kept, kept), inputs)
    handed = {**inputs, **kept}
    gradients = _paired(program, taken(backward, range(program.backward_at, own.backward_first)), left_behind)

    for number, new in enumerate(copies):
        theirs = {slot: order[number - 1][mine] if number else slot for slot, mine in inputs.items()}
        rewrite.put(own.forward_first, _within(program, forward, {**theirs, **new}))
        if number:
            rewrite.put(own.forward_first, _frees(left_forward, handed, order[number - 1]))
    rewrite.put(own.forward_last + 1, _frees(left_forward, handed, copies[-1]))
    end = own.backward_last + 1
    rewrite.put(end, _frees(left_kept, handed, copies[-1]))
    for number in reversed(range(count)):
        new, behind = copies[number], order[number + 1]
        theirs = {slot: order[number - 1][mine] if number else slot for slot, mine in kept.items()}
        theirs |= {slot: behind[mine] for slot, mine in gradients.items()}
        rewrite.put(end, _within(program, backward, {**theirs, **new}))
        rest = [slot for slot in own.slots if made[slot] in forward and freed[slot] > own.backward_last]
        rewrite.put(end, [-new[slot] - 1 for slot in rest] + _frees(left_behind, gradients, new))
        if number:
            rewrite.put(end, _frees(left_kept, handed, order[number - 1]))
    # What the module frees of the one before it is now the last copy's, what that one frees of the module the first's.
    for slot, mine in handed.items():
        rewrite.replace(freed[slot], -copies[-1][mine] - 1)
    for mine in gradients.values():
        rewrite.replace(freed[mine], -copies[0][mine] - 1)
    for slot in where.carried & own.slots:
        rewrite.put(freed[slot], [-new[slot] - 1 for new in copies])
    held = [one for one in program.held if inside(one.module, module)] if module else []
    states = [one for one in program.states if inside(one.module, module)] if module else []
    return rewrite.changed([*program.held, *held * count], [*program.states, *states * count])


def _paired(
    program: StepProgram, taken: Sequence[int], left: Sequence[int], known: Collection[int] = ()
) -> dict[int, int]:
    """Which of what a module leaves stands in the place of what it takes, but what is ``known``: the next one of the
    same size."""
    found: dict[int, int] = {}
    for slot in taken:
        if slot in known:
            continue
        size = rounded(program.slots[slot].bytes)
        same = (mine for mine in left if mine not in found.values() and rounded(program.slots[mine].bytes) == size)
        mine = next(same, None)
        if mine is not None:
            found[slot] = mine
    return found


def _without(left: Sequence[int], paired: Mapping[int, int]) -> list[int]:
    taken = set(paired.values())
    return [slot for slot in left if slot not in taken]


def _frees(left: Sequence[int], paired: Mapping[int, int], new: Mapping[int, int]) -> list[int]:
    """Frees of what a copy leaves and no neighbour takes at a place of its own."""
    return [-new[slot] - 1 for slot in _without(left, paired)]


def _within(program: StepProgram, events: range, new: Mapping[int, int]) -> list[int]:
    """The events of a stretch that concern slots with a copy, of the copies."""
    found = []
    for index in events:
        event = program.events[index]
        copied = new.get(abs(event) - 1)
        if copied is not None:
            found.append(copied + 1 if event > 0 else -copied - 1)
    return found
