"""The step with memory on the CPU: the optimizer's states, or what modules keep for their backward pass.

States: the step of the optimizer runs on the CPU, and nothing of it is on the GPU. Activations, as
`torch.autograd.graph.save_on_cpu` around a module: what it keeps is copied away when its forward pass ends and comes
back when its backward pass begins; its output stays where the next module has it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tb_dlprof_plugin.planning.memory.change_checkpoints import saved_output
from tb_dlprof_plugin.planning.memory.event_places import Rewrite, places
from tb_dlprof_plugin.planning.memory.module_events import module_events
from tb_dlprof_plugin.planning.memory.step_program import HeldKind, SlotKind, StepProgram

OPTIMIZER = "optimizer"
"""The word for the optimizer's states among names of modules."""


def with_offload(program: StepProgram, what: Sequence[str]) -> StepProgram:
    """The program with memory on the CPU.

    Args:
        program: the step.
        what: `OPTIMIZER` and paths of modules; none may lie within another.

    Raises:
        UnknownModule: a module made nothing in the forward pass.
    """
    where, rewrite = places(program), Rewrite(program)
    for module in (one for one in what if one != OPTIMIZER):
        own = module_events(program, where, module)
        saved = [
            slot
            for slot in sorted(own.slots)
            if own.forward_first <= where.made[slot] <= own.forward_last and where.freed[slot] >= own.backward_first
        ]
        output = saved_output(program, where, own, set(saved))
        for slot in saved:
            if slot == output:
                continue
            again = rewrite.copy(slot)
            rewrite.put(own.forward_last + 1, [-slot - 1])
            rewrite.put(own.backward_first, [again + 1])
            rewrite.replace(where.freed[slot], -again - 1)
    changed = rewrite.changed()
    return _without_optimizer(changed) if OPTIMIZER in what else changed


def _without_optimizer(program: StepProgram) -> StepProgram:
    where, rewrite = places(program), Rewrite(program)
    for slot, made in enumerate(where.made):
        if made >= program.optimizer_at and program.slots[slot].kind in (SlotKind.OPTIMIZER, SlotKind.TEMPORARY):
            rewrite.drop(made)
            if where.freed[slot] >= 0:
                rewrite.drop(where.freed[slot])
    states = [one for one in program.states if one.kind != HeldKind.OPTIMIZER_STATE]
    return rewrite.changed(states=states)
