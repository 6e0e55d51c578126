"""One step of a training as a list of allocations and frees, with what was there before it: what every what-if rewrites
and the allocator replays.

A *slot* is one allocation of the step. The events are slot + 1 for an allocation and -(slot + 1) for a free; a free
that comes before its slot's allocation is that of the step before, such as `zero_grad` makes of gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from tb_dlprof_plugin.planning.memory.reductions import Reduction


class SlotKind(IntEnum):
    """What an allocation of a step is."""

    ACTIVATION = 0
    """Made in the forward pass and still there when its op is over."""
    TEMPORARY = 1
    """Gone with the op that made it."""
    GRADIENT = 2
    """Of a parameter: made in the backward pass, held until the next step or the end of this one."""
    BACKWARD = 3
    """Anything else that the backward pass makes: gradients of activations."""
    OPTIMIZER = 4
    INPUT = 5
    """Made outside of model and optimizer, such as the batch."""


class HeldKind(IntEnum):
    """What holds memory between steps."""

    PARAMETER = 0
    BUFFER = 1
    OPTIMIZER_STATE = 2
    GRADIENT = 3
    WORKSPACE = 4
    """Of a library, such as cuBLAS: made with the first product of a thread."""
    OTHER = 5
    COMMUNICATION = 6
    """Buckets of gradients."""


@dataclass(frozen=True, slots=True)
class Slot:
    """An allocation of the step.

    Attributes:
        bytes: as asked for, where that is known, else of its block.
        kind: what it is.
        call: row in `Calls` of the innermost call around it, -1 for none.
        module: path of the module, "" outside of all.
        batch: how it grows with the batch: 1.0 in proportion, 0.0 not at all.
        batch_known: whether that follows from shapes and roles; a library's workspace may do either.
        reduction: of the buffer of a reduction, whose formula gives its bytes at another batch.
        reads: numbers of elements of the tensors that its op was given.
        behind_node: whether autograd makes it when the function of a node of the backward pass is over: it sums a
            gradient to the shape of what it belongs to, such as a bias.
        refusable: whether its op runs without it: cuDNN's workspace for a convolution. Where the allocator refuses it,
            torch takes the next algorithm (`try_plans` in `aten/src/ATen/native/cudnn/Conv_v8.cpp`).
    """

    bytes: int
    kind: SlotKind
    call: int = -1
    module: str = ""
    batch: float = 0.0
    batch_known: bool = True
    reduction: Reduction | None = None
    reads: frozenset[int] = frozenset()
    behind_node: bool = False
    refusable: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """Memory that stays between steps: one storage."""

    bytes: int
    kind: HeldKind
    module: str = ""


@dataclass(frozen=True)
class StepProgram:
    """A training's memory.

    Attributes:
        slots: allocations of the step.
        events: their order; see the module.
        held: what is there before the first step, in the order of its allocation.
        states: what the optimizer makes in its first step and keeps.
        workspaces: per event index, bytes of what a library makes before that event of the first step.
        optimizer_at: index of the first event of the optimizer's step, the number of events where it has none.
        backward_at: index of the first event of the backward pass, that of the optimizer where there is none.
    """

    slots: Sequence[Slot]
    events: Sequence[int]
    held: Sequence[Held] = ()
    states: Sequence[Held] = ()
    workspaces: dict[int, int] = field(default_factory=dict)
    optimizer_at: int = 0
    backward_at: int = 0

    @property
    def sizes(self) -> list[int]:
        """Bytes of each slot."""
        return [slot.bytes for slot in self.slots]

    def held_bytes(self, kind: HeldKind) -> int:
        """Bytes of a kind that are held between steps, unrounded."""
        return sum(one.bytes for one in (*self.held, *self.states) if one.kind == kind)

    def parameters(self) -> Iterator[Held]:
        """The parameters, in the order of the module."""
        return (one for one in self.held if one.kind == HeldKind.PARAMETER)


def is_workspace(slot: Slot) -> bool:
    """Whether an allocation is taken for a library's workspace: gone with its op, and no tensor explains its size."""
    return slot.kind == SlotKind.TEMPORARY and not slot.batch_known
