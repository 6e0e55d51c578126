"""One step of a training as a list of allocations and frees, with what was there before it: what every what-if rewrites
and the allocator replays.

A *slot* is one allocation of the step. The events are slot + 1 for an allocation and -(slot + 1) for a free; a free
that comes before its slot's allocation is that of the step before, such as `zero_grad` makes of gradients.

`places` says where each slot is allocated and freed, `module_events` which events are a module's, and `EventEdits`
makes a changed program.
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
        return sum(storage.bytes for storage in (*self.held, *self.states) if storage.kind == kind)

    def parameters(self) -> Iterator[Held]:
        """The parameters, in the order of the module."""
        return (storage for storage in self.held if storage.kind == HeldKind.PARAMETER)


def is_workspace(slot: Slot) -> bool:
    """Whether an allocation is taken for a library's workspace: gone with its op, and no tensor explains its size."""
    return slot.kind == SlotKind.TEMPORARY and not slot.batch_known


@dataclass(frozen=True)
class Places:
    """Per slot the index of its allocation and of its free among the events; -1 for a slot without one.

    ``carried`` are the slots that the next step frees: their free comes first.
    """

    made: list[int]
    freed: list[int]
    carried: frozenset[int]


def places(program: StepProgram) -> Places:
    """The places of all slots."""
    made, freed = [-1] * len(program.slots), [-1] * len(program.slots)
    for index, event in enumerate(program.events):
        if event > 0:
            made[event - 1] = index
        else:
            freed[-event - 1] = index
    carried = {slot for slot in range(len(made)) if 0 <= freed[slot] < made[slot]}
    return Places(made, freed, frozenset(carried))


class EventEdits:
    """Collects events to drop, to put before an index, and new slots; then makes the changed program's events."""

    def __init__(self, program: StepProgram) -> None:
        self.program = program
        self.slots: list[Slot] = list(program.slots)
        self._dropped: set[int] = set()
        self._before: dict[int, list[int]] = {}

    def drop(self, index: int) -> None:
        """Leave an event out."""
        self._dropped.add(index)

    def replace(self, index: int, event: int) -> None:
        """Put an event in the place of another."""
        self.drop(index)
        self.put(index, [event])

    def put(self, index: int, events: list[int]) -> None:
        """Put events before an index, behind those that were put there already."""
        self._before.setdefault(index, []).extend(events)

    def add(self, slot: Slot) -> int:
        """The number of a new slot."""
        self.slots.append(slot)
        return len(self.slots) - 1

    def copy(self, slot: int) -> int:
        """A new slot like another."""
        return self.add(self.slots[slot])

    def drop_optimizer(self, where: Places) -> None:
        """Leave out what the recorded optimizer makes for its step and frees in it."""
        for slot, made in enumerate(where.made):
            kind, freed = self.program.slots[slot].kind, where.freed[slot]
            if made >= self.program.optimizer_at and kind in (SlotKind.OPTIMIZER, SlotKind.TEMPORARY):
                self._dropped |= {made, freed}

    def changed(self, held: Sequence[Held] | None = None, states: Sequence[Held] | None = None) -> StepProgram:
        """The changed program; with other memory that is held, where it is given."""
        old = self.program
        events: list[int] = []
        moved: dict[int, int] = {}
        for index in range(len(old.events) + 1):
            events.extend(self._before.get(index, ()))
            moved[index] = len(events)
            if index < len(old.events) and index not in self._dropped:
                events.append(old.events[index])
        return StepProgram(
            slots=self.slots,
            events=events,
            held=old.held if held is None else held,
            states=old.states if states is None else states,
            workspaces={moved[index]: size for index, size in old.workspaces.items()},
            optimizer_at=moved[old.optimizer_at],
            backward_at=moved[old.backward_at],
        )


class UnknownModule(ValueError):
    """No allocation of the step belongs to the module; the message names it."""


@dataclass(frozen=True)
class ModuleEvents:
    """Indices into the events, both ends inclusive; ``backward_first`` is above ``backward_last`` without a backward
    pass.

    ``slots`` are those that the module made, in either pass.
    """

    slots: frozenset[int]
    forward_first: int
    forward_last: int
    backward_first: int
    backward_last: int


def module_events(program: StepProgram, where: Places, module: str) -> ModuleEvents:
    """The events of a module and all within it.

    Args:
        program: the step.
        where: the places of its slots.
        module: path as in `named_modules()`.

    Raises:
        UnknownModule: it made nothing, or nothing in the forward pass.
    """
    own = [slot for slot, allocation in enumerate(program.slots) if inside(allocation.module, module)]
    forward = [where.made[slot] for slot in own if where.made[slot] < program.backward_at]
    if not forward:
        raise UnknownModule(f"no allocation of the forward pass belongs to a module {module!r}.")
    behind = [where.made[slot] for slot in own if where.made[slot] >= program.backward_at]
    # A layer whose backward pass makes nothing of its own still frees what it had kept.
    saved = [where.freed[slot] for slot in own if where.made[slot] < program.backward_at <= where.freed[slot]]
    first = min(behind, default=min(saved, default=len(program.events)))
    last = min(max([*behind, *saved], default=-1), program.optimizer_at - 1)
    return ModuleEvents(
        frozenset(own),
        min(forward),
        _with_frees(program, max(forward), program.backward_at),
        first,
        _with_frees(program, last, program.optimizer_at) if last >= 0 else last,
    )


def _with_frees(program: StepProgram, last: int, end: int) -> int:
    """The last of the frees that follow an event: what a pass has used goes when its last op is over."""
    while last + 1 < end and program.events[last + 1] < 0:
        last += 1
    return last


def inside(path: str, module: str) -> bool:
    """Whether a path is that of a module or of one in it."""
    return path == module or path.startswith(f"{module}.") or module == ""


def with_outer(path: str) -> list[str]:
    """The paths of a module and of those around it, the outermost first; none for ""."""
    parts = path.split(".") if path else []
    return [".".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def modules_of(program: StepProgram) -> list[str]:
    """Paths of the modules that keep activations, with all around them, in the order of the forward pass."""
    kept = (slot.module for slot in program.slots if slot.kind == SlotKind.ACTIVATION)
    return list(dict.fromkeys(path for module in kept for path in with_outer(module)))
