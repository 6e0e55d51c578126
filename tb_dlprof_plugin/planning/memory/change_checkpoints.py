"""The step with activation checkpointing of modules: what each keeps for its backward pass is freed when its forward
pass ends, and made again before its backward pass.

As `torch.utils.checkpoint` without reentrance does it: the module's input and output stay, and what it makes and frees
within its forward pass is made and freed again.
"""

from __future__ import annotations

from collections.abc import Sequence

from tb_dlprof_plugin.planning.memory.event_places import Rewrite, places
from tb_dlprof_plugin.planning.memory.module_events import ModuleEvents, module_events
from tb_dlprof_plugin.planning.memory.step_program import StepProgram


def with_checkpoints(program: StepProgram, modules: Sequence[str]) -> StepProgram:
    """The program with modules that are computed again.

    Args:
        program: the step.
        modules: paths; none may lie within another.

    Raises:
        UnknownModule: a module made nothing in the forward pass.
    """
    where, rewrite = places(program), Rewrite(program)
    for module in modules:
        own = module_events(program, where, module)
        saved = {slot for slot in own.slots if _is_saved(own, where.made[slot], where.freed[slot])}
        again: dict[int, int] = {slot: rewrite.copy(slot) for slot in saved}
        events: list[int] = []
        for index in range(own.forward_first, own.forward_last + 1):
            event = program.events[index]
            slot = abs(event) - 1
            if slot not in own.slots:
                continue
            if slot not in saved and not own.forward_first <= where.freed[slot] <= own.forward_last:
                # The output, which is there.
                continue
            new = again.get(slot)
            if new is None:
                new = again[slot] = rewrite.copy(slot)
            events.append(new + 1 if event > 0 else -new - 1)
        rewrite.put(own.forward_last + 1, [-slot - 1 for slot in sorted(saved)])
        rewrite.put(own.backward_first, events)
        for slot in saved:
            rewrite.drop(where.freed[slot])
            rewrite.put(where.freed[slot] + 1, [-again[slot] - 1])
    return rewrite.changed()


def _is_saved(own: ModuleEvents, made: int, freed: int) -> bool:
    """Whether the module's own backward pass is the last to need it. A module's output is freed before, by that of the
    module behind it."""
    return own.forward_first <= made <= own.forward_last and freed >= own.backward_first
