"""The step with activation checkpointing of modules: what each keeps for its backward pass goes as soon as its forward
pass has used it, and is made again before its backward pass.

As `torch.utils.checkpoint` without reentrance does it: the module's input and output stay, an input that no op saved as
well, and what it makes and frees within its forward pass is made and freed again, up to the last tensor that is kept
(its default `early_stop`). An output that the module keeps for itself, as a ReLU does, is there until its backward pass
begins, and is then made again.
"""

from __future__ import annotations

from collections.abc import Sequence

from tb_dlprof_plugin.planning.memory.allocator import rounded
from tb_dlprof_plugin.planning.memory.event_places import Places, Rewrite, places
from tb_dlprof_plugin.planning.memory.forward_holders import ForwardHolders
from tb_dlprof_plugin.planning.memory.module_events import ModuleEvents, module_events
from tb_dlprof_plugin.planning.memory.op_calls import OpCalls
from tb_dlprof_plugin.planning.memory.op_shapes import ITEM_SIZES
from tb_dlprof_plugin.planning.memory.step_program import StepProgram


def with_checkpoints(program: StepProgram, modules: Sequence[str], calls: OpCalls) -> StepProgram:
    """The program with modules that are computed again.

    Args:
        program: the step.
        modules: paths; none may lie within another.
        calls: those of the recording.

    Raises:
        UnknownModule: a module made nothing in the forward pass.
    """
    where, rewrite = places(program), Rewrite(program)
    holders = ForwardHolders(program, where, calls)
    for module in modules:
        own = module_events(program, where, module)
        saved = {slot for slot in own.slots if _is_saved(own, where.made[slot], where.freed[slot])}
        again = {slot: rewrite.copy(slot) for slot in saved}
        output = saved_output(program, where, own, saved)
        for slot in sorted(saved - {output}):
            rewrite.put(holders.held_until(slot, {module: own.forward_last}), [-slot - 1])
        if output is not None:
            rewrite.put(own.backward_first, [-output - 1])
        given = _given(program, where, own)
        if given is not None:
            rewrite.drop(where.freed[given])
            rewrite.put(own.backward_last + 1, [-given - 1])
        rewrite.put(own.backward_first, _recomputed(program, where, own, again, rewrite))
        for slot in saved:
            rewrite.drop(where.freed[slot])
            rewrite.put(_unpacked(program, where.freed[slot], own.backward_first), [-again[slot] - 1])
    return rewrite.changed()


def _recomputed(
    program: StepProgram, where: Places, own: ModuleEvents, again: dict[int, int], rewrite: Rewrite
) -> list[int]:
    """The events of the second forward pass, which adds to ``again`` what it makes and frees."""
    saved = frozenset(again)
    stop = max((where.made[slot] for slot in saved), default=-1)
    events: list[int] = []
    alive: list[int] = []
    for event in program.events[own.forward_first : own.forward_last + 1]:
        slot = abs(event) - 1
        if slot not in own.slots or where.made[slot] > stop:
            continue
        if event > 0:
            new = again.get(slot)
            if new is None:
                new = again[slot] = rewrite.copy(slot)
            events.append(new + 1)
            if slot not in saved:
                alive.append(slot)
        elif slot in alive:
            alive.remove(slot)
            events.append(-again[slot] - 1)
    # What the first pass leaves to the module behind it goes with the second one.
    return events + [-again[slot] - 1 for slot in alive]


def _unpacked(program: StepProgram, freed: int, first: int) -> int:
    """The index before which a tensor that was made again goes, for one that a node frees at ``freed``: nothing but the
    node's function has it, so it goes before autograd sums the gradients."""
    place = freed + 1
    for index in range(freed - 1, first, -1):
        event = program.events[index]
        if event > 0:
            if not program.slots[event - 1].behind_node:
                break
            place = index
    return place


def _given(program: StepProgram, where: Places, own: ModuleEvents) -> int | None:
    """The slot of the module's input, where nothing saved it: the checkpoint holds it until the module's backward pass
    is over. None where something did, or shapes were not recorded."""
    for index in range(own.forward_first, own.forward_last + 1):
        reads = program.slots[program.events[index] - 1].reads if program.events[index] > 0 else ()
        if not reads:
            continue
        sizes = {rounded(count * item) for count in reads for item in (2, 4)}
        there = [
            slot
            for slot, made in enumerate(where.made)
            if 0 <= made < own.forward_first < where.freed[slot] and rounded(program.slots[slot].bytes) in sizes
        ]
        latest = max(there, key=where.made.__getitem__, default=None)
        return latest if latest is not None and where.freed[latest] < own.backward_first else None
    return None


def _is_saved(own: ModuleEvents, made: int, freed: int) -> bool:
    """Whether the module's own backward pass is the last to need it."""
    return own.forward_first <= made <= own.forward_last and freed >= own.backward_first


def saved_output(program: StepProgram, where: Places, own: ModuleEvents, saved: set[int]) -> int | None:
    """The saved slot that is the module's output too: where no other outlives the forward pass, the largest that the
    next op is given, the last of equals; else the last one. None where the output is not saved."""
    made = [slot for slot in own.slots if own.forward_first <= where.made[slot] <= own.forward_last]
    if not saved or any(own.forward_last < where.freed[slot] < own.backward_first for slot in made):
        return None
    for event in program.events[own.forward_last + 1 : program.backward_at]:
        reads = program.slots[event - 1].reads if event > 0 else ()
        given = {rounded(count * item) for count in reads for item in ITEM_SIZES}
        fitting = [slot for slot in saved if rounded(program.slots[slot].bytes) in given]
        if fitting:
            return max(fitting, key=lambda slot: (program.slots[slot].bytes, where.made[slot]))
    return max(saved, key=lambda slot: where.made[slot])
