"""The step of one rank of several: DDP, the stages of ZeRO, FSDP2, and tensor parallelism.

- ``ddp``: gradients are copied to buckets, which stay (`gradient_as_bucket_view=False`, torch's default). The second
  step has them twice: see `while_rebuilding`.
- ``zero1``: DDP, and each rank has its part of the optimizer's states: whole parameters, the largest first, each to the
  rank that has least (`ZeroRedundancyOptimizer`).
- ``zero2``: gradients go to a bucket in the backward pass, and each rank keeps its part of the reduced ones (DeepSpeed
  with its default `reduce_bucket_size` of 5e8 elements and `contiguous_gradients`).
- ``zero3`` and ``fsdp2``: each rank keeps its part of parameters, gradients and states. The parameters of a unit are
  gathered to a buffer, copied out of it before its forward and its backward pass and freed behind each
  (`reshard_after_forward=True`); its backward pass has the next unit's buffer there already; its gradients are copied
  to the input of a reduce-scatter, which is freed when the next unit's is there. What lies in no unit is gathered for
  the whole step, as FSDP2 does it with the root.

Every rank runs the recorded batch. Buffers of NCCL lie outside of the allocator.

Tensor parallelism: pairs of linear layers, the first cut by columns, the second by rows, as Megatron-LM (Shoeybi et
al., 2019, arXiv 1909.08053): a rank has its part of both weights with their gradients and states, and of everything
that is computed between the two: attention by heads, an MLP by hidden units. The input of the first and the output of
the second are whole on every rank; the output is summed over ranks in the forward pass, the gradient of the input in
the backward pass, both in place. Embeddings, normalisations, the head and layers without a partner stay whole.

Which layers make a pair follows from their order and shapes: one that leads back to the width from which those before
it, all of the same shape, came. Of square ones those that follow each other at once, as of queries, keys and values,
stand before the cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tb_dlprof_plugin.model.plan_request import PlanError, Sharding
from tb_dlprof_plugin.planning.memory.allocator import MIB
from tb_dlprof_plugin.planning.memory.op_calls import PRODUCTS, OpCallShapes
from tb_dlprof_plugin.planning.memory.step_program import (
    EventEdits,
    Held,
    HeldKind,
    ModuleEvents,
    Places,
    Slot,
    SlotKind,
    StepProgram,
    UnknownModule,
    inside,
    module_events,
    places,
)
from tb_dlprof_plugin.profile_view import ProfileView

REPLICATED: tuple[Sharding, ...] = ("ddp", "zero1")
"""Each rank has whole parameters, and gradients in DDP's buckets."""
FIRST_BUCKET, BUCKET = MIB, 25 * MIB
"""`dist._DEFAULT_FIRST_BUCKET_BYTES` and DistributedDataParallel's default `bucket_cap_mb`."""


def buckets(sizes: Sequence[int]) -> list[int]:
    """Bytes of DDP's buckets, for parameters in the order of the module; a bucket is closed by what fills it up.

    As `compute_bucket_assignment_by_size` in torch's `reducer.cpp`, over the parameters from the last to the first.
    """
    closed: list[int] = []
    open_bytes, most = 0, FIRST_BUCKET
    for size in reversed(sizes):
        open_bytes += size
        if open_bytes >= most:
            closed.append(open_bytes)
            open_bytes, most = 0, BUCKET
    return [*closed, open_bytes] if open_bytes else closed


def shard(size: int, ranks: int) -> int:
    """Bytes of one rank's part of a tensor, the padded one."""
    return -(-size // ranks)


def sharded(held: Sequence[Held], ranks: int) -> list[Held]:
    """Storages of which each rank keeps its part."""
    return [Held(shard(storage.bytes, ranks), storage.kind, storage.module) for storage in held]


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
    if sharding in REPLICATED:
        return _replicated(program, largest_part(program, ranks) if sharding == "zero1" else 1.0)
    if sharding == "zero2":
        return _partitioned_gradients(program, ranks)
    return _fully_sharded(program, ranks, units)


def largest_part(program: StepProgram, ranks: int) -> float:
    """Share of the parameters' bytes on the rank that has most of them under `ZeroRedundancyOptimizer`."""
    parts = [0] * ranks
    for size in sorted((parameter.bytes for parameter in program.parameters()), reverse=True):
        parts[parts.index(min(parts))] += size
    return max(parts) / max(sum(parts), 1)


def while_rebuilding(program: StepProgram) -> StepProgram:
    """The second step under DDP: torch orders the buckets again (`Reducer::rebuild_buckets`). The old ones stay until
    NCCL's watchdog releases them, which looks every 0.1 s (`kWatchdogThreadSleepMillis` of ProcessGroupNCCL)."""
    return replace(program, held=[*program.held, *(one for one in program.held if one.kind == HeldKind.COMMUNICATION)])


def _replicated(program: StepProgram, state_share: float) -> StepProgram:
    sizes = [parameter.bytes for parameter in program.parameters()]
    made = [Held(size, HeldKind.COMMUNICATION) for size in buckets(sizes)]
    return replace(program, held=[*program.held, *made], states=_states(program, state_share))


def _states(program: StepProgram, share: float) -> list[Held]:
    """The optimizer's states, of each tensor this share."""
    return [
        replace(state, bytes=math.ceil(state.bytes * share)) if state.kind == HeldKind.OPTIMIZER_STATE else state
        for state in program.states
    ]


def _partitioned_gradients(program: StepProgram, ranks: int) -> StepProgram:
    where, edits = places(program), EventEdits(program)
    own = _gradients(program)
    total = sum(program.slots[slot].bytes for slot in own)
    if own:
        bucket = edits.add(Slot(min(4 * _ZERO2_BUCKET, total), SlotKind.BACKWARD))
        edits.put(program.backward_at, [bucket + 1])
        edits.put(program.optimizer_at, [-bucket - 1])
    for slot in own:
        # The bucket has a copy as soon as it is made.
        _shard_gradients(edits, where, [slot], where.made[slot] + 1, ranks)
    return edits.changed(states=_states(program, 1 / ranks))


def _fully_sharded(program: StepProgram, ranks: int, units: Sequence[str]) -> StepProgram:
    where, edits = places(program), EventEdits(program)
    gathered: list[tuple[ModuleEvents, int, list[int]]] = []
    taken: set[int] = set()
    named: list[str] = []
    for unit in units:
        size = sum(parameter.bytes for parameter in program.parameters() if inside(parameter.module, unit))
        try:
            own = module_events(program, where, unit)
        except UnknownModule:
            continue
        gradients = [slot for slot in _gradients(program) if inside(program.slots[slot].module, unit)]
        taken.update(gradients)
        named.append(unit)
        if size:
            gathered.append((own, size, gradients))
    gathered.sort(key=lambda unit: unit[0].forward_first)
    _gather_forward(edits, gathered)
    _gather_backward(edits, where, gathered, ranks)
    _root(program, edits, where, named, taken, ranks)
    held = [storage for storage in program.held if storage.kind != HeldKind.PARAMETER]
    return edits.changed(held=[*sharded(list(program.parameters()), ranks), *held], states=_states(program, 1 / ranks))


def _gather_forward(edits: EventEdits, units: Sequence[tuple[ModuleEvents, int, list[int]]]) -> None:
    for own, size, _ in units:
        buffer, full = edits.add(Slot(size, SlotKind.TEMPORARY)), edits.add(Slot(size, SlotKind.TEMPORARY))
        edits.put(own.forward_first, [buffer + 1, full + 1, -buffer - 1])
        edits.put(own.forward_last + 1, [-full - 1])


def _gather_backward(
    edits: EventEdits, where: Places, units: Sequence[tuple[ModuleEvents, int, list[int]]], ranks: int
) -> None:
    with_backward = (unit for unit in units if unit[0].backward_first <= unit[0].backward_last)
    behind = sorted(with_backward, key=lambda unit: unit[0].backward_first)
    gathered: int | None = None
    reduced: int | None = None
    for at, (own, size, gradients) in enumerate(behind):
        if gathered is None:
            gathered = edits.add(Slot(size, SlotKind.TEMPORARY))
            edits.put(own.backward_first, [gathered + 1])
        full = edits.add(Slot(size, SlotKind.TEMPORARY))
        edits.put(own.backward_first, [full + 1, -gathered - 1])
        gathered = None
        if at + 1 < len(behind):
            gathered = edits.add(Slot(behind[at + 1][1], SlotKind.TEMPORARY))
            edits.put(own.backward_first, [gathered + 1])
        # The next unit's backward pass begins when this one's is over, whatever of this one is freed later.
        end = own.backward_last + 1
        if at + 1 < len(behind):
            end = min(end, behind[at + 1][0].backward_first)
        end = max([end, *(where.made[slot] + 1 for slot in gradients)])
        if reduced is not None:
            edits.put(end, [-reduced - 1])
        reduced = edits.add(Slot(size, SlotKind.TEMPORARY))
        edits.put(end, [-full - 1, reduced + 1])
        _shard_gradients(edits, where, gradients, end, ranks)
    if reduced is not None:
        edits.put(edits.program.optimizer_at, [-reduced - 1])


def _root(
    program: StepProgram, edits: EventEdits, where: Places, units: Sequence[str], taken: set[int], ranks: int
) -> None:
    """What lies in no unit: gathered from the first forward op to the end of the backward pass."""
    outside = (each for each in program.parameters() if not any(inside(each.module, unit) for unit in units))
    size = sum(parameter.bytes for parameter in outside)
    if not size:
        return
    buffer, full = edits.add(Slot(size, SlotKind.TEMPORARY)), edits.add(Slot(size, SlotKind.TEMPORARY))
    first = min((at for at in where.made if at >= 0), default=0)
    edits.put(first, [buffer + 1, full + 1, -buffer - 1])
    reduced = edits.add(Slot(size, SlotKind.TEMPORARY))
    edits.put(program.optimizer_at, [-full - 1, reduced + 1])
    own = [slot for slot in _gradients(program) if slot not in taken]
    _shard_gradients(edits, where, own, program.optimizer_at, ranks)
    edits.put(program.optimizer_at, [-reduced - 1])


def _shard_gradients(edits: EventEdits, where: Places, gradients: Sequence[int], at: int, ranks: int) -> None:
    """Free gradients before an event; a rank's part of each is there from then on to where the gradient was freed."""
    for slot in gradients:
        part = edits.add(Slot(shard(edits.slots[slot].bytes, ranks), SlotKind.GRADIENT))
        freed = where.freed[slot]
        if freed >= 0:
            edits.drop(freed)
            edits.put(freed, [-part - 1])
        edits.put(at, [part + 1, -slot - 1])


def _gradients(program: StepProgram) -> list[int]:
    return [slot for slot, allocation in enumerate(program.slots) if allocation.kind == SlotKind.GRADIENT]


_ITEMS = (4, 2)


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear layer: the slot of its result, its module, and the widths of input and output."""

    slot: int
    module: str
    given: int
    made: int


@dataclass(frozen=True)
class Pair:
    """Layers cut by columns, which read one tensor, and the layer cut by rows that reads what follows from them."""

    columns: tuple[Linear, ...]
    row: Linear


def with_tensor_parallel(view: ProfileView, program: StepProgram, ranks: int) -> StepProgram:
    """The program of one rank.

    Args:
        view: of the recording, with shapes.
        program: the step of one GPU, with parameters whose sizes are known.
        ranks: GPUs of the group.

    Raises:
        PlanError: nothing can be cut.
    """
    cut_pairs = pairs(view, program)
    if not cut_pairs:
        raise PlanError(
            "no two linear layers were found that could be cut together; record_shapes=True and model= make them known."
        )
    where, shapes = places(program), OpCallShapes(view)
    cut: set[int] = set()
    for pair in cut_pairs:
        cut |= _between(view, program, where, shapes, pair)
    for number, slot in enumerate(program.slots):
        if slot.kind == SlotKind.GRADIENT and _is_cut(slot.module, slot.bytes, cut_pairs):
            cut.add(number)
    slots = [
        replace(slot, bytes=shard(slot.bytes, ranks)) if number in cut else slot
        for number, slot in enumerate(program.slots)
    ]

    def parts(held: Sequence[Held]) -> list[Held]:
        return [
            replace(storage, bytes=shard(storage.bytes, ranks))
            if _is_cut(storage.module, storage.bytes, cut_pairs)
            else storage
            for storage in held
        ]

    return replace(program, slots=slots, held=parts(program.held), states=parts(program.states))


def exchanged(view: ProfileView, program: StepProgram) -> list[int]:
    """Bytes of each all-reduce of a step: of the output of each pair and of the gradient of its input."""
    sums: list[int] = []
    for pair in pairs(view, program):
        output = program.slots[pair.row.slot].bytes
        sums += [output, output * pair.columns[0].given // pair.row.made]
    return sums


def pairs(view: ProfileView, program: StepProgram) -> list[Pair]:
    """The pairs of linear layers, in the order of the forward pass."""
    where, paired = places(program), []
    open_layers: list[Linear] = []
    for layer in _linears(view, program, where):
        first = open_layers[0] if open_layers else None
        if first is not None and layer.made == first.given and not _is_beside(program, where, open_layers, layer):
            paired.append(Pair(tuple(open_layers), layer))
            open_layers = []
        elif first is not None and _is_beside(program, where, open_layers, layer):
            open_layers.append(layer)
        else:
            open_layers = [layer]
    return paired


def _is_beside(program: StepProgram, where: Places, before: Sequence[Linear], layer: Linear) -> bool:
    """Whether a layer reads the tensor that those before it read: of the same shape, and if that is square, next to
    them."""
    if (layer.given, layer.made) != (before[0].given, before[0].made):
        return False
    between = range(where.made[before[-1].slot] + 1, where.made[layer.slot])
    return layer.given != layer.made or not any(program.events[index] > 0 for index in between)


def _linears(view: ProfileView, program: StepProgram, where: Places) -> list[Linear]:
    shapes, layers = OpCallShapes(view), []
    sizes: dict[int, list[str]] = {}
    for parameter in program.parameters():
        sizes.setdefault(parameter.bytes, []).append(parameter.module)
    for slot in sorted(range(len(program.slots)), key=where.made.__getitem__):
        one = program.slots[slot]
        if not 0 <= where.made[slot] < program.backward_at or one.kind == SlotKind.TEMPORARY:
            continue
        product = _product(view, shapes, one)
        if product is None:
            continue
        _, given, made = product
        weights = [path for item in _ITEMS for path in sizes.get(given * made * item, ())]
        if any(inside(path, one.module) for path in weights):
            layers.append(Linear(slot, one.module, given, made))
    return layers


def _product(view: ProfileView, shapes: OpCallShapes, slot: Slot) -> tuple[int, int, int] | None:
    """Rows, inner width and columns of the matrix product that makes a slot; None for another op."""
    profile = view.profile
    if profile.call_name(slot.call) not in PRODUCTS:
        return None
    matrices = [shape for shape in shapes.of_op(int(profile.calls.op[slot.call])) if len(shape) == 2]
    if len(matrices) < 2 or matrices[-2][1] != matrices[-1][0]:
        return None
    return matrices[-2][0], matrices[-1][0], matrices[-1][1]


def _between(view: ProfileView, program: StepProgram, where: Places, shapes: OpCallShapes, pair: Pair) -> set[int]:
    """Slots of which a rank has its part: from the first column layer's result to what the row layer reads, and their
    gradients."""
    columns = {layer.module for layer in pair.columns}
    forward = range(where.made[pair.columns[0].slot], where.made[pair.row.slot])
    between = {slot for slot, made in enumerate(where.made) if made in forward}
    end = max((where.freed[slot] for slot in between if where.freed[slot] >= program.backward_at), default=-1)
    first = min(
        (
            made
            for slot, made in enumerate(where.made)
            if made >= program.backward_at
            and program.slots[slot].module == pair.row.module
            and (_product(view, shapes, program.slots[slot]) or ())[1:] == (pair.row.made, pair.row.given)
        ),
        default=len(program.events),
    )
    for slot, made in enumerate(where.made):
        one = program.slots[slot]
        if not first <= made <= end or one.kind == SlotKind.GRADIENT:
            continue
        product = _product(view, shapes, one)
        of_input = product is not None and product[1:] == (pair.columns[0].made, pair.columns[0].given)
        if not (one.module in columns and (of_input or product is None)):
            between.add(slot)
    return between


def _is_cut(module: str, size: int, found: Sequence[Pair]) -> bool:
    """Whether a parameter of a module, its gradient or its state is cut: both weights, and the bias of columns."""
    for pair in found:
        for layer in (*pair.columns, pair.row):
            if not inside(module, layer.module):
                continue
            of_layer = {layer.given * layer.made * item for item in _ITEMS}
            if layer is not pair.row:
                of_layer |= {layer.made * item for item in _ITEMS}
            if size in of_layer:
                return True
    return False
