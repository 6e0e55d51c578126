"""Which modules to put under activation checkpointing: memory against the time that it costs, set by set.

Savings of modules do not add up: the peak moves. So the set grows greedily, each time by the module with most bytes
saved at the current peak per forward time, with a replay after each; then each point is the smallest memory for its
time so far.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.planning.memory.allocator_settings import AllocatorSettings
from tb_dlprof_plugin.planning.memory.change_checkpoints import with_checkpoints
from tb_dlprof_plugin.planning.memory.event_places import places
from tb_dlprof_plugin.planning.memory.module_events import UnknownModule, module_events
from tb_dlprof_plugin.planning.memory.op_calls import OpCalls
from tb_dlprof_plugin.planning.memory.replay import replay
from tb_dlprof_plugin.planning.memory.step_program import SlotKind, StepProgram
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
    for slot, one in enumerate(program.slots):
        if one.kind == SlotKind.ACTIVATION and one.module and where.freed[slot] >= program.backward_at:
            parts = one.module.split(".")
            for depth in range(1, len(parts) + 1):
                kept[".".join(parts[:depth])] += one.bytes
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
    found = [Unit(module, kept[module], _sum_inside(forward, module)) for module in levels[best]]
    return sorted(found, key=lambda unit: -unit.kept)[:_MOST_UNITS]


def frontier(view: ProfileView, program: StepProgram, settings: AllocatorSettings) -> list[FrontierPoint]:
    """Sets of modules from none to all that save memory, each with less memory than the one before."""
    free, calls = replay(program, settings), OpCalls(view)
    points = [FrontierPoint((), free.peak_allocated, free.peak_reserved, 0.0)]
    chosen: list[str] = []
    cost = 0.0
    for unit in sorted(
        _needed(view, program, settings, calls), key=lambda unit: -unit.kept / max(unit.forward_ns, 1.0)
    ):
        chosen.append(unit.module)
        cost += unit.forward_ns
        found, last = replay(with_checkpoints(program, chosen, calls), settings), points[-1].peak_allocated
        if found.peak_allocated < last - _LEAST_SAVED * last:
            points.append(FrontierPoint(tuple(chosen), found.peak_allocated, found.peak_reserved, cost))
    return points


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
    found: dict[str, float] = defaultdict(float)
    for module, duration in zip(ops.module[op[chosen]].tolist(), launches.duration_ns[chosen].tolist(), strict=True):
        found[profile.strings[module]] += duration / max(len(profile.iterations), 1)
    return found


def _sum_inside(times: dict[str, float], module: str) -> float:
    return sum(ns for path, ns in times.items() if path == module or path.startswith(f"{module}."))
