"""Who holds the memory of a device at each moment of a recording: what is there from before by the planner's list of
what a training holds, what was allocated since by `holders`.

At each moment the holders sum to what is allocated, to the byte. A storage takes its block: its size rounded up to
512 bytes. What of the memory from before no list explains stays "before".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_dlprof_plugin.metrics.memory import CATEGORIES, CPU, DeviceMemory
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.planning.memory.allocator import rounded
from tb_dlprof_plugin.planning.memory.holders import HOLDERS, Holder, holders_of
from tb_dlprof_plugin.planning.memory.recorded_step import planned_memory, recorded_program
from tb_dlprof_plugin.planning.memory.step_program import HeldKind, StepProgram

_OF_KIND: dict[HeldKind, Holder] = {
    HeldKind.PARAMETER: "parameters",
    HeldKind.BUFFER: "buffers",
    HeldKind.GRADIENT: "gradients",
    HeldKind.OPTIMIZER_STATE: "optimizer_state",
}
"""In the order in which they are found in the memory from before; workspaces come last."""
_BEFORE = HOLDERS.index("before")


@dataclass(frozen=True, slots=True)
class HeldStorage:
    """A storage that is there from before the recording to its end; ``bytes`` of its block."""

    holder: Holder
    module: str
    bytes: int


class MemoryBill:
    """The holders of one device's memory.

    Attributes:
        holder: per event, the index into `HOLDERS` of its allocation's.
        held: what is there all the time and has a name.
        listed: whether the names are those of the hook's list of storages; else sizes are derived from gradients'.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self.memory = memory
        self.holder = holders_of(memory)
        self.listed = bool(memory.view.profile.facts.storages)
        self.held: list[HeldStorage] = []
        if memory.partners_known and memory.before_known and memory.device != CPU:
            self.held = self._held()

    @cached_property
    def bytes(self) -> Ints:
        """Bytes by holder, shape (12, n + 1); all in "before" where partners are unknown."""
        memory = self.memory
        result = np.zeros((len(HOLDERS), len(memory) + 1), dtype=np.int64)
        if memory.partners_known:
            for index in np.unique(self.holder[memory.owner >= 0]).tolist():
                np.cumsum(
                    np.where((self.holder == index) & (memory.owner >= 0), memory.delta, 0), out=result[index, 1:]
                )
            older = self._older_gradients
            result[HOLDERS.index("gradients")] += older
            for storage in self.held:
                result[HOLDERS.index(storage.holder)] += storage.bytes
        result[_BEFORE] = memory.allocated - result.sum(axis=0)
        return result

    def at(self, state: int) -> list[int | None]:
        """Bytes by holder in a state; None for what was there before where not known, for all without partners."""
        return self._known(self.bytes[:, state])

    def most(self, first: int, last: int) -> list[int | None]:
        """The most that each held in the states ``first`` to ``last``, each at a moment of its own."""
        return self._known(self.bytes[:, first : last + 1].max(axis=1))

    def _known(self, values: Ints) -> list[int | None]:
        if not self.memory.partners_known:
            return [None] * len(HOLDERS)
        figures: list[int | None] = values.tolist()
        if not self.memory.before_known:
            figures[_BEFORE] = None
        return figures

    @cached_property
    def _older(self) -> Ints:
        """Bytes per event of a free of memory from before, 0 for others."""
        memory = self.memory
        return np.where(~memory.is_allocation & (memory.owner < 0), -memory.bytes, 0)

    @cached_property
    def _older_gradients(self) -> Ints:
        """Per state, bytes of the gradients that the step before the recording left: what is freed later and has the
        size of a gradient's block."""
        memory = self.memory
        made = memory.is_allocation & (self.holder == HOLDERS.index("gradients"))
        freed = np.where(np.isin(self._older, memory.bytes[made]), self._older, 0) if memory.before_known else None
        if freed is None:
            return np.zeros(len(memory) + 1, dtype=np.int64)
        return int(freed.sum()) - np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(freed)))

    def _held(self) -> list[HeldStorage]:
        program = self._program()
        if program is None:
            return []
        memory = self.memory
        # What is freed later is not there all the time.
        remains = int(self._older.sum()) - np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(self._older)))
        room = int((memory.category_bytes[CATEGORIES.index("before")] - remains).min())
        kept = memory.is_allocation & (memory.partner < 0)
        since = Counter(memory.bytes[kept & (self.holder == HOLDERS.index("optimizer_state"))].tolist())
        storages: list[HeldStorage] = []
        for storage in _listed(program):
            if storage.holder == "optimizer_state" and since[storage.bytes]:
                since[storage.bytes] -= 1
            elif storage.bytes <= room:
                room -= storage.bytes
                storages.append(storage)
        return storages

    def _program(self) -> StepProgram | None:
        """The planner's step, where it is of this device and knows the parameters."""
        try:
            if planned_memory(self.memory.view).device != self.memory.device:
                return None
            program = recorded_program(self.memory.view)
        except ValueError:
            return None
        return program if any(True for _ in program.parameters()) else None


def _listed(program: StepProgram) -> list[HeldStorage]:
    storages = [
        HeldStorage(holder, storage.module, rounded(storage.bytes))
        for kind, holder in _OF_KIND.items()
        for storage in (*program.held, *program.states)
        if storage.kind == kind and storage.bytes
    ]
    return storages + [HeldStorage("workspaces", "", rounded(size)) for size in program.workspaces.values()]
