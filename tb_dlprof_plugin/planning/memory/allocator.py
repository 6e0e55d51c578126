"""Replays PyTorch's caching allocator of one GPU and one stream: what it reserves for a list of allocations and frees.

The rules are those of torch 2.11, `c10/core/AllocatorConfig.h` and `c10/cuda/CUDACachingAllocator.cpp`. A request is
rounded up to 512 bytes; up to 1 MiB it comes from the pool of small blocks, else from that of large ones. The smallest
free block that holds it is taken, the lowest of several. Without one a segment is asked for: 2 MiB for small requests,
20 MiB for those below 10 MiB, else the request rounded up to 2 MiB. The rest of a block becomes a block of its own: of
a small one from 512 bytes on, of a large one above 1 MiB. A freed block is merged with free neighbours. Under a limit,
a segment that would exceed it is asked for again after all segments without a block in use were given back (a retry).

With expandable segments each pool is one segment that is mapped in pages of 2 MiB (small) or 20 MiB (large) at its end;
a retry gives back the whole pages of free blocks.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from dataclasses import dataclass

from tb_dlprof_plugin.model.plan_request import PlanError

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class AllocatorSettings:
    """As in torch's documentation of CUDA memory management; sizes in bytes, None for "no limit".

    Attributes:
        expandable: one segment per pool that grows by pages, in the place of many of fixed size.
        max_split_size: larger blocks are not split.
        power2_divisions: sizes are rounded up to one of so many steps between powers of two; 0 rounds to 512 bytes.
    """

    expandable: bool = False
    max_split_size: int | None = None
    power2_divisions: int = 0


def settings_of(text: str | None) -> AllocatorSettings:
    """The settings of a text such as "expandable_segments:True,max_split_size_mb:128".

    Options that do not decide where a block goes are passed over: `garbage_collection_threshold` frees early, what
    `pinned_*` set is on the CPU.

    Raises:
        PlanError: another backend, or an option of a form that is not known.
    """
    options = dict(re.findall(r"([a-z0-9_]+)\s*:\s*(\[[^\]]*\]|[^,\s]+)", text or ""))
    backend = options.get("backend", "native")
    if backend != "native":
        raise PlanError(f"the allocator is {backend}, and only PyTorch's own (native) can be replayed.")
    if options.get("large_segment_size_mb", "20") != "20":
        raise PlanError("large_segment_size_mb is set, which the replay does not know.")
    divisions = options.get("roundup_power2_divisions", "0")
    if not divisions.isdigit():
        raise PlanError("roundup_power2_divisions differs by size, which the replay does not know.")
    split = options.get("max_split_size_mb")
    return AllocatorSettings(
        expandable=options.get("expandable_segments", "False").lower() in ("true", "1"),
        max_split_size=None if split is None else int(split) * MIB,
        power2_divisions=int(divisions),
    )


ROUND = 512
SMALL = MIB
"""Largest request of the pool of small blocks, and the largest rest that a large block keeps."""
SMALL_SEGMENT, LARGE_SEGMENT, SEGMENT_ROUND = 2 * MIB, 20 * MIB, 2 * MIB
OWN_SEGMENT = 10 * MIB
"""Requests from this size on get a segment of their own size."""


class OutOfMemory(Exception):
    """A request that the limit refuses even after a retry."""


class MemoryBlock:
    """A stretch of a segment; ``before`` and ``after`` are its neighbours in it."""

    __slots__ = ("address", "after", "before", "free", "size", "small")

    def __init__(self, address: int, size: int, small: bool) -> None:
        self.address, self.size, self.small = address, size, small
        self.before: MemoryBlock | None = None
        self.after: MemoryBlock | None = None
        self.free = True


class _Pool:
    """The free blocks of one size class, the smallest first and the lowest of equal ones."""

    __slots__ = ("at", "end", "last", "order")

    def __init__(self) -> None:
        self.order: list[tuple[int, int]] = []
        self.at: dict[int, MemoryBlock] = {}
        self.last: MemoryBlock | None = None
        """The block at the end of the expandable segment."""
        self.end = 0

    def add(self, block: MemoryBlock) -> None:
        insort(self.order, (block.size, block.address))
        self.at[block.address] = block

    def remove(self, block: MemoryBlock) -> None:
        del self.order[bisect_left(self.order, (block.size, block.address))]
        del self.at[block.address]


class CachingAllocator:
    """Allocates and frees without memory. All sizes are bytes.

    Args:
        settings: of the allocator.
        limit: most bytes that it may reserve; None for no limit.
    """

    def __init__(self, settings: AllocatorSettings | None = None, limit: int | None = None) -> None:
        self.settings, self.limit = settings or AllocatorSettings(), limit
        self.allocated = self.reserved = self.peak_allocated = self.peak_reserved = 0
        self.retries = 0
        self._pools = {True: _Pool(), False: _Pool()}
        self._next = 1 << 40
        # Multiples of a page.
        self._pools[True].end, self._pools[False].end = SMALL_SEGMENT << 30, LARGE_SEGMENT << 30

    def allocate(self, requested: int) -> MemoryBlock:
        """A block for a request.

        Raises:
            OutOfMemory: the limit does not allow it.
        """
        size = rounded(requested, self.settings.power2_divisions)
        small = size <= SMALL
        block = self._cached(size, small) or self._reserve(size, small)
        rest = block.size - size
        if rest and self._splits(rest, size, small):
            self._split(block, size)
        block.free = False
        self.allocated += block.size
        if self.allocated > self.peak_allocated:
            self.peak_allocated = self.allocated
        return block

    def release(self, block: MemoryBlock) -> None:
        """Free a block that `allocate` returned."""
        self.allocated -= block.size
        block.free = True
        pool = self._pools[block.small]
        before, after = block.before, block.after
        if before is not None and before.free:
            pool.remove(before)
            self._join(before, block, pool)
            block = before
        if after is not None and after.free:
            pool.remove(after)
            self._join(block, after, pool)
        pool.add(block)

    def free_memory(self) -> tuple[int, list[int]]:
        """Bytes that are reserved and not allocated: those that could be given back to the GPU, as whole segments or
        pages, and the sizes of free stretches in segments in use, which could not."""
        whole, holes = 0, []
        for small, pool in self._pools.items():
            page = SMALL_SEGMENT if small else LARGE_SEGMENT
            for block in pool.at.values():
                pages = 0
                if self.settings.expandable:
                    pages = (block.address + block.size) // page * page - -(-block.address // page) * page
                elif block.before is None and block.after is None:
                    pages = block.size
                whole += max(pages, 0)
                if block.size > max(pages, 0):
                    holes.append(block.size - max(pages, 0))
        return whole, sorted(holes, reverse=True)

    def _cached(self, size: int, small: bool) -> MemoryBlock | None:
        pool, most = self._pools[small], self.settings.max_split_size
        index = bisect_left(pool.order, (size, 0))
        if index == len(pool.order):
            return None
        if self.settings.expandable and index + 1 < len(pool.order):
            # The block at the end counts as large as it can grow, so any other that holds the request goes before.
            end = self._free_end(pool)
            index += end is not None and pool.order[index][1] == end.address
        found, address = pool.order[index]
        if most is not None and (size < most <= found or (size >= most and found >= size + LARGE_SEGMENT)):
            return None
        del pool.order[index]
        return pool.at.pop(address)

    def _splits(self, rest: int, size: int, small: bool) -> bool:
        if small or self.settings.expandable:
            return rest >= ROUND
        most = self.settings.max_split_size
        return rest > SMALL and (most is None or size < most)

    def _split(self, block: MemoryBlock, size: int) -> None:
        pool = self._pools[block.small]
        rest = MemoryBlock(block.address + size, block.size - size, block.small)
        rest.before, rest.after = block, block.after
        if block.after is not None:
            block.after.before = rest
        block.after, block.size = rest, size
        if pool.last is block:
            pool.last = rest
        pool.add(rest)

    def _join(self, block: MemoryBlock, after: MemoryBlock, pool: _Pool) -> None:
        block.size += after.size
        block.after = after.after
        if after.after is not None:
            after.after.before = block
        if pool.last is after:
            pool.last = block

    def _reserve(self, size: int, small: bool) -> MemoryBlock:
        return self._expand(size, small) if self.settings.expandable else self._segment(size, small)

    def _segment(self, size: int, small: bool) -> MemoryBlock:
        if small:
            segment = SMALL_SEGMENT
        elif size < OWN_SEGMENT:
            segment = LARGE_SEGMENT
        else:
            segment = -(-size // SEGMENT_ROUND) * SEGMENT_ROUND
        self._take(segment)
        block = MemoryBlock(self._next, segment, small)
        # A gap, so that blocks of two segments are never neighbours.
        self._next += segment + SEGMENT_ROUND
        return block

    def _expand(self, size: int, small: bool) -> MemoryBlock:
        pool, page = self._pools[small], SMALL_SEGMENT if small else LARGE_SEGMENT
        last = self._free_end(pool)
        mapped = -(-(size - (last.size if last else 0)) // page) * page
        try:
            self._take(mapped)
        except OutOfMemory:
            # The retry has unmapped what could have been extended.
            mapped = -(-size // page) * page
            self._take(mapped, again=True)
        last = self._free_end(pool)
        block = MemoryBlock(pool.end, mapped, small)
        if last is not None:
            pool.remove(last)
            last.size += mapped
            block = last
        elif pool.last is not None and pool.last.address + pool.last.size == pool.end:
            block.before, pool.last.after = pool.last, block
        pool.end += mapped
        pool.last = block
        return block

    @staticmethod
    def _free_end(pool: _Pool) -> MemoryBlock | None:
        """The free block that ends where the next page is mapped."""
        last = pool.last
        return last if last is not None and last.free and last.address + last.size == pool.end else None

    def _take(self, segment: int, again: bool = False) -> None:
        """Reserve so many bytes more."""
        if self.limit is not None and self.reserved + segment > self.limit:
            if not again:
                self.retries += 1
                self._give_back()
            if self.reserved + segment > self.limit:
                raise OutOfMemory
        self.reserved += segment
        if self.reserved > self.peak_reserved:
            self.peak_reserved = self.reserved

    def _give_back(self) -> None:
        for small, pool in self._pools.items():
            for block in list(pool.at.values()):
                if self.settings.expandable:
                    self._unmap(block, pool, SMALL_SEGMENT if small else LARGE_SEGMENT)
                elif block.before is None and block.after is None:
                    pool.remove(block)
                    self.reserved -= block.size

    def _unmap(self, block: MemoryBlock, pool: _Pool, page: int) -> None:
        """Give back the pages that lie wholly in a free block; what is left of it on both sides stays."""
        first, stop = -(-block.address // page) * page, (block.address + block.size) // page * page
        if first >= stop:
            return
        pool.remove(block)
        self.reserved -= stop - first
        before, after = block.before, block.after
        end = block.address + block.size
        left = MemoryBlock(block.address, first - block.address, block.small) if first > block.address else None
        right = MemoryBlock(stop, end - stop, block.small) if end > stop else None
        for kept in (left, right):
            if kept is not None:
                pool.add(kept)
        if before is not None:
            before.after = left
        if left is not None:
            left.before = before
        if after is not None:
            after.before = right
        if right is not None:
            right.after = after
        if pool.last is block:
            pool.last = right


def rounded(requested: int, power2_divisions: int = 0) -> int:
    """What a request of so many bytes takes of a block."""
    if requested < ROUND:
        return ROUND
    if power2_divisions > 1 and requested > ROUND * power2_divisions:
        floor = 1 << (requested.bit_length() - 1)
        if floor == requested:
            return requested
        step = floor // power2_divisions
        return floor + -(-(requested - floor) // step) * step
    return -(-requested // ROUND) * ROUND
