"""The step with another batch size, with longer sequences or with larger images: allocations are scaled.

With another batch size each allocation that grows with the batch is scaled. With longer sequences or larger images each
grows with the positions that its tensor has: a *position* is a token of a sequence or a pixel of an image. Which
dimensions of a tensor count positions follows from the shapes of the recording: the length of sequences is the second
dimension of an embedding's indices; of images the products of the last two dimensions of what convolutions are given,
and patches are positions of what they make. A tensor with two such dimensions, as attention scores have, grows with the
square. What has the batch's dimension and none of positions, such as the classes, stays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tb_dlprof_plugin.model.plan_request import PlanError
from tb_dlprof_plugin.planning.memory.op_calls import PRODUCTS, Dimensions, OpCallShapes, flat
from tb_dlprof_plugin.planning.memory.step_program import Slot, StepProgram
from tb_dlprof_plugin.profile_view import ProfileView

Bound = Literal["likely", "low", "high"]
"""Of what is not known: its likely value, or the end that leads to less or to more memory."""


def with_batch(program: StepProgram, ratio: float, bound: Bound = "likely") -> StepProgram:
    """The program with ``ratio`` times the batch.

    Args:
        program: the recorded step.
        ratio: the new batch size over the recorded one.
        bound: which class allocations of unknown class get; see `batch_classes`.
    """
    if ratio == 1:
        return program
    sizes = sizes_with_batch(program, ratio, bound)
    return replace(program, slots=list(map(_with_bytes, program.slots, sizes)))


def sizes_with_batch(program: StepProgram, ratio: float, bound: Bound = "likely") -> list[int]:
    """Bytes of the slots of `with_batch`, in a quarter of its time: a search asks for each of many batch sizes."""
    return program.sizes if ratio == 1 else [_scaled(slot, ratio, bound) for slot in program.slots]


def _with_bytes(slot: Slot, size: int) -> Slot:
    """As `dataclasses.replace`, in a fifth of its time."""
    if size == slot.bytes:
        return slot
    return Slot(
        size, slot.kind, slot.call, slot.module, slot.batch, slot.batch_known, slot.reduction, slot.reads,
        slot.behind_node, slot.refusable,
    )  # fmt: skip


def _scaled(slot: Slot, ratio: float, bound: Bound) -> int:
    if slot.reduction is not None:
        return max(1, slot.reduction.bytes(ratio))
    share = slot.batch
    if not slot.batch_known and bound != "likely":
        share = 1.0 if (ratio > 1) == (bound == "high") else 0.0
    return max(1, round(slot.bytes * (1 + share * (ratio - 1))))


_CONVOLUTION, _EMBEDDING = "aten::conv2d", "aten::embedding"


@dataclass(frozen=True)
class InputSize:
    """The recorded input: ``length`` of sequences or ``side`` of images (the first of both sides), None where the model
    has none; ``positions`` are the numbers of positions that tensors have."""

    length: int | None
    side: int | None
    positions: frozenset[int]


def input_size(view: ProfileView) -> InputSize:
    """What the shapes of the recording say of the input."""
    batch = view.profile.facts.batch_size or 0
    length: int | None = None
    side: int | None = None
    positions: set[int] = set()
    profile = view.profile
    for op, text in enumerate(profile.ops.name.tolist()):
        name, shapes = profile.strings[text], flat(profile.shapes_of(op))
        if name == _EMBEDDING and len(shapes) >= 2 and len(shapes[1]) == 2 and shapes[1][0] == batch:
            length = length or shapes[1][1]
        for shape in shapes:
            if len(shape) == 4 and shape[0] == batch and name == _CONVOLUTION:
                side = max(side or 0, shape[2])
            if len(shape) == 4 and shape[0] == batch:
                positions |= {shape[2] * shape[3]}
    if side is None:
        positions = set()
    if length is not None:
        positions.add(length)
    return InputSize(length, side, frozenset(position for position in positions if position > 1))


def with_input(view: ProfileView, program: StepProgram, ratio: float) -> StepProgram:
    """The program with ``ratio`` times the positions per sample.

    Args:
        view: of the recording.
        program: its step.
        ratio: the new number of positions over the recorded one: for images that of pixels.

    Raises:
        PlanError: the recording shows neither sequences nor images.
    """
    size = input_size(view)
    if not size.positions:
        raise PlanError("no embedding and no convolution with the batch in its shapes was recorded.")
    shapes, batch = OpCallShapes(view), view.profile.facts.batch_size or 0
    return replace(
        program,
        slots=[
            replace(slot, bytes=max(1, round(slot.bytes * ratio ** _power(slot, shapes, batch, size))))
            for slot in program.slots
        ],
    )


def is_between_positions(name: str, shapes: list[Dimensions], batch: int, size: InputSize) -> bool:
    """Whether an op computes something for each pair of positions, as attention does: its work grows with the square.

    Args:
        name: of the op.
        shapes: of its inputs.
        batch: samples of the recorded batch.
        size: of the recorded input.
    """
    if "scaled_dot_product" in name or "_flash_attention" in name or "_efficient_attention" in name:
        return True
    if name in PRODUCTS and len(shapes) >= 2 and len(shapes[-1]) == 3 and len(shapes[-2]) == 3:
        return shapes[-2][1] in size.positions and shapes[-1][2] in size.positions
    return any((_positions(shape, batch, size) or 0) > 1 for shape in shapes if len(shape) > 2)


def _power(slot: Slot, shapes: OpCallShapes, batch: int, size: InputSize) -> int:
    """With which power of the positions an allocation grows."""
    if not slot.batch or slot.reduction is not None:
        return 0
    like = shapes.of_size(slot.call, slot.bytes) or shapes.around(slot.call)
    powers = [power for shape in like if (power := _positions(shape, batch, size)) is not None]
    # A result that no shape explains grows as what its op was given.
    return max(powers, default=1)


def _positions(shape: Dimensions, batch: int, size: InputSize) -> int | None:
    """How many of a tensor's dimensions count positions; None for a tensor without the batch."""
    if not batch or not any(dimension % batch == 0 for dimension in shape if dimension):
        return None
    if size.side is not None and len(shape) == 4 and shape[0] == batch:
        pairs = (shape[2] * shape[3], shape[1] * shape[2])
        if any(pair in size.positions for pair in pairs):
            return 1
    rest = list(shape)
    if batch in rest:
        # Sequences may be as long as the batch is large.
        rest.remove(batch)
    count = sum(dimension in size.positions for dimension in rest)
    merged = any(dimension == batch * position for dimension in shape[:1] for position in size.positions)
    return count + merged
