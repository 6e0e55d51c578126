"""How long the forward pass itself has a tensor, were nothing to keep it for the backward pass.

Python holds what a module is given until the module returns, and a caller what its next op reads, too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from itertools import islice

from tb_dlprof_plugin.planning.memory.event_places import Places
from tb_dlprof_plugin.planning.memory.op_calls import OpCalls
from tb_dlprof_plugin.planning.memory.op_shapes import ITEM_SIZES
from tb_dlprof_plugin.planning.memory.step_program import StepProgram


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
