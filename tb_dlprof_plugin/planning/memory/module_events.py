"""The part of a step's events that a module has: what its forward pass makes, and where its backward pass runs."""

from __future__ import annotations

from dataclasses import dataclass

from tb_dlprof_plugin.planning.memory.event_places import Places
from tb_dlprof_plugin.planning.memory.step_program import SlotKind, StepProgram


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
    own = [slot for slot, one in enumerate(program.slots) if inside(one.module, module)]
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


def modules_of(program: StepProgram) -> list[str]:
    """Paths of the modules that keep activations, with all around them, in the order of the forward pass."""
    found: dict[str, None] = {}
    for slot in program.slots:
        if slot.kind == SlotKind.ACTIVATION and slot.module:
            parts = slot.module.split(".")
            for depth in range(1, len(parts) + 1):
                found.setdefault(".".join(parts[:depth]))
    return list(found)
