"""The tables around a plan: other batch sizes, other GPUs, sets of checkpoints."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import msgspec

from tb_dlprof_plugin.model.plan_request import PlanRequest
from tb_dlprof_plugin.names.gpu_memory import COMMON, DESKTOP
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.pages.quantities import ALLOCATOR_MEMORY
from tb_dlprof_plugin.planning.memory.capacity import capacity
from tb_dlprof_plugin.planning.memory.module_choices import frontier
from tb_dlprof_plugin.planning.memory.plan import MemoryPlanner
from tb_dlprof_plugin.planning.memory.step_time import NoStepTime, StepTime, step_time
from tb_dlprof_plugin.profile_view import ProfileView

_MB = 1e6
_MS = 1e6
_FACTORS = (0.25, 0.5, 1, 2, 4, 8, 16)


class PlanRow(msgspec.Struct, frozen=True):
    """One configuration of the tables: a batch size on the run's GPU, or the plan's batch size on another GPU.

    ``verdict`` is "fits", "fits with retries", "does not fit" or "not known".
    """

    gpu: Annotated[
        str,
        Column("GPU", width=150),
        Definition(
            "planGpu",
            "With the memory of its data sheet, less what error correction and a CUDA context may take. The run's "
            "own GPU has what the run read; kernels may use other workspaces on another.",
        ),
    ]
    batch_size: Annotated[int | None, Column("Batch", "planBatch")]
    peak_allocated_mb: Annotated[float | None, Column("Peak allocated, replayed", "planPeakAllocated")]
    peak_reserved_mb: Annotated[float | None, Column("Peak reserved, replayed", "planPeakReserved")]
    smallest_limit_mb: Annotated[float | None, Column("Smallest limit", "planSmallestLimit")]
    capacity_mb: Annotated[float | None, Column(), ALLOCATOR_MEMORY]
    verdict: Annotated[str, Column("Fits", "planVerdict", width=120)]
    largest_batch: Annotated[int | None, Column("Largest batch", "planLargestBatch")]
    step_ms: Annotated[float | None, Column("Step", "planStep")]
    samples_per_second: Annotated[float | None, Column("Samples/s", "The batch size over the step time.")]


class CheckpointRow(msgspec.Struct, frozen=True):
    """A set of modules under activation checkpointing: memory against time."""

    modules: Annotated[
        list[str],
        Column("Checkpointed", missing="none", width=220),
        Definition(
            "planCheckpoints",
            "Modules whose forward pass is computed again before their backward pass, in place of keeping what it "
            "made. Each row adds the module that keeps most bytes per time of its forward pass.",
        ),
    ]
    peak_allocated_mb: Annotated[float, Column("Peak allocated, replayed", "planPeakAllocated")]
    peak_reserved_mb: Annotated[float, Column("Peak reserved, replayed", "planPeakReserved")]
    step_ms: Annotated[float | None, Column("Step", "planStep")]


def batch_rows(view: ProfileView, memory: MemoryPlanner | None, request: PlanRequest) -> list[PlanRow]:
    """Multiples of the recorded batch on the plan's GPU; without a planner their step times alone."""
    recorded = view.profile.facts.batch_size
    if not recorded:
        return []
    sizes = sorted({max(1, int(recorded * factor)) for factor in _FACTORS} | {request.batch_size or recorded})
    return [_row(view, memory, replace(request, batch_size=size)) for size in sizes]


def gpu_rows(view: ProfileView, memory: MemoryPlanner, request: PlanRequest) -> list[PlanRow]:
    """The configuration on GPUs of the table, with the largest batch on each."""
    requests = [replace(request, gpu=name, memory_bytes=None) for name in (*COMMON, *DESKTOP)]
    return [_row(view, memory, one, largest=True) for one in requests]


def _row(view: ProfileView, memory: MemoryPlanner | None, request: PlanRequest, largest: bool = False) -> PlanRow:
    plan = memory.plan(request) if memory is not None else None
    room = plan.capacity if plan is not None else capacity(view, request.gpu, request.memory_bytes)
    step = step_or_reason(view, request, {})
    batch = request.batch_size or view.profile.facts.batch_size
    return PlanRow(
        gpu=room.gpu if room else "",
        batch_size=batch,
        peak_allocated_mb=in_mb(plan.peak_allocated.value) if plan else None,
        peak_reserved_mb=in_mb(plan.peak_reserved.value) if plan else None,
        smallest_limit_mb=in_mb(plan.smallest_limit.value) if plan else None,
        capacity_mb=in_mb(room.least) if room else None,
        verdict=plan.verdict if plan else "not known",
        largest_batch=plan.largest_batch if plan and largest else None,
        step_ms=in_ms(step.ns) if step else None,
        samples_per_second=rate_of(step, batch, request.accumulate),
    )


def checkpoint_rows(view: ProfileView, memory: MemoryPlanner, request: PlanRequest) -> list[CheckpointRow]:
    """Of the recorded step with the request's other changes."""
    other = replace(request, checkpoint=())
    points = frontier(view, memory.changed(other), memory.settings(other))
    return [
        CheckpointRow(
            list(point.modules),
            in_mb(point.peak_allocated),
            in_mb(point.peak_reserved),
            in_ms(step.ns) if (step := step_or_reason(view, replace(request, checkpoint=point.modules), {})) else None,
        )
        for point in points
    ]


def step_or_reason(view: ProfileView, request: PlanRequest, unknown: dict[str, str]) -> StepTime | None:
    """The planned step; None if it is unknown, with the reason in ``unknown``."""
    try:
        return step_time(view, request)
    except NoStepTime as error:
        unknown["step_ms"] = str(error)
        unknown.setdefault("samples_per_second", str(error))
        return None


def rate_of(step: StepTime | None, batch: int | None, accumulate: int = 1) -> float | None:
    """Samples per second; None if step or batch size is unknown."""
    return round(accumulate * batch * 1e9 / step.ns, 2) if step and step.ns and batch else None


def in_mb(size: float) -> float:
    """Bytes in MB."""
    return round(size / _MB, 3)


def in_ms(ns: float) -> float:
    """Nanoseconds in ms."""
    return round(ns / _MS, 4)
