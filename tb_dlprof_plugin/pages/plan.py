"""What a training takes of a GPU's memory, as recorded or in another configuration, and what else would fit.

Sizes are megabytes of 10^6 bytes. What cannot be answered is None, and `unknown` says why.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated

import msgspec

from tb_dlprof_plugin.metrics.energy import energy_missing
from tb_dlprof_plugin.model.formatting import byte_size
from tb_dlprof_plugin.model.plan_request import AUTO, PlanError, PlanQuestion, PlanRequest
from tb_dlprof_plugin.names.gpu_memory import COMMON, UnknownGpu
from tb_dlprof_plugin.pages.columns import Column, Definition, columns_of
from tb_dlprof_plugin.pages.common import SelectedRange, selected_range
from tb_dlprof_plugin.pages.plan_rows import (
    CheckpointRow,
    PlanRow,
    batch_rows,
    checkpoint_rows,
    gpu_rows,
    in_mb,
    in_ms,
    rate_of,
    step_or_reason,
)
from tb_dlprof_plugin.pages.plan_split import Depth, ShardRow, StageRow, depth, gpus_needed, shard_rows, stage_rows
from tb_dlprof_plugin.pages.quantities import ALLOCATOR_MEMORY, GPU_MEMORY, JOULES, PEAK_RESERVED
from tb_dlprof_plugin.planning.energy import NoEnergy, planned_energy
from tb_dlprof_plugin.planning.memory.capacity import Capacity, capacity
from tb_dlprof_plugin.planning.memory.module_choices import frontier
from tb_dlprof_plugin.planning.memory.plan import Bytes, MemoryPlan, MemoryPlanner, planner
from tb_dlprof_plugin.planning.memory.rewrite_batch import input_size
from tb_dlprof_plugin.planning.memory.rewrites import RECORDED, changes_of, check
from tb_dlprof_plugin.planning.memory.step_program import HeldKind, UnknownModule
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef

_GPUS = 2
"""Over how many GPUs the tables share the work where the request does not say."""
_NO_BATCH = "the batch size was not recorded; pass batch_size= to tb_dlprof_plugin.profile."
_HELD = {
    HeldKind.PARAMETER: "parameters",
    HeldKind.BUFFER: "buffers",
    HeldKind.OPTIMIZER_STATE: "optimizer states",
    HeldKind.GRADIENT: "gradients that are kept",
    HeldKind.WORKSPACE: "workspaces of cuBLAS",
    HeldKind.OTHER: "other",
    HeldKind.COMMUNICATION: "buckets of gradients",
}


class PlanFigure(msgspec.Struct, frozen=True):
    """A figure with its interval; ``source`` says what the interval comes from."""

    name: Annotated[str, Column("Memory", "planInterval", width=130)]
    mb: Annotated[float, Column("Likely", "planInterval", unit="bytes")]
    low_mb: Annotated[float, Column("At least", "planInterval")]
    high_mb: Annotated[float, Column("At most", "planInterval")]
    source: str


class HeldRow(msgspec.Struct, frozen=True):
    """What is held between two steps, by kind."""

    kind: str
    mb: Annotated[
        float,
        Definition(
            "planHeld", "Memory that stays from step to step, as asked for; gradients are freed where they can."
        ),
    ]


class PlanPage(msgspec.Struct, frozen=True):
    """The plan of one configuration, and of the tables around it those that were asked for (`PARTS`): others are empty.

    ``gpu_names`` are GPUs to choose from; ``low_mb`` and ``high_mb`` are the ends of ``peak_reserved_mb``; ``figures``
    has all intervals. ``sequence_length`` and ``image_size`` are None where the model has no such input. ``unknown``
    has the reason for each figure that is None, by its field; ``reasons`` are the same in sentences.
    """

    ref: RunRef
    model: str
    headline: str
    range: SelectedRange
    gpu: str
    gpu_names: list[str]
    batch_size: int | None
    sequence_length: int | None
    image_size: int | None
    verdict: str
    fits: bool | None
    peak_allocated_mb: float | None
    peak_reserved_mb: float | None
    low_mb: float | None
    high_mb: float | None
    smallest_limit_mb: float | None
    capacity_mb: Annotated[float | None, ALLOCATOR_MEMORY]
    largest_batch: int | None
    step_ms: float | None
    step_low_ms: float | None
    step_high_ms: float | None
    samples_per_second: float | None
    joules_per_step: Annotated[
        float | None,
        Definition(
            "planJoules",
            "Energy of this process's GPU in a step: measured as recorded, else forecast from its kernels' new times.",
        ),
    ]
    unknown: dict[str, str]
    reasons: list[str]
    batches: list[PlanRow]
    figures: list[PlanFigure]
    held: list[HeldRow]
    gpus: list[PlanRow]
    checkpoints: list[CheckpointRow]
    shards: list[ShardRow]
    stages: list[StageRow]
    gpus_needed: Annotated[
        int | None,
        Definition(
            "planGpusNeeded",
            "The least number of GPUs with which it fits, of 1, 2, 4 ... 64, under FSDP2 where no other is asked for.",
        ),
    ]
    deepest: Depth | None
    assumptions: list[str]


_RECORDED = PlanQuestion()


def what_fits(view: ProfileView, ref: RunRef, selection: Selection, request: PlanQuestion = _RECORDED) -> PlanPage:
    """The plan of a configuration; where it cannot be planned, a page with its controls to choose another one."""
    try:
        return plan_page(view, ref, request)
    except PlanError as error:
        return refused_page(view, ref, str(error))


def plan_page(view: ProfileView, ref: RunRef, question: PlanQuestion) -> PlanPage:
    """The plan of a configuration.

    Args:
        view: the run.
        ref: its name.
        question: the configuration, and the tables to answer with it.

    Raises:
        PlanError: the request is invalid, or names what the run does not have.
    """
    request = question.configuration
    to_fit = request.checkpoint == AUTO
    if to_fit:
        request = replace(request, checkpoint=())
    check(view, request)
    try:
        room = capacity(view, request.gpu, request.memory_bytes)
        memory = planner(view)
    except UnknownGpu as error:
        raise PlanError(str(error)) from None
    except PlanError as error:
        return _nothing(view, ref, request, str(error), question.also)
    try:
        if to_fit and room is not None:
            request = to_fit_with_checkpoints(memory, request)
        return _page(view, ref, request, memory, memory.plan(request), question.also)
    except UnknownModule as error:
        raise PlanError(str(error)) from None


def refused_page(view: ProfileView, ref: RunRef, why: str) -> PlanPage:
    """The page for a configuration that cannot be planned: the reason, and no figure of another one."""
    page = _nothing(view, ref, PlanRequest(), why)
    figures = dict.fromkeys(("step_ms", "step_low_ms", "step_high_ms", "samples_per_second", "joules_per_step"))
    unknown = page.unknown | dict.fromkeys(figures, why)
    return msgspec.structs.replace(
        page, headline=f"Not planned: {why}", unknown=unknown, reasons=reasons(unknown), **figures
    )


def _page(
    view: ProfileView,
    ref: RunRef,
    request: PlanRequest,
    memory: MemoryPlanner,
    plan: MemoryPlan,
    also: Collection[str],
) -> PlanPage:
    unknown: dict[str, str] = {}
    given = input_size(view)
    step = step_or_reason(view, request, unknown)
    joules = _joules(view, request, unknown)
    batch = request.batch_size or view.profile.facts.batch_size
    if plan.capacity is None:
        unknown["capacity_mb"] = unknown["fits"] = "the memory of the run's GPU was not recorded; pass gpu."
    elif plan.fits is None:
        unknown["fits"] = "the GPU's memory lies within the interval of what is needed."
    if batch is None:
        unknown["largest_batch"] = unknown["samples_per_second"] = _NO_BATCH
    elif plan.largest_batch is None:
        unknown["largest_batch"] = "no allocation grows with the batch, or the GPU's memory is not known."
    return PlanPage(
        ref=ref,
        model=view.profile.facts.model or "",
        headline=_headline(plan, batch),
        range=selected_range(view, view.selection()),
        gpu=plan.capacity.gpu if plan.capacity else "",
        gpu_names=list(COMMON),
        batch_size=batch,
        sequence_length=request.sequence_length or given.length,
        image_size=request.image_size or given.side,
        verdict=plan.verdict,
        fits=plan.fits,
        peak_allocated_mb=in_mb(plan.peak_allocated.value),
        peak_reserved_mb=in_mb(plan.peak_reserved.value),
        low_mb=in_mb(plan.peak_reserved.low),
        high_mb=in_mb(plan.peak_reserved.high),
        smallest_limit_mb=in_mb(plan.smallest_limit.value),
        capacity_mb=in_mb(plan.capacity.least) if plan.capacity else None,
        largest_batch=plan.largest_batch,
        step_ms=in_ms(step.ns) if step else None,
        step_low_ms=in_ms(step.low_ns) if step else None,
        step_high_ms=in_ms(step.high_ns) if step else None,
        samples_per_second=rate_of(step, batch, request.accumulate),
        joules_per_step=joules,
        unknown=unknown,
        reasons=reasons(unknown),
        figures=_figures(view, request, plan),
        held=[HeldRow(_HELD[kind], in_mb(size)) for kind, size in plan.held.items()],
        batches=batch_rows(view, memory, request) if "batches" in also else [],
        gpus=gpu_rows(view, memory, request) if "gpus" in also else [],
        checkpoints=checkpoint_rows(view, memory, request) if "checkpoints" in also else [],
        shards=shard_rows(memory, request, max(request.gpus, _GPUS)) if "shards" in also else [],
        stages=stage_rows(view, memory, request, max(request.gpus, _GPUS)) if "stages" in also else [],
        gpus_needed=gpus_needed(memory, request) if "gpus_needed" in also else None,
        deepest=depth(memory, request, plan.capacity) if "deepest" in also else None,
        assumptions=[
            *plan.assumptions,
            *_reserved_before(view, request, plan),
            *_held_back(view, request, plan.capacity),
        ],
    )


def _reserved_before(view: ProfileView, request: PlanRequest, plan: MemoryPlan) -> list[str]:
    """Why the Memory page has more reserved memory than the replay of the same step."""
    recorded = PEAK_RESERVED.value(view, view.selection())
    replayed = plan.peak_reserved
    if recorded is None or recorded <= (1 + RECORDED.reserved) * replayed.value or changes_of(view, request):
        return []
    kept = "its allocator kept memory of earlier steps, such as workspaces that cuDNN tried"
    where = "The interval has it" if recorded <= replayed.high else "The replay begins without it"
    return [f"The run had {byte_size(recorded)} reserved: {kept}. {where}."]


def _held_back(view: ProfileView, request: PlanRequest, room: Capacity | None) -> list[str]:
    """What of the run's own GPU tensors cannot have, and why."""
    total = GPU_MEMORY.value(view, view.selection())
    own = capacity(view)
    if not total or room is None or own is None or request.memory_bytes or room.least != own.least:
        return []
    held = f"Of the GPU's {byte_size(total)}, {byte_size(total - room.least)} are held back for the CUDA context and "
    return [f"{held}libraries: {room.source}."]


def reasons(unknown: Mapping[str, str]) -> list[str]:
    """Why figures are not known, by their names on the page; those of one reason together."""
    named = {column.field: column.declared.heading for column in columns_of(PlanRow)}
    named |= {"fits": named["verdict"], "joules_per_step": JOULES.label}
    named |= dict.fromkeys(("step_low_ms", "step_high_ms"), named["step_ms"])
    by_reason: dict[str, list[str]] = {}
    for field, why in unknown.items():
        by_reason.setdefault(why, []).append(named[field])
    return [f"{', '.join(dict.fromkeys(names))}: {why}" for why, names in by_reason.items()]


def _nothing(view: ProfileView, ref: RunRef, request: PlanRequest, why: str, also: Collection[str] = ()) -> PlanPage:
    """The plan of a run whose memory is not known: its step, and no batch that would fit."""
    unknown = dict.fromkeys(
        ("peak_allocated_mb", "peak_reserved_mb", "smallest_limit_mb", "fits", "largest_batch"), why
    )
    step = step_or_reason(view, request, unknown)
    joules = _joules(view, request, unknown)
    room = capacity(view, request.gpu, request.memory_bytes)
    batch = request.batch_size or view.profile.facts.batch_size
    if batch is None:
        unknown.setdefault("samples_per_second", _NO_BATCH)
    return PlanPage(
        ref=ref, model=view.profile.facts.model or "", headline=f"Not known: {why}",
        range=selected_range(view, view.selection()), gpu=room.gpu if room else "", gpu_names=list(COMMON),
        batch_size=batch, sequence_length=request.sequence_length, image_size=request.image_size, verdict="not known",
        fits=None, peak_allocated_mb=None, peak_reserved_mb=None, low_mb=None, high_mb=None, smallest_limit_mb=None,
        capacity_mb=in_mb(room.least) if room else None, largest_batch=None,
        step_ms=in_ms(step.ns) if step else None, step_low_ms=in_ms(step.low_ns) if step else None,
        step_high_ms=in_ms(step.high_ns) if step else None, samples_per_second=rate_of(step, batch, request.accumulate),
        joules_per_step=joules, unknown=unknown,
        reasons=reasons({field: reason for field, reason in unknown.items() if reason != why}), figures=[], held=[],
        batches=batch_rows(view, None, request) if "batches" in also else [], gpus=[], checkpoints=[],
        shards=[], stages=[], gpus_needed=None, deepest=None, assumptions=[],
    )  # fmt: skip


def _headline(plan: MemoryPlan, batch: int | None) -> str:
    of = f" with batches of {batch:,}" if batch else ""
    takes = (
        f"tensors hold {_size(plan.peak_allocated)} at the peak{of}, the allocator takes {_size(plan.peak_reserved)}"
    )
    if _size(plan.smallest_limit) != _size(plan.peak_reserved):
        takes += f", and {_size(plan.smallest_limit)} would do with retries"
    if plan.capacity is None:
        return f"{takes[0].upper()}{takes[1:]}."
    of_gpu = f"into {byte_size(plan.capacity.least)} of the {plan.capacity.gpu.removeprefix('NVIDIA ')}"
    words = {
        "fits": f"Fits {of_gpu}",
        "fits with retries": f"Fits {of_gpu} only with retries, which wait for the GPU",
        "does not fit": f"Does not fit {of_gpu}",
        "not known": f"May fit {of_gpu}, or not: it lies within the interval",
    }[plan.verdict]
    most = f" At most {plan.largest_batch:,} samples fit." if plan.largest_batch else ""
    return f"{words}: {takes}.{most}"


def _figures(view: ProfileView, request: PlanRequest, plan: MemoryPlan) -> list[PlanFigure]:
    changes = changes_of(view, request)
    source = (
        "replay of the recorded step against what was recorded"
        if not changes
        else (
            f"spread of forecasts with another {', '.join(change.replace('_', ' ') for change in changes)}, "
            "and workspaces at both ends of what they may be"
        )
    )
    rows = (
        ("peak allocated, replayed", plan.peak_allocated),
        ("peak reserved, replayed", plan.peak_reserved),
        ("smallest limit", plan.smallest_limit),
    )
    return [PlanFigure(name, in_mb(size.value), in_mb(size.low), in_mb(size.high), source) for name, size in rows]


def to_fit_with_checkpoints(memory: MemoryPlanner, request: PlanRequest) -> PlanRequest:
    """With the first set of modules, from none on, with which it fits; the last where none does."""
    for point in frontier(memory.view, memory.changed(request), memory.settings(request)):
        tried = replace(request, checkpoint=point.modules)
        if memory.plan(tried).verdict == "fits":
            break
    return tried


def _joules(view: ProfileView, request: PlanRequest, unknown: dict[str, str]) -> float | None:
    try:
        return round(planned_energy(view, request).joules, 5)
    except NoEnergy as error:
        unknown["joules_per_step"] = energy_missing(view) or str(error)
        return None


def _size(figure: Bytes) -> str:
    return byte_size(figure.value)
