"""What a StepProgram takes: its peaks, and the limits under which it runs, by replaying the allocator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tb_dlprof_plugin.planning.memory.allocator import (
    MIB,
    AllocatorSettings,
    CachingAllocator,
    MemoryBlock,
    OutOfMemory,
)
from tb_dlprof_plugin.planning.memory.step_program import StepProgram

_STEPS_UNDER_LIMIT = 4
LIMIT_SEARCH = 0.004
"""Share of the peak to which the smallest limit is searched."""
MOST_STEPS = 8
"""A steady step reserves nothing more after three or four."""


@dataclass(frozen=True, slots=True)
class ReplayedMemory:
    """Bytes. ``fits`` is false where the limit stopped it: the peaks are those until then."""

    peak_allocated: int
    peak_reserved: int
    steady: int
    retries: int
    fits: bool


class Needs:
    """What a training takes of a GPU, in bytes, without what lies outside of the allocator. Replays the program once,
    and some five times more when `smallest_limit` is first read.

    Attributes:
        peak_allocated: most that tensors hold.
        peak_reserved: most that the allocator takes without a limit, so the limit from which nothing is retried.
        steady: what tensors hold between two steps.
    """

    def __init__(self, program: StepProgram, settings: AllocatorSettings | None = None) -> None:
        self._program, self._settings = program, settings
        self._free = free = replay(program, settings)
        self.peak_allocated, self.peak_reserved, self.steady = free.peak_allocated, free.peak_reserved, free.steady

    @cached_property
    def smallest_limit(self) -> int:
        """The least under which it runs, with retries: searched to 0.4 % of the peak, its upper end."""
        return _smallest_limit(self._program, self._settings, self._free)


def replay(
    program: StepProgram,
    settings: AllocatorSettings | None = None,
    limit: int | None = None,
    history: Sequence[Sequence[int]] = (),
    most_steps: int = MOST_STEPS,
    sizes: Sequence[int] | None = None,
) -> ReplayedMemory:
    """Run a training from its first step until a step reserves nothing more.

    Args:
        program: the step and what was there before it.
        settings: of the allocator.
        limit: most bytes that it may reserve.
        history: sizes of the slots in the steps before the program's own, one list per step.
        most_steps: of the program's own.
        sizes: of the slots in these; the slots' own without.
    """
    allocator, sizes = CachingAllocator(settings, limit), program.sizes if sizes is None else sizes
    try:
        for held in program.held:
            allocator.allocate(held.bytes)
        live: list[MemoryBlock | None] = [None] * len(program.slots)
        for step, before in enumerate(history):
            _step(program, before, live, allocator, first=not step)
        for step in range(most_steps):
            reserved = allocator.reserved
            _step(program, sizes, live, allocator, first=not step and not history)
            # The first two steps differ from the rest: states and workspaces are made, and gradients are there.
            if step >= 2 and allocator.reserved == reserved:
                break
    except OutOfMemory:
        return _result(allocator, fits=False)
    return _result(allocator, fits=True)


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """Reserved and not allocated at the peak of a steady step, in bytes: ``given_back`` in whole segments, which
    `empty_cache` or a retry returns to the GPU, and ``holes`` in segments in use, the largest of them
    ``largest_hole``."""

    given_back: int
    holes: int
    largest_hole: int


def free_at_peak(program: StepProgram, settings: AllocatorSettings | None = None) -> FreeMemory:
    """The allocator's free memory when tensors hold most, without a limit."""
    allocator = CachingAllocator(settings)
    for held in program.held:
        allocator.allocate(held.bytes)
    live: list[MemoryBlock | None] = [None] * len(program.slots)
    for step in range(MOST_STEPS):
        reserved = allocator.reserved
        _step(program, program.sizes, live, allocator, first=not step)
        if step >= 2 and allocator.reserved == reserved:
            break
    allocator.peak_allocated = 0
    _step(program, program.sizes, live, allocator, first=False)
    peak = allocator.peak_allocated
    _step(program, program.sizes, live, allocator, first=False, stop_at=peak)
    given_back, holes = allocator.free_memory()
    return FreeMemory(given_back, sum(holes), holes[0] if holes else 0)


def runs_under(
    program: StepProgram, settings: AllocatorSettings | None, limit: int, sizes: Sequence[int] | None = None
) -> bool:
    """Whether a program, with these sizes of its slots, runs under a limit in bytes, with retries where they help."""
    return replay(program, settings, limit, most_steps=_STEPS_UNDER_LIMIT, sizes=sizes).fits


def _smallest_limit(program: StepProgram, settings: AllocatorSettings | None, free: ReplayedMemory) -> int:
    fails, works = free.peak_allocated - 1, free.peak_reserved
    while works - fails > max(MIB, int(LIMIT_SEARCH * free.peak_allocated)):
        middle = (fails + works) // 2
        if runs_under(program, settings, middle):
            works = middle
        else:
            fails = middle
    return works


def _step(
    program: StepProgram,
    sizes: Sequence[int],
    live: list[MemoryBlock | None],
    allocator: CachingAllocator,
    first: bool,
    stop_at: int | None = None,
) -> None:
    """Run the events of a step; no further than to where ``stop_at`` bytes are allocated."""
    allocate, release = allocator.allocate, allocator.release
    for index, event in enumerate(program.events):
        if first:
            _first_step(program, index, allocator)
        if event > 0:
            try:
                live[event - 1] = allocate(sizes[event - 1])
            except OutOfMemory:
                if not program.slots[event - 1].refusable:
                    raise
                live[event - 1] = None
            if stop_at is not None and allocator.allocated >= stop_at:
                return
        else:
            block = live[-event - 1]
            # None in the first step, before which there was none, and of what the allocator refused.
            if block is not None:
                release(block)
                live[-event - 1] = None
    if first:
        _first_step(program, len(program.events), allocator)


def _first_step(program: StepProgram, index: int, allocator: CachingAllocator) -> None:
    """What the first step makes before an event and keeps."""
    workspace = program.workspaces.get(index)
    if workspace:
        allocator.allocate(workspace)
    if index == program.optimizer_at:
        for state in program.states:
            allocator.allocate(state.bytes)


def _result(allocator: CachingAllocator, fits: bool) -> ReplayedMemory:
    return ReplayedMemory(
        allocator.peak_allocated, allocator.peak_reserved, allocator.allocated, allocator.retries, fits
    )
