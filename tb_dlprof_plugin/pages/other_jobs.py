"""A job against others, for the page Distributed: what changed from one, and how the training scales."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tb_dlprof_plugin.fleet.job import cause_text
from tb_dlprof_plugin.fleet.several_jobs.comparison import JobComparison, RankChange
from tb_dlprof_plugin.fleet.several_jobs.parts import PARTS, StepParts
from tb_dlprof_plugin.fleet.several_jobs.scaling import ScaledJob, Scaling
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.pages.distributed import as_percent, in_ns, whole_ns
from tb_dlprof_plugin.store.run_ref import RunRef

_MOST_RANKS = 500
_MOST_COLLECTIVES = 200
PART_TITLES = {
    "compute": "Compute",
    "transfer": "Exposed transfer",
    "waiting": "Waiting for ranks",
    "bubble": "Pipeline bubble",
    "host": "Host",
    "step": "Step",
}


class JobPart(msgspec.Struct, frozen=True):
    """A part of the step, mean of all ranks of each job (ns). The differences add up to that of the step, the last
    row."""

    part: Annotated[str, Column("Part", "What the GPU does, mean of all ranks.", width=180)]
    base_ns: Annotated[int | None, Column("Base", "In the other job.")]
    candidate_ns: Annotated[int | None, Column("This job", "In the job of this page.")]
    difference_ns: Annotated[int | None, Column("Change", "The parts add up to the step.", signed=True)]


class JobDelayChange(msgspec.Struct, frozen=True):
    """A rank that delays the others in one of the two jobs, or in both; ns per step."""

    what: Annotated[
        str,
        Column("Delay", width=80),
        Definition(
            "jobDelayChange",
            "Whether the delay is gone, new, or stays: the same cause on the rank at the same place. Only delays "
            "that are too frequent or too long to be chance count.",
        ),
    ]
    rank: Annotated[int, Column("Rank", "Where it begins.")]
    cause: Annotated[str, Column("Cause", "What makes it late.", width=140)]
    base_saving_ns: Annotated[int | None, Column("Base", "jobSaving", missing="–")]
    saving_ns: Annotated[int | None, Column("This job", "jobSaving", missing="–")]
    why: Annotated[str, Column("Why", "The figures that the cause rests on.", width=400)]


class JobRankChange(msgspec.Struct, frozen=True):
    """By how much each part of a rank's step changed (ns); the parts add up to ``step_ns``.

    ``base_ranks`` names the ranks of the base that it is compared with.
    """

    rank: Annotated[int, Column("Rank", "Number of the rank in this job.")]
    base_ranks: Annotated[
        str,
        Column("Against"),
        Definition(
            "jobBaseRanks",
            "Ranks of the base: at the same place of the mesh, else of the same number; in a job of another size "
            "those at the same part of the list of ranks.",
        ),
    ]
    compute_ns: Annotated[int, Column("Compute", "jobCompute", signed=True)]
    transfer_ns: Annotated[int, Column("Transfer", "jobTransfer", signed=True)]
    waiting_ns: Annotated[int | None, Column("Waiting", "jobWaiting", signed=True)]
    bubble_ns: Annotated[int, Column("Bubble", "jobBubble", signed=True)]
    host_ns: Annotated[int, Column("Host", "jobHost", signed=True)]
    step_ns: Annotated[int, Column("Step", "jobStep", signed=True)]


class JobCollectiveChange(msgspec.Struct, frozen=True):
    """Calls of one operation, dimension, size and module before and after: means per rank and step as recorded (ns).

    None where a job makes no such calls.
    """

    operation: Annotated[str, Column("Operation", "What the calls do.", choice=True, width=140)]
    dimension: Annotated[str, Column("Dimension", "Parallel dimension of the group.", missing="–", choice=True)]
    size: Annotated[str, Column("Size", "Class of message sizes.", missing="–", choice=True, width=110)]
    module: Annotated[str, Column("Module", "Module or FSDP unit that the calls belong to.", missing="–", width=180)]
    base_calls: Annotated[
        float | None,
        Column("Base calls", "Calls of a rank per step in the other job.", missing="–", unit="count_per_step"),
    ]
    calls: Annotated[
        float | None,
        Column("Calls", "Calls of a rank per step in this job.", missing="–", unit="count_per_step"),
    ]
    base_transfer_ns: Annotated[int | None, Column("Base transfer", "jobTransfer", missing="–")]
    transfer_ns: Annotated[int | None, Column("Transfer", "jobTransfer", missing="–")]
    base_waiting_ns: Annotated[int | None, Column("Base waiting", "jobWaiting", missing="–")]
    waiting_ns: Annotated[int | None, Column("Waiting", "jobWaiting", missing="–")]
    base_exposed_ns: Annotated[
        int | None,
        Column("Base exposed", "Time in which nothing else ran on the GPU, in the other job.", missing="–"),
    ]
    exposed_ns: Annotated[
        int | None,
        Column("Exposed", "Time in which nothing else ran on the GPU, in this job.", missing="–"),
    ]
    difference_ns: Annotated[int, Column("Change", "Change of the time in which nothing else ran.", signed=True)]


class ScaledRow(msgspec.Struct, frozen=True):
    """A job of a series of sizes; factors are over the smallest job's."""

    job: Annotated[str, Column("Job", "The run that is a job.", width=180)]
    gpus: Annotated[int, Column("GPUs", "How many the job uses.")]
    step_ns: Annotated[int, Column("Step", "jobStep")]
    work: Annotated[
        float | None,
        Column("Work", unit="ratio"),
        Definition("jobWork", "Work of a step over that of the smallest job: samples, else FLOPs, else equal kernels."),
    ]
    throughput: Annotated[float | None, Column("Speed", "Work per time over that of the smallest job.", unit="ratio")]
    efficiency_percent: Annotated[
        float | None,
        Column("Efficiency", bar=True),
        Definition(
            "jobScaling",
            "Work per time and GPU over that of the smallest job: the product of the five factors next to it.",
        ),
    ]
    compute: Annotated[float | None, Column("× compute", "Work per time in which a GPU computes.", unit="ratio")]
    host: Annotated[float | None, Column("× host", "What GPUs that idle for the host change of it.", unit="ratio")]
    transfer: Annotated[float | None, Column("× transfer", "What exposed transfers change of it.", unit="ratio")]
    waiting: Annotated[float | None, Column("× waiting", "What waiting for other ranks changes of it.", unit="ratio")]
    bubble: Annotated[float | None, Column("× bubble", "What the pipeline's bubble changes of it.", unit="ratio")]
    flops_utilization_percent: Annotated[float | None, Column("FLOPs utilization", "jobFlops")]
    wasted_gpu_hours_per_day: float | None


class OtherJobsPage(msgspec.Struct, frozen=True):
    """A job against ``base``, and the series of all jobs that were named where they have several sizes."""

    ref: RunRef
    base: str
    headline: str
    parts: list[JobPart]
    delays: list[JobDelayChange]
    ranks: list[JobRankChange]
    collectives: list[JobCollectiveChange]
    scaling_headline: str
    scaling: list[ScaledRow]
    notes: list[str]


def other_jobs_page(ref: RunRef, found: JobComparison, series: Scaling | None) -> OtherJobsPage:
    """The page of a comparison, and of a series where the jobs have several sizes."""
    notes = [*found.notes, *(note for note in (series.notes if series else ()) if note not in found.notes)]
    return OtherJobsPage(
        ref=ref,
        base=found.base.name,
        headline=found.sentence,
        parts=_parts(found),
        delays=[
            struct_from(
                JobDelayChange,
                delay,
                in_ns(delay),
                rank=(delay.rank if delay.rank is not None else delay.base_rank) or 0,
                cause=cause_text(delay.cause),
            )
            for delay in found.delays
        ],
        ranks=[_rank(row) for row in sorted(found.rank_changes, key=_own_change)[:_MOST_RANKS]],
        collectives=[
            struct_from(
                JobCollectiveChange,
                calls,
                in_ns(calls),
                base_calls=calls.base_calls_per_step,
                calls=calls.calls_per_step,
            )
            for calls in found.collectives[:_MOST_COLLECTIVES]
        ],
        scaling_headline=series.sentence if series else "",
        scaling=[scaled_row(row) for row in series.jobs] if series else [],
        notes=notes,
    )


def _known_ns(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else whole_ns(milliseconds)


def _parts(found: JobComparison) -> list[JobPart]:
    whole = found.base.step.ms, found.candidate.step.ms
    rows = [
        JobPart(PART_TITLES[one.part], _known_ns(one.base_ms), _known_ns(one.candidate_ms), change)
        for one, change in zip(
            found.parts, _adding_up([one.difference_ms for one in found.parts], found.difference_ms), strict=True
        )
    ]
    return [*rows, JobPart(PART_TITLES["step"], whole_ns(whole[0]), whole_ns(whole[1]), whole_ns(found.difference_ms))]


def _adding_up(parts: list[float | None], total: float) -> list[int | None]:
    """Whole ns that still add up: what rounding leaves goes to the largest part."""
    values = [None if one is None else whole_ns(one) for one in parts]
    known = [index for index, one in enumerate(values) if one is not None]
    largest = max(known, key=lambda index: abs(values[index] or 0))
    values[largest] = whole_ns(total) - sum(values[index] or 0 for index in known if index != largest)
    return values


def _difference(row: RankChange) -> dict[str, float | None]:
    def change(part: str, before: StepParts, after: StepParts) -> float | None:
        return None if part == "waiting" and after.waiting_ms is None else after.of(part) - before.of(part)

    return {part: change(part, row.base, row.candidate) for part in PARTS}


def _own_change(row: RankChange) -> tuple[float, int]:
    """Ranks whose own time changed most first: waiting evens out the steps."""
    changes = _difference(row)
    return -abs((changes["compute"] or 0.0) + (changes["host"] or 0.0)), row.rank


def _rank(row: RankChange) -> JobRankChange:
    changes = _difference(row)
    values = dict(zip(PARTS, _adding_up([changes[part] for part in PARTS], row.difference_ms), strict=True))
    listed = [rank for rank, _ in row.base_ranks]
    named = ", ".join(map(str, listed[:4])) + (f" and {len(listed) - 4} more" if len(listed) > 4 else "")
    return JobRankChange(
        row.rank,
        named,
        values["compute"] or 0,
        values["transfer"] or 0,
        values["waiting"],
        values["bubble"] or 0,
        values["host"] or 0,
        whole_ns(row.difference_ms),
    )


def scaled_row(row: ScaledJob) -> ScaledRow:
    """A job of a series; shares in percent."""
    return struct_from(
        ScaledRow,
        row,
        in_ns(row),
        job=row.name,
        efficiency_percent=as_percent(row.efficiency),
        flops_utilization_percent=as_percent(row.flops_utilization),
    )
