"""Which modules to checkpoint, where to cut a model for several GPUs, and how many more modules fit.

Checkpoints: memory against the time that they cost, set by set. Savings of modules do not add up: the peak moves. So
the set grows greedily, each time by the module with most bytes saved at the current peak per forward time, with a
replay after each; then each point is the smallest memory for its time so far.

Stages: cut such that the largest peak is as small as it can be. A stage has the parameters, gradients, states and
activations of consecutive modules; what belongs to none of them goes to the stage of the module before it, in the order
of the forward pass. Every stage runs whole batches, one at a time: with several micro-batches under way a stage keeps
the activations of each.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.planning.memory.allocator import AllocatorSettings
from tb_dlprof_plugin.planning.memory.op_calls import OpCalls
from tb_dlprof_plugin.planning.memory.replay import Needs, replay
from tb_dlprof_plugin.planning.memory.rewrite_modules import with_layers
from tb_dlprof_plugin.planning.memory.rewrite_saved_tensors import with_checkpoints
from tb_dlprof_plugin.planning.memory.step_program import (
    Held,
    SlotKind,
    StepProgram,
    UnknownModule,
    inside,
    module_events,
    places,
    with_outer,
)
from tb_dlprof_plugin.profile_view import ProfileView

_MOST_UNITS = 64
_LEAST_SAVED = 0.005
"""Of the peak: less is not worth a point."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A module that can be computed again: bytes that it keeps for its backward pass, and its forward GPU time per
    step."""

    module: str
    kept: int
    forward_ns: float


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """A set of checkpointed modules; ``added_ns`` is the GPU time per step that it computes again."""

    modules: tuple[str, ...]
    peak_allocated: int
    peak_reserved: int
    added_ns: float


def units(view: ProfileView, program: StepProgram) -> list[Unit]:
    """The modules of the level that splits the kept activations best: of which several keep much and none keeps most.

    Of two levels the one with the larger sum over its modules, without its largest; the outer one of equals.
    """
    where = places(program)
    kept: dict[str, int] = defaultdict(int)
    for slot, allocation in enumerate(program.slots):
        if allocation.kind == SlotKind.ACTIVATION and where.freed[slot] >= program.backward_at:
            for path in with_outer(allocation.module):
                kept[path] += allocation.bytes
    levels: dict[int, list[str]] = defaultdict(list)
    for module in kept:
        levels[module.count(".")].append(module)
    if not levels:
        return []

    def worth(level: int) -> int:
        sizes = [kept[module] for module in levels[level]]
        return sum(sizes) - max(sizes)

    best = max(sorted(levels), key=worth)
    forward = _forward_ns(view)
    level_units = [
        Unit(module, kept[module], sum(ns for path, ns in forward.items() if inside(path, module)))
        for module in levels[best]
    ]
    return sorted(level_units, key=lambda unit: -unit.kept)[:_MOST_UNITS]


def frontier(view: ProfileView, program: StepProgram, settings: AllocatorSettings) -> Iterator[FrontierPoint]:
    """Sets of modules from none to all that save memory, each with less memory than the one before.

    Each is replayed when it is asked for; the second costs a replay per unit, which says what no set needs.
    """
    free, calls = replay(program, settings), OpCalls(view)
    last = free.peak_allocated
    yield FrontierPoint((), free.peak_allocated, free.peak_reserved, 0.0)
    chosen: list[str] = []
    cost = 0.0
    for unit in sorted(
        _needed(view, program, settings, calls), key=lambda unit: -unit.kept / max(unit.forward_ns, 1.0)
    ):
        chosen.append(unit.module)
        cost += unit.forward_ns
        replayed = replay(with_checkpoints(program, chosen, calls), settings)
        if replayed.peak_allocated < last - _LEAST_SAVED * last:
            last = replayed.peak_allocated
            yield FrontierPoint(tuple(chosen), replayed.peak_allocated, replayed.peak_reserved, cost)


def _needed(view: ProfileView, program: StepProgram, settings: AllocatorSettings, calls: OpCalls) -> list[Unit]:
    """The units without which the set of all would save less."""
    where = places(program)
    needed = []
    for unit in units(view, program):
        with contextlib.suppress(UnknownModule):
            module_events(program, where, unit.module)
            needed.append(unit)
    least = replay(with_checkpoints(program, [unit.module for unit in needed], calls), settings).peak_allocated
    for unit in sorted(needed, key=lambda unit: unit.kept):
        without = [other.module for other in needed if other is not unit]
        if replay(with_checkpoints(program, without, calls), settings).peak_allocated <= least * (1 + _LEAST_SAVED):
            needed.remove(unit)
    return needed


def _forward_ns(view: ProfileView) -> dict[str, float]:
    """GPU time of the forward pass per step, by module."""
    profile = view.profile
    launches, ops = profile.launches, profile.ops
    op = profile.calls.op[np.maximum(launches.call, 0)]
    chosen = (launches.call >= 0) & (ops.role[op] == Role.FORWARD) & (view.launch_iteration >= 0)
    times: dict[str, float] = defaultdict(float)
    for module, duration in zip(ops.module[op[chosen]].tolist(), launches.duration_ns[chosen].tolist(), strict=True):
        times[profile.strings[module]] += duration / max(len(profile.iterations), 1)
    return times


_STEPS = 4


@dataclass(frozen=True, slots=True)
class Stage:
    """What one GPU runs: its modules and what it takes in bytes."""

    modules: tuple[str, ...]
    peak_allocated: int
    peak_reserved: int


def pipeline(program: StepProgram, settings: AllocatorSettings, modules: Sequence[str], gpus: int) -> list[Stage]:
    """The stages, in the order of the forward pass; fewer than ``gpus`` where there are fewer modules.

    Args:
        program: the step on one GPU.
        settings: of the allocator.
        modules: paths, in the order of the forward pass; a cut lies between two of them.
        gpus: at least 1.
    """
    owner = _owners(program, modules)
    count = len(modules)

    @cache
    def stage(first: int, last: int) -> Stage:
        found = replay(_part(program, owner, modules, range(first, last)), settings, most_steps=_STEPS)
        return Stage(tuple(modules[first:last]), found.peak_allocated, found.peak_reserved)

    @cache
    def best(first: int, stages: int) -> tuple[int, tuple[Stage, ...]]:
        """The largest peak of the modules from ``first`` on in so many stages, and the stages."""
        if stages == 1:
            whole = stage(first, count)
            return whole.peak_allocated, (whole,)
        found: tuple[int, tuple[Stage, ...]] | None = None
        low, high = first + 1, count - stages + 1
        # The peak of the first part grows with it, that of the rest falls: the best cut is where both meet.
        while low < high:
            middle = (low + high) // 2
            if stage(first, middle).peak_allocated < best(middle, stages - 1)[0]:
                low = middle + 1
            else:
                high = middle
        for cut in {max(low - 1, first + 1), low}:
            one, rest = stage(first, cut), best(cut, stages - 1)
            peak = max(one.peak_allocated, rest[0])
            if found is None or peak < found[0]:
                found = peak, (one, *rest[1])
        assert found is not None
        return found

    return list(best(0, min(gpus, count))[1]) if count else []


def _owners(program: StepProgram, modules: Sequence[str]) -> list[int]:
    """Per slot the index of the module whose stage it belongs to."""
    where = places(program)
    order = sorted(range(len(program.slots)), key=lambda slot: where.made[slot])
    owner = [0] * len(program.slots)
    last = 0
    for slot in order:
        index = _index(program.slots[slot].module, modules)
        last = last if index is None else index
        owner[slot] = last
    return owner


def _index(path: str, modules: Sequence[str]) -> int | None:
    return next((index for index, module in enumerate(modules) if inside(path, module)), None)


def _part(program: StepProgram, owner: Sequence[int], modules: Sequence[str], part: range) -> StepProgram:
    def mine(held: Sequence[Held]) -> list[Held]:
        kept = []
        for storage in held:
            index = _index(storage.module, modules)
            if (0 if index is None else index) in part:
                kept.append(storage)
        return kept

    events: list[int] = []
    moved: dict[int, int] = {}
    for index, event in enumerate(program.events):
        moved[index] = len(events)
        if owner[abs(event) - 1] in part:
            events.append(event)
    moved[len(program.events)] = len(events)
    # Each GPU has handles of its own, so each has the workspaces.
    return replace(
        program,
        events=events,
        held=mine(program.held),
        states=mine(program.states),
        workspaces={moved[index]: size for index, size in program.workspaces.items()},
        optimizer_at=moved[program.optimizer_at],
        backward_at=moved[program.backward_at],
    )


_NEAR, _FAR = 2, 6
"""Copies whose needs span the line: the first copy may replace what was special of the recorded layers."""


def repeated_module(program: StepProgram) -> str | None:
    """The last of the modules with a number in their path that make as many allocations as a neighbour: of several
    groups those that make most. None where no two do."""
    counts: dict[str, int] = defaultdict(int)
    for slot in program.slots:
        for path in with_outer(slot.module):
            if path.rpartition(".")[2].isdigit():
                counts[path] += 1
    alike: dict[tuple[str, int], list[str]] = defaultdict(list)
    for module, count in counts.items():
        alike[module.rpartition(".")[0], count].append(module)
    groups = [(count * len(modules), modules) for (_, count), modules in alike.items() if len(modules) > 1]
    if not groups:
        return None
    return max(max(groups)[1], key=lambda module: int(module.rpartition(".")[2]))


def most_layers(program: StepProgram, settings: AllocatorSettings, module: str, limit: int) -> int:
    """How many more modules like one run under a limit in bytes, with retries; 0 also where none does.

    Every copy takes as much, so that the least limit grows in a line with their number.

    Raises:
        UnknownModule: the module made nothing in the forward pass.
    """
    near, far = (Needs(with_layers(program, module, count), settings).smallest_limit for count in (_NEAR, _FAR))
    each = max((far - near) / (_FAR - _NEAR), 1.0)
    return max(0, int(_NEAR + (limit - near) / each))
