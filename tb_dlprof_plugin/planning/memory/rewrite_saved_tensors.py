"""The step that does not keep on the GPU what its backward pass needs: activation checkpointing, and memory on the CPU.

The forward pass itself has a tensor for a while, were nothing to keep it for the backward pass: Python holds what a
module is given until the module returns, and a caller what its next op reads, too.

Activation checkpointing of modules: what each keeps for its backward pass goes as soon as its forward pass has used it,
and is made again before its backward pass. As `torch.utils.checkpoint` without reentrance does it: the module's input
and output stay, an input that no op saved as well, and what it makes and frees within its forward pass is made and
freed again, up to the last tensor that is kept (its default `early_stop`). An output that the module keeps for itself,
as a ReLU does, is there until its backward pass begins, and is then made again.

Optimizer's states on the CPU: the step of the optimizer runs on the CPU, and nothing of it is on the GPU.

Activations on the CPU: as `torch.autograd.graph.save_on_cpu` around a module. Every tensor that an op saves is copied
to the CPU at once, parameters too, and is on the GPU only as long as the forward pass has it: the module that is given
it holds it until it returns. In the backward pass each node brings back a copy of each tensor that it saved, which goes
when the node's function is over; a tensor that two nodes saved comes back twice. What an op outside of the modules
saves, too, stays on the GPU until that op's node has run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from tb_dlprof_plugin.model.plan_request import OFFLOADED_OPTIMIZER
from tb_dlprof_plugin.planning.memory.allocator import rounded
from tb_dlprof_plugin.planning.memory.op_calls import ITEM_SIZES, OpCalls
from tb_dlprof_plugin.planning.memory.step_program import (
    EventEdits,
    HeldKind,
    ModuleEvents,
    Places,
    Slot,
    SlotKind,
    StepProgram,
    inside,
    module_events,
    places,
)


class ForwardHolders:
    """The readers of the forward pass's allocations.

    Args:
        program: the step.
        where: the places of its slots.
        calls: those of the recording; without them every tensor is held until its module returns.
    """

    def __init__(self, program: StepProgram, where: Places, calls: OpCalls) -> None:
        self._program, self._where = program, where
        made = [index for index, event in enumerate(program.events[: program.backward_at]) if event > 0]
        self._around = {index: calls.modules_and_op(program.slots[program.events[index] - 1].call) for index in made}
        """The modules and the op around each allocation of the forward pass, by its index."""
        self._readers = defaultdict[int, list[int]](list)
        for index in made:
            for count in program.slots[program.events[index] - 1].reads:
                self._readers[count].append(index)

    def first_reader(self, slot: int) -> int | None:
        """The index of the first allocation by another op or module that reads a tensor of this size."""
        made = self._where.made[slot]
        own = self._around[made]
        first: list[int] = []
        for readers in self._readers_of(slot):
            behind = readers[bisect_right(readers, made) :]
            first += islice((index for index in behind if self._around[index] != own), 1)
        return min(first, default=None)

    def held_until(self, slot: int, ends: Mapping[str, int]) -> int:
        """The index before which nothing in the forward pass has a tensor any more.

        Args:
            slot: the tensor.
            ends: the last event of the forward pass of each module that is looked at: what no op reads is held until
                the first of them that ends behind it.
        """
        reader = self.first_reader(slot)
        if reader is None:
            behind = (end + 1 for end in ends.values() if end > self._where.made[slot])
            return min(behind, default=self._program.backward_at)
        own, reading = self._around[self._where.made[slot]], self._around[reader]
        depth = next((i for i, (a, b) in enumerate(zip(own, reading, strict=False)) if a != b), len(own))
        holder, last, readers = reading[depth : depth + 1], reader, self._readers_of(slot)
        for index in range(reader, self._program.backward_at):
            if index not in self._around:
                continue
            around = self._around[index]
            # The caller's own next op may read it, too, as a residual connection does.
            too = len(around) == depth + 1 and around[:depth] == own[:depth] and any(index in one for one in readers)
            if around[depth : depth + 1] != holder and not too:
                break
            last = index
        return last + 1

    def _readers_of(self, slot: int) -> list[list[int]]:
        size = self._program.slots[slot].bytes
        return [self._readers.get(size // item, []) for item in ITEM_SIZES if size % item == 0]


def with_checkpoints(program: StepProgram, modules: Sequence[str], calls: OpCalls) -> StepProgram:
    """The program with modules that are computed again.

    Args:
        program: the step.
        modules: paths; none may lie within another.
        calls: those of the recording.

    Raises:
        UnknownModule: a module made nothing in the forward pass.
    """
    where, edits = places(program), EventEdits(program)
    holders = ForwardHolders(program, where, calls)
    for module in modules:
        own = module_events(program, where, module)
        saved = {slot for slot in own.slots if _is_saved(own, where.made[slot], where.freed[slot])}
        again = {slot: edits.copy(slot) for slot in saved}
        output = saved_output(program, where, own, saved)
        for slot in sorted(saved - {output}):
            edits.put(holders.held_until(slot, {module: own.forward_last}), [-slot - 1])
        if output is not None:
            edits.put(own.backward_first, [-output - 1])
        given = _given(program, where, own)
        if given is not None:
            edits.drop(where.freed[given])
            edits.put(own.backward_last + 1, [-given - 1])
        edits.put(own.backward_first, _recomputed(program, where, own, again, edits))
        for slot in saved:
            edits.drop(where.freed[slot])
            edits.put(_unpacked(program, where.freed[slot], own.backward_first), [-again[slot] - 1])
    return edits.changed()


def _recomputed(
    program: StepProgram, where: Places, own: ModuleEvents, again: dict[int, int], edits: EventEdits
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
                new = again[slot] = edits.copy(slot)
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
    modules = [name for name in what if name != OFFLOADED_OPTIMIZER]
    changed = _without_activations(program, modules, calls) if modules else program
    return _without_optimizer(changed) if OFFLOADED_OPTIMIZER in what else changed


def _without_activations(program: StepProgram, modules: Sequence[str], calls: OpCalls) -> StepProgram:
    where, edits = places(program), EventEdits(program)
    ends = {module: module_events(program, where, module).forward_last for module in modules}
    nodes = _nodes(program, where, modules, calls)
    holders = ForwardHolders(program, where, calls)
    kept = [slot for slot, made in enumerate(where.made) if 0 <= made < program.backward_at <= where.freed[slot]]
    for node in nodes:
        if node.module is not None and node.reads is not None:
            _bring_back(edits, where, node, kept)
    for slot in kept:
        last = next((node for node in reversed(nodes) if node.last < where.freed[slot]), None)
        if last is None or not last.can_save(where.made[slot], where.freed[slot], ends, program.optimizer_at):
            continue
        if last.reads is None:
            again = edits.copy(slot)
            edits.put(last.first, [again + 1])
            edits.replace(where.freed[slot], -again - 1)
        else:
            edits.drop(where.freed[slot])
        outside = _read_outside(program, where, slot, holders.first_reader(slot), ends, nodes)
        edits.put(holders.held_until(slot, ends) if outside is None else outside, [-slot - 1])
    return edits.changed()


def _nodes(program: StepProgram, where: Places, modules: Sequence[str], calls: OpCalls) -> list[_Node]:
    """The nodes that allocate, in their order."""
    nodes: list[_Node] = []
    run: list[int] = []

    def close() -> None:
        if run:
            nodes.append(_node(program, where, run, modules, calls))
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
    return nodes


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


def _bring_back(edits: EventEdits, where: Places, node: _Node, kept: Sequence[int]) -> None:
    """Copies of the saved tensors, of the size that they have in the program, which may not be the recorded one."""
    assert node.reads is not None
    there = [slot for slot in kept if where.made[slot] < node.first <= where.freed[slot]]
    for size in node.reads:
        slots = edits.program.slots
        # Half of the recorded size under autocast.
        same = [slot for slot in there if rounded(slots[slot].bytes) in (rounded(size), rounded(size // 2))]
        if same:
            new = edits.copy(min(same, key=where.freed.__getitem__))
        else:
            parameter = any(one.bytes == size for one in edits.program.parameters())
            new = edits.add(Slot(size, SlotKind.TEMPORARY, batch=0.0 if parameter else 1.0))
        edits.put(node.first, [new + 1])
        edits.put(node.last + 1, [-new - 1])


def _read_outside(
    program: StepProgram, where: Places, slot: int, reader: int | None, ends: Mapping[str, int], nodes: Sequence[_Node]
) -> int | None:
    """The index before which the node of an op outside of the modules has read a tensor that it saved, too."""
    if reader is None or any(inside(program.slots[program.events[reader] - 1].module, module) for module in ends):
        return None
    outer = [node for node in nodes if node.last < where.freed[slot] and node.module is None]
    needing = [node for node in outer if rounded(program.slots[slot].bytes) in map(rounded, node.reads or ())]
    return needing[-1].last + 1 if needing else None


def _without_optimizer(program: StepProgram) -> StepProgram:
    edits = EventEdits(program)
    edits.drop_optimizer(places(program))
    states = [state for state in program.states if state.kind != HeldKind.OPTIMIZER_STATE]
    return edits.changed(states=states)
