"""Where each slot of a StepProgram is allocated and freed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tb_dlprof_plugin.planning.memory.step_program import Held, Slot, StepProgram


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


class Rewrite:
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

    def copy(self, slot: int) -> int:
        """A new slot like another."""
        self.slots.append(self.slots[slot])
        return len(self.slots) - 1

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
