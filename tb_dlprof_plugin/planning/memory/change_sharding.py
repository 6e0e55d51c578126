"""The step of one rank of several: DDP, the three stages of ZeRO, and FSDP2.

- ``ddp``: gradients are copied to buckets, which stay (`gradient_as_bucket_view=False`, torch's default).
- ``zero1``: DDP, and each rank has its part of the optimizer's states (`ZeroRedundancyOptimizer`).
- ``zero2``: gradients go to a bucket in the backward pass, and each rank keeps its part of the reduced ones (DeepSpeed
  with its default `reduce_bucket_size` of 5e8 elements and `contiguous_gradients`).
- ``zero3`` and ``fsdp2``: each rank keeps its part of parameters, gradients and states. The parameters of a unit are
  gathered to a buffer, copied out of it before its forward and its backward pass and freed behind each
  (`reshard_after_forward=True`); its backward pass has the next unit's buffer there already; its gradients are copied
  to the input of a reduce-scatter, which is freed when the next unit's is there. What lies in no unit is gathered for
  the whole step, as FSDP2 does it with the root.

Every rank runs the recorded batch. Buffers of NCCL lie outside of the allocator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tb_dlprof_plugin.model.plan_request import Sharding
from tb_dlprof_plugin.planning.memory.event_places import Places, Rewrite, places
from tb_dlprof_plugin.planning.memory.module_events import ModuleEvents, UnknownModule, inside, module_events
from tb_dlprof_plugin.planning.memory.parameter_shards import buckets, shard, sharded
from tb_dlprof_plugin.planning.memory.step_program import Held, HeldKind, Slot, SlotKind, StepProgram

_ZERO2_BUCKET = 500_000_000
"""Elements; `reduce_bucket_size` of DeepSpeed's `zero/config.py`."""


def with_sharding(program: StepProgram, sharding: Sharding, ranks: int, units: Sequence[str]) -> StepProgram:
    """The program of the rank with the largest part.

    Args:
        program: the step of one GPU, with parameters whose sizes are known.
        sharding: one of `Sharding`.
        ranks: number of GPUs.
        units: paths of the modules that are gathered one by one; none may lie within another.
    """
    if sharding in ("ddp", "zero1"):
        return _replicated(program, ranks if sharding == "zero1" else 1)
    if sharding == "zero2":
        return _partitioned_gradients(program, ranks)
    return _fully_sharded(program, ranks, units)


def _replicated(program: StepProgram, state_ranks: int) -> StepProgram:
    made = [Held(size, HeldKind.COMMUNICATION) for size in buckets([one.bytes for one in program.parameters()])]
    return replace(program, held=[*program.held, *made], states=_sharded_states(program, state_ranks))


def _sharded_states(program: StepProgram, ranks: int) -> list[Held]:
    states = [one for one in program.states if one.kind == HeldKind.OPTIMIZER_STATE]
    return [*(one for one in program.states if one.kind != HeldKind.OPTIMIZER_STATE), *sharded(states, ranks)]


def _partitioned_gradients(program: StepProgram, ranks: int) -> StepProgram:
    where, rewrite = places(program), Rewrite(program)
    own = _gradients(program)
    total = sum(program.slots[slot].bytes for slot in own)
    if own:
        bucket = _new(rewrite, min(4 * _ZERO2_BUCKET, total), SlotKind.BACKWARD)
        rewrite.put(program.backward_at, [bucket + 1])
        rewrite.put(program.optimizer_at, [-bucket - 1])
    for slot in own:
        # The bucket has a copy as soon as it is made.
        _shard_gradients(rewrite, where, [slot], where.made[slot] + 1, ranks)
    return rewrite.changed(states=_sharded_states(program, ranks))


def _fully_sharded(program: StepProgram, ranks: int, units: Sequence[str]) -> StepProgram:
    where, rewrite = places(program), Rewrite(program)
    found: list[tuple[ModuleEvents, int, list[int]]] = []
    taken: set[int] = set()
    named: list[str] = []
    for unit in units:
        size = sum(one.bytes for one in program.parameters() if inside(one.module, unit))
        try:
            own = module_events(program, where, unit)
        except UnknownModule:
            continue
        gradients = [slot for slot in _gradients(program) if inside(program.slots[slot].module, unit)]
        taken.update(gradients)
        named.append(unit)
        if size:
            found.append((own, size, gradients))
    found.sort(key=lambda unit: unit[0].forward_first)
    _gather_forward(rewrite, found)
    _gather_backward(rewrite, where, found, ranks)
    _root(program, rewrite, where, named, taken, ranks)
    held = [one for one in program.held if one.kind != HeldKind.PARAMETER]
    return rewrite.changed(
        held=[*sharded(list(program.parameters()), ranks), *held], states=_sharded_states(program, ranks)
    )


def _gather_forward(rewrite: Rewrite, units: Sequence[tuple[ModuleEvents, int, list[int]]]) -> None:
    for own, size, _ in units:
        buffer, full = _new(rewrite, size, SlotKind.TEMPORARY), _new(rewrite, size, SlotKind.TEMPORARY)
        rewrite.put(own.forward_first, [buffer + 1, full + 1, -buffer - 1])
        rewrite.put(own.forward_last + 1, [-full - 1])


def _gather_backward(
    rewrite: Rewrite, where: Places, units: Sequence[tuple[ModuleEvents, int, list[int]]], ranks: int
) -> None:
    behind = sorted((unit for unit in units if unit[0].backward_first <= unit[0].backward_last), key=_backward_first)
    gathered: int | None = None
    reduced: int | None = None
    for at, (own, size, gradients) in enumerate(behind):
        if gathered is None:
            gathered = _new(rewrite, size, SlotKind.TEMPORARY)
            rewrite.put(own.backward_first, [gathered + 1])
        full = _new(rewrite, size, SlotKind.TEMPORARY)
        rewrite.put(own.backward_first, [full + 1, -gathered - 1])
        gathered = None
        if at + 1 < len(behind):
            gathered = _new(rewrite, behind[at + 1][1], SlotKind.TEMPORARY)
            rewrite.put(own.backward_first, [gathered + 1])
        # The next unit's backward pass begins when this one's is over, whatever of this one is freed later.
        end = own.backward_last + 1
        if at + 1 < len(behind):
            end = min(end, behind[at + 1][0].backward_first)
        end = max([end, *(where.made[slot] + 1 for slot in gradients)])
        if reduced is not None:
            rewrite.put(end, [-reduced - 1])
        reduced = _new(rewrite, size, SlotKind.TEMPORARY)
        rewrite.put(end, [-full - 1, reduced + 1])
        _shard_gradients(rewrite, where, gradients, end, ranks)
    if reduced is not None:
        rewrite.put(rewrite.program.optimizer_at, [-reduced - 1])


def _root(
    program: StepProgram, rewrite: Rewrite, where: Places, units: Sequence[str], taken: set[int], ranks: int
) -> None:
    """What lies in no unit: gathered from the first forward op to the end of the backward pass."""
    size = sum(one.bytes for one in program.parameters() if not any(inside(one.module, unit) for unit in units))
    if not size:
        return
    buffer, full = _new(rewrite, size, SlotKind.TEMPORARY), _new(rewrite, size, SlotKind.TEMPORARY)
    first = min((at for at in where.made if at >= 0), default=0)
    rewrite.put(first, [buffer + 1, full + 1, -buffer - 1])
    reduced = _new(rewrite, size, SlotKind.TEMPORARY)
    rewrite.put(program.optimizer_at, [-full - 1, reduced + 1])
    own = [slot for slot in _gradients(program) if slot not in taken]
    _shard_gradients(rewrite, where, own, program.optimizer_at, ranks)
    rewrite.put(program.optimizer_at, [-reduced - 1])


def _shard_gradients(rewrite: Rewrite, where: Places, gradients: Sequence[int], at: int, ranks: int) -> None:
    """Free gradients before an event; a rank's part of each is there from then on to where the gradient was freed."""
    for slot in gradients:
        part = _new(rewrite, shard(rewrite.slots[slot].bytes, ranks), SlotKind.GRADIENT)
        freed = where.freed[slot]
        if freed >= 0:
            rewrite.drop(freed)
            rewrite.put(freed, [-part - 1])
        rewrite.put(at, [part + 1, -slot - 1])


def _gradients(program: StepProgram) -> list[int]:
    return [slot for slot, one in enumerate(program.slots) if one.kind == SlotKind.GRADIENT]


def _backward_first(unit: tuple[ModuleEvents, int, list[int]]) -> int:
    return unit[0].backward_first


def _new(rewrite: Rewrite, size: int, kind: SlotKind) -> int:
    rewrite.slots.append(Slot(size, kind))
    return len(rewrite.slots) - 1
