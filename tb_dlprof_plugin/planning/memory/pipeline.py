"""Cuts a model into stages for several GPUs such that the largest peak is as small as it can be.

A stage has the parameters, gradients, states and activations of consecutive modules; what belongs to none of them goes
to the stage of the module before it, in the order of the forward pass. Every stage runs whole batches, one at a time:
with several micro-batches under way a stage keeps the activations of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from tb_dlprof_plugin.planning.memory.allocator_settings import AllocatorSettings
from tb_dlprof_plugin.planning.memory.event_places import places
from tb_dlprof_plugin.planning.memory.module_events import inside
from tb_dlprof_plugin.planning.memory.replay import replay
from tb_dlprof_plugin.planning.memory.step_program import Held, StepProgram

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
    where, found = places(program), []
    order = sorted(range(len(program.slots)), key=lambda slot: where.made[slot])
    owner = [0] * len(program.slots)
    last = 0
    for slot in order:
        index = _index(program.slots[slot].module, modules)
        last = last if index is None else index
        owner[slot] = last
        found.append(last)
    return owner


def _index(path: str, modules: Sequence[str]) -> int | None:
    return next((index for index, module in enumerate(modules) if inside(path, module)), None)


def _part(program: StepProgram, owner: Sequence[int], modules: Sequence[str], part: range) -> StepProgram:
    def mine(held: Sequence[Held]) -> list[Held]:
        found = []
        for one in held:
            index = _index(one.module, modules)
            if (0 if index is None else index) in part:
                found.append(one)
        return found

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
