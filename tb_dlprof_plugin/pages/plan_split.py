"""The plan's tables of several GPUs and of deeper networks."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import msgspec

from tb_dlprof_plugin.model.plan_request import SHARES, PlanError, PlanRequest
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.planning.memory.capacity import Capacity
from tb_dlprof_plugin.planning.memory.module_choices import most_layers, pipeline, repeated_module, units
from tb_dlprof_plugin.planning.memory.plan import MemoryPlanner
from tb_dlprof_plugin.planning.memory.rewrites import changes_of, spread_of
from tb_dlprof_plugin.planning.memory.step_program import UnknownModule, modules_of
from tb_dlprof_plugin.profile_view import ProfileView

_MB = 1e6
_RANKS = (1, 2, 4, 8, 16, 32, 64)


class ShardRow(msgspec.Struct, frozen=True):
    """One way to share the work over GPUs; sizes are those of the rank with most."""

    shard: Annotated[
        str,
        Column("Shared by"),
        Definition(
            "planShard",
            "ddp: buckets of all gradients more. zero1: each rank has its part of the optimizer's states. zero2: of "
            "the gradients, too. zero3 and fsdp2: of the parameters, too, which are gathered module by module. tp: "
            "of pairs of linear layers and what is computed between them (tensor parallelism).",
        ),
    ]
    gpus: int
    peak_allocated_mb: Annotated[float, Column("Peak allocated, replayed", "planPeakAllocated")]
    peak_reserved_mb: Annotated[float, Column("Peak reserved, replayed", "planPeakReserved")]
    verdict: Annotated[str, Column("Fits", "planVerdict", width=128)]


class StageRow(msgspec.Struct, frozen=True):
    """A stage of the model cut over GPUs: its modules, in the order of the forward pass."""

    modules: Annotated[
        list[str],
        Column("Modules", width=280),
        Definition(
            "planStages",
            "Consecutive modules that one GPU runs, cut such that the largest peak is as small as it can be. Each "
            "runs whole batches, one at a time.",
        ),
    ]
    peak_allocated_mb: Annotated[float, Column("Peak allocated, replayed", "planPeakAllocated")]
    peak_reserved_mb: Annotated[float, Column("Peak reserved, replayed", "planPeakReserved")]


class Depth(msgspec.Struct, frozen=True):
    """How many more modules like ``module`` fit; ``now`` is how many there are at its place, itself
    included."""

    module: str
    now: int
    more: Annotated[
        int,
        Definition(
            "planDeepest", "Most additional modules like this one that fit on the GPU, with retries; on the line "
            "through the limits with two and with six more."
        )
    ]  # fmt: skip


def shard_rows(memory: MemoryPlanner, request: PlanRequest, gpus: int) -> list[ShardRow]:
    """Each way over so many GPUs that is possible: none where the parameters' sizes are not known."""
    rows = []
    for shard in SHARES:
        try:
            plan = memory.plan(replace(request, shard=shard, gpus=gpus))
        except PlanError:
            continue
        allocated, reserved = plan.peak_allocated.value, plan.peak_reserved.value
        rows.append(ShardRow(shard, gpus, round(allocated / _MB, 3), round(reserved / _MB, 3), plan.verdict))
    return rows


def gpus_needed(memory: MemoryPlanner, request: PlanRequest) -> int | None:
    """The least number of GPUs, of 1, 2, 4 ... 64, with which the configuration fits under its kind of sharding, FSDP2
    where it names none; None where none is enough, or the memory is not known."""
    shard = request.shard or "fsdp2"
    for gpus in _RANKS:
        try:
            sharded = replace(request, shard=shard if gpus > 1 else None, gpus=gpus)
            plan = memory.plan(sharded)
        except PlanError:
            return None
        if plan.capacity is None:
            return None
        if plan.fits:
            return gpus
    return None


def stage_rows(view: ProfileView, memory: MemoryPlanner, request: PlanRequest, gpus: int) -> list[StageRow]:
    """The model cut over so many GPUs."""
    program = memory.changed(replace(request, shard=None, gpus=1))
    chosen = {unit.module for unit in units(view, program)}
    modules = [module for module in modules_of(program) if module in chosen]
    return [
        StageRow(list(stage.modules), round(stage.peak_allocated / _MB, 3), round(stage.peak_reserved / _MB, 3))
        for stage in pipeline(program, memory.settings(request), modules, gpus)
    ]


def depth(memory: MemoryPlanner, request: PlanRequest, room: Capacity | None) -> Depth | None:
    """How deep the network can be on the plan's GPU; None where no module is repeated, or the memory is not known."""
    program = memory.changed(request)
    module = repeated_module(program)
    if module is None or room is None:
        return None
    spread = spread_of([*changes_of(memory.view, request), "layers"]).allocated
    try:
        more = most_layers(program, memory.settings(request), module, int(room.least / (1 + spread)))
    except UnknownModule:
        return None
    parent = module.rpartition(".")[0]
    now = sum(path.rpartition(".")[0] == parent for path in modules_of(program))
    return Depth(module, now, more)
