"""The step with memory on the CPU: the optimizer's states, or what modules keep for their backward pass.

States: the step of the optimizer runs on the CPU, and nothing of it is on the GPU.

Activations: as `torch.autograd.graph.save_on_cpu` around a module. Every tensor that an op saves is copied to the CPU
at once, parameters too, and is on the GPU only as long as the forward pass has it: the module that is given it holds it
until it returns. In the backward pass each node brings back a copy of each tensor that it saved, which goes when the
node's function is over; a tensor that two nodes saved comes back twice. What an op outside of the modules saves, too,
stays on the GPU until that op's node has run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tb_dlprof_plugin.model.plan_request import OFFLOADED_OPTIMIZER
from tb_dlprof_plugin.planning.memory.allocator import rounded
from tb_dlprof_plugin.planning.memory.event_places import Places, Rewrite, places
from tb_dlprof_plugin.planning.memory.forward_holders import ForwardHolders
from tb_dlprof_plugin.planning.memory.module_events import inside, module_events
from tb_dlprof_plugin.planning.memory.op_calls import OpCalls
from tb_dlprof_plugin.planning.memory.step_program import HeldKind, Slot, SlotKind, StepProgram


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of the backward pass: indices of its function's first and last allocation, bytes of the saved tensors
    that it reads (None where shapes were not recorded), and the offloaded module that it belongs to."""

    first: int
    last: int
    reads: list[int] | None
    module: str | None

    def can_save(self, made: int, freed: int, ends: Mapping[str, int], optimizer_at: int) -> bool:
        """Whether what is made and freed at these places can be a tensor that the module saved, whose forward pass ends
        where ``ends`` says: not the result of a later one that the script holds."""
        return self.module is not None and made <= ends[self.module] and freed < optimizer_at


def with_offload(program: StepProgram, what: Sequence[str], calls: OpCalls) -> StepProgram:
    """The program with memory on the CPU.

    Args:
        program: the step.
        what: `OFFLOADED_OPTIMIZER` and paths of modules; none may lie within another.
        calls: those of the recording.

    Raises:
        UnknownModule: a module made nothing in the forward pass.
    """
    modules = [one for one in what if one != OFFLOADED_OPTIMIZER]
    changed = _without_activations(program, modules, calls) if modules else program
    return _without_optimizer(changed) if OFFLOADED_OPTIMIZER in what else changed


def _without_activations(program: StepProgram, modules: Sequence[str], calls: OpCalls) -> StepProgram:
    where, rewrite = places(program), Rewrite(program)
    ends = {module: module_events(program, where, module).forward_last for module in modules}
    nodes = _nodes(program, where, modules, calls)
    holders = ForwardHolders(program, where, calls)
    kept = [slot for slot, made in enumerate(where.made) if 0 <= made < program.backward_at <= where.freed[slot]]
    for node in nodes:
        if node.module is not None and node.reads is not None:
            _bring_back(rewrite, where, node, kept)
    for slot in kept:
        last = next((node for node in reversed(nodes) if node.last < where.freed[slot]), None)
        if last is None or not last.can_save(where.made[slot], where.freed[slot], ends, program.optimizer_at):
            continue
        if last.reads is None:
            again = rewrite.copy(slot)
            rewrite.put(last.first, [again + 1])
            rewrite.replace(where.freed[slot], -again - 1)
        else:
            rewrite.drop(where.freed[slot])
        outside = _read_outside(program, where, slot, holders.first_reader(slot), ends, nodes)
        rewrite.put(holders.held_until(slot, ends) if outside is None else outside, [-slot - 1])
    return rewrite.changed()


def _nodes(program: StepProgram, where: Places, modules: Sequence[str], calls: OpCalls) -> list[_Node]:
    """The nodes that allocate, in their order."""
    found: list[_Node] = []
    run: list[int] = []

    def close() -> None:
        if run:
            found.append(_node(program, where, run, modules, calls))
            run.clear()

    for index in range(program.backward_at, program.optimizer_at):
        event = program.events[index]
        if event <= 0:
            continue
        call = program.slots[event - 1].call
        if run:
            before = program.slots[program.events[run[-1]] - 1].call
            if calls.node(call) < 0 or calls.node(call) != calls.node(before):
                close()
        run.append(index)
    close()
    return found


def _node(program: StepProgram, where: Places, run: Sequence[int], modules: Sequence[str], calls: OpCalls) -> _Node:
    made = [program.events[index] - 1 for index in run]
    own = [slot for slot in made if not program.slots[slot].behind_node] or made
    last = max(where.made[slot] for slot in own)
    module = next((one for one in modules if inside(program.slots[made[0]].module, one)), None)
    node = calls.node(program.slots[made[0]].call)
    ops = calls.saved_reads(node) if node >= 0 else []
    if not ops:
        return _Node(run[0], last, None, module)
    # What an op of the node makes for a later one, such as a power of a saved tensor, is no saved tensor.
    passed: list[tuple[int, int]] = []
    for slot in own:
        if where.made[slot] < where.freed[slot] <= last:
            passed.append((program.slots[slot].call, rounded(program.slots[slot].bytes)))
    reads = []
    for op, sizes in ops:
        for size in sizes:
            earlier = next((one for one in passed if one[0] < op and one[1] == rounded(size)), None)
            if earlier is None:
                reads.append(size)
            else:
                passed.remove(earlier)
    return _Node(run[0], last, reads, module)


def _bring_back(rewrite: Rewrite, where: Places, node: _Node, kept: Sequence[int]) -> None:
    """Copies of the saved tensors, of the size that they have in the program, which may not be the recorded one."""
    assert node.reads is not None
    there = [slot for slot in kept if where.made[slot] < node.first <= where.freed[slot]]
    for size in node.reads:
        slots = rewrite.program.slots
        # Half of the recorded size under autocast.
        same = [slot for slot in there if rounded(slots[slot].bytes) in (rounded(size), rounded(size // 2))]
        if same:
            new = rewrite.copy(min(same, key=where.freed.__getitem__))
        else:
            parameter = any(one.bytes == size for one in rewrite.program.parameters())
            rewrite.slots.append(Slot(size, SlotKind.TEMPORARY, batch=0.0 if parameter else 1.0))
            new = len(rewrite.slots) - 1
        rewrite.put(node.first, [new + 1])
        rewrite.put(node.last + 1, [-new - 1])


def _read_outside(
    program: StepProgram, where: Places, slot: int, reader: int | None, ends: Mapping[str, int], nodes: Sequence[_Node]
) -> int | None:
    """The index before which the node of an op outside of the modules has read a tensor that it saved, too."""
    if reader is None or any(inside(program.slots[program.events[reader] - 1].module, one) for one in ends):
        return None
    outer = [node for node in nodes if node.last < where.freed[slot] and node.module is None]
    needing = [node for node in outer if rounded(program.slots[slot].bytes) in map(rounded, node.reads or ())]
    return needing[-1].last + 1 if needing else None


def _without_optimizer(program: StepProgram) -> StepProgram:
    where, rewrite = places(program), Rewrite(program)
    for slot, made in enumerate(where.made):
        if made >= program.optimizer_at and program.slots[slot].kind in (SlotKind.OPTIMIZER, SlotKind.TEMPORARY):
            rewrite.drop(made)
            if where.freed[slot] >= 0:
                rewrite.drop(where.freed[slot])
    states = [one for one in program.states if one.kind != HeldKind.OPTIMIZER_STATE]
    return rewrite.changed(states=states)
