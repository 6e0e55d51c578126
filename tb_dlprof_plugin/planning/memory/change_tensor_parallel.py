"""The step of one rank under tensor parallelism: pairs of linear layers, the first cut by columns, the second by rows.

As Megatron-LM (Shoeybi et al., 2019, arXiv 1909.08053): a rank has its part of both weights with their gradients and
states, and of everything that is computed between the two: attention by heads, an MLP by hidden units. The input of the
first and the output of the second are whole on every rank; the output is summed over ranks in the forward pass, the
gradient of the input in the backward pass, both in place. Embeddings, normalisations, the head and layers without a
partner stay whole.

Which layers make a pair follows from their order and shapes: one that leads back to the width from which those before
it, all of the same shape, came. Of square ones those that follow each other at once, as of queries, keys and values,
stand before the cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tb_dlprof_plugin.planning.memory.event_places import Places, places
from tb_dlprof_plugin.planning.memory.module_events import inside
from tb_dlprof_plugin.planning.memory.op_shapes import PRODUCTS, OpShapes
from tb_dlprof_plugin.planning.memory.parameter_shards import shard
from tb_dlprof_plugin.planning.memory.step_program import Held, Slot, SlotKind, StepProgram
from tb_dlprof_plugin.profile_view import ProfileView

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


class NoPairs(ValueError):
    """There are no two linear layers that could be cut together."""


def with_tensor_parallel(view: ProfileView, program: StepProgram, ranks: int) -> StepProgram:
    """The program of one rank.

    Args:
        view: of the recording, with shapes.
        program: the step of one GPU, with parameters whose sizes are known.
        ranks: GPUs of the group.

    Raises:
        NoPairs: nothing can be cut.
    """
    found = pairs(view, program)
    if not found:
        raise NoPairs(
            "no two linear layers were found that could be cut together; record_shapes=True and model= make them known."
        )
    where, shapes = places(program), OpShapes(view)
    cut: set[int] = set()
    for pair in found:
        cut |= _between(view, program, where, shapes, pair)
    slots = [
        replace(slot, bytes=shard(slot.bytes, ranks)) if number in cut or _is_cut_gradient(slot, found) else slot
        for number, slot in enumerate(program.slots)
    ]

    def parts(held: Sequence[Held]) -> list[Held]:
        return [
            replace(one, bytes=shard(one.bytes, ranks)) if _is_cut(one.module, one.bytes, found) else one
            for one in held
        ]

    return replace(program, slots=slots, held=parts(program.held), states=parts(program.states))


def exchanged(view: ProfileView, program: StepProgram) -> list[int]:
    """Bytes of each all-reduce of a step: of the output of each pair and of the gradient of its input."""
    found: list[int] = []
    for pair in pairs(view, program):
        output = program.slots[pair.row.slot].bytes
        found += [output, output * pair.columns[0].given // pair.row.made]
    return found


def pairs(view: ProfileView, program: StepProgram) -> list[Pair]:
    """The pairs of linear layers, in the order of the forward pass."""
    where, found = places(program), []
    open_layers: list[Linear] = []
    for layer in _linears(view, program, where):
        first = open_layers[0] if open_layers else None
        if first is not None and layer.made == first.given and not _is_beside(program, where, open_layers, layer):
            found.append(Pair(tuple(open_layers), layer))
            open_layers = []
        elif first is not None and _is_beside(program, where, open_layers, layer):
            open_layers.append(layer)
        else:
            open_layers = [layer]
    return found


def _is_beside(program: StepProgram, where: Places, before: Sequence[Linear], layer: Linear) -> bool:
    """Whether a layer reads the tensor that those before it read: of the same shape, and if that is square, next to
    them."""
    if (layer.given, layer.made) != (before[0].given, before[0].made):
        return False
    between = range(where.made[before[-1].slot] + 1, where.made[layer.slot])
    return layer.given != layer.made or not any(program.events[index] > 0 for index in between)


def _linears(view: ProfileView, program: StepProgram, where: Places) -> list[Linear]:
    shapes, found = OpShapes(view), []
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
            found.append(Linear(slot, one.module, given, made))
    return found


def _product(view: ProfileView, shapes: OpShapes, slot: Slot) -> tuple[int, int, int] | None:
    """Rows, inner width and columns of the matrix product that makes a slot; None for another op."""
    profile = view.profile
    if slot.call < 0 or profile.strings[int(profile.ops.name[profile.calls.op[slot.call]])] not in PRODUCTS:
        return None
    matrices = [shape for shape in shapes.of_op(int(profile.calls.op[slot.call])) if len(shape) == 2]
    if len(matrices) < 2 or matrices[-2][1] != matrices[-1][0]:
        return None
    return matrices[-2][0], matrices[-1][0], matrices[-1][1]


def _between(view: ProfileView, program: StepProgram, where: Places, shapes: OpShapes, pair: Pair) -> set[int]:
    """Slots of which a rank has its part: from the first column layer's result to what the row layer reads, and their
    gradients."""
    columns = {layer.module for layer in pair.columns}
    forward = range(where.made[pair.columns[0].slot], where.made[pair.row.slot])
    found = {slot for slot, made in enumerate(where.made) if made in forward}
    end = max((where.freed[slot] for slot in found if where.freed[slot] >= program.backward_at), default=-1)
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
            found.add(slot)
    return found


def _is_cut_gradient(slot: Slot, found: Sequence[Pair]) -> bool:
    return slot.kind == SlotKind.GRADIENT and _is_cut(slot.module, slot.bytes, found)


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
