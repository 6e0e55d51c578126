"""How a training scales: the same training on several numbers of GPUs, against the smallest.

With work W of a step, N GPUs and step T, efficiency is W / (N T) over that of the smallest job. In weak scaling W / N
is the same in all jobs, in strong scaling W. It is the product of five factors, each over the smallest job's:

    compute    W / (N C)                  work per time in which a GPU computes
    host       C / (C + H)
    transfer   (C + H) / (C + H + X)
    waiting    (C + H + X) / (C + H + X + V)
    bubble     (C + H + X + V) / T

C, H, X, V are the mean parts of the account: compute, host, exposed transfer, waiting. The product of the last four is
the share of the step that computes. POP's factors (https://pop-coe.eu/node/69) multiply in the same way, with maxima
over ranks and an ideal network in place of parts that add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.several_jobs.parts import (
    SAME,
    RelativeWork,
    StepParts,
    WorkBasis,
    flops_per_sample_note,
    mean_parts,
    parts_of,
    relative_work,
)

ScalingKind = Literal["weak", "strong", "mixed", "unknown"]
FACTORS = ("compute", "host", "transfer", "waiting", "bubble")
_LOST = {
    "compute": "GPUs compute more slowly",
    "host": "GPUs idle for the host",
    "transfer": "exposed transfers",
    "waiting": "waiting for other ranks",
    "bubble": "the pipeline's bubble",
}


@dataclass(frozen=True, slots=True)
class ScaledJob:
    """A job of the series; factors are over the smallest job's, whose own are 1.

    Attributes:
        name: of the job.
        gpus: of the job, recorded or not.
        step_ms, low_ms, high_ms: without the profiler.
        work: of a step over the smallest job's; None where the recordings do not show it, and then efficiency, too.
        throughput: work per time over the smallest job's.
        efficiency: throughput by GPU; ``efficiency_low`` and ``efficiency_high`` follow from the steps' intervals.
        compute, host, transfer, waiting, bubble: see the module. ``waiting`` is None where it is part of transfer.
        parts: means over the ranks (ms).
        parallel: parallel efficiency of this job alone, `job.Efficiency`.
        flops_utilization, wasted_gpu_hours_per_day: of this job alone.
    """

    name: str
    gpus: int
    step_ms: float
    low_ms: float
    high_ms: float
    work: float | None
    throughput: float | None
    efficiency: float | None
    efficiency_low: float | None
    efficiency_high: float | None
    compute: float | None
    host: float | None
    transfer: float | None
    waiting: float | None
    bubble: float | None
    parts: StepParts
    parallel: float | None
    flops_utilization: float | None
    wasted_gpu_hours_per_day: float | None


@dataclass(frozen=True, slots=True)
class Scaling:
    """A series of jobs, smallest first. ``by`` is what their work was counted by."""

    sentence: str
    kind: ScalingKind
    by: WorkBasis | None
    jobs: list[ScaledJob]
    notes: list[str]


def scaling(jobs: Sequence[tuple[str, Job]]) -> Scaling:
    """The series of these jobs.

    Args:
        jobs: each with its name.

    Raises:
        ValueError: there are no two numbers of GPUs, or of a job no step was recorded.
    """
    for name, job in jobs:
        if not job.account or job.step is None:
            raise ValueError(f"where the steps of {name} go is not known: no rank recorded a whole step")
    if len({job.world_size for _, job in jobs}) < 2:
        raise ValueError("scaling takes jobs on different numbers of GPUs")
    ordered = sorted(jobs, key=lambda one: one[1].world_size)
    base = ordered[0][1]
    works = [relative_work(base, job) for _, job in ordered]
    known_works = [one for one in works if one is not None]
    known = len(known_works) == len(works)
    parts = [mean_parts((parts_of(row), 1.0) for row in job.account) for _, job in ordered]
    if any(part.waiting_ms is None for part in parts):
        parts = [part.without_waiting for part in parts]
    rows = [
        _row(name, job, base, (own, parts[0]), work if known else None)
        for (name, job), own, work in zip(ordered, parts, works, strict=True)
    ]
    kind = _kind(rows) if known else "unknown"
    by = known_works[-1].by if known else None
    return Scaling(_sentence(kind, by, rows), kind, by, rows, _notes(ordered, rows, known))


def _row(name: str, job: Job, base: Job, parts: tuple[StepParts, StepParts], work: RelativeWork | None) -> ScaledJob:
    assert job.step is not None
    assert base.step is not None
    step, first = job.step, base.step
    factors: dict[str, float | None] = dict.fromkeys(FACTORS)
    efficiency = low = high = throughput = None
    if work is not None:
        throughput = work.ratio * first.ms / step.ms
        per_gpu = work.ratio * base.world_size / job.world_size
        efficiency = per_gpu * first.ms / step.ms
        if job is base:
            low = high = efficiency
        else:
            low = per_gpu * first.low_ms / step.high_ms
            # A forecast's interval can begin at 0: then nothing bounds the efficiency.
            high = per_gpu * first.high_ms / step.low_ms if step.low_ms > 0 else None
        factors = _factors(*parts, per_gpu)
    own = parts[0]
    return ScaledJob(
        name,
        job.world_size,
        step.ms,
        step.low_ms,
        step.high_ms,
        None if work is None else work.ratio,
        throughput,
        efficiency,
        low,
        high,
        **factors,
        parts=own,
        parallel=job.efficiency.parallel,
        flops_utilization=job.efficiency.flops_utilization,
        wasted_gpu_hours_per_day=job.efficiency.wasted_gpu_hours_per_day,
    )


def _factors(own: StepParts, first: StepParts, per_gpu: float) -> dict[str, float | None]:
    """Each part's factor; their product is the efficiency. None for all where a job computes nothing."""
    if not own.compute_ms or not first.compute_ms:
        return dict.fromkeys(FACTORS)
    result: dict[str, float | None] = {"compute": per_gpu * first.compute_ms / own.compute_ms}
    sums = [own.compute_ms, first.compute_ms]
    for part in FACTORS[1:]:
        with_part = [sums[0] + own.of(part), sums[1] + first.of(part)]
        result[part] = (sums[0] / with_part[0]) / (sums[1] / with_part[1])
        sums = with_part
    if own.waiting_ms is None:
        result["waiting"] = None
    return result


def _kind(rows: Sequence[ScaledJob]) -> ScalingKind:
    def alike(values: Sequence[float]) -> bool:
        return max(values) <= min(values) * (1 + SAME)

    work = [row.work or 0.0 for row in rows]
    if alike([value / row.gpus for value, row in zip(work, rows, strict=True)]):
        return "weak"
    return "strong" if alike(work) else "mixed"


_KINDS = {
    "weak": "Weak scaling (each GPU has the same work, by {by})",
    "strong": "Strong scaling (all GPUs together have the same work, by {by})",
    "mixed": "Work grows in another way than the GPUs (by {by})",
}
_WORTH_NAMING = 0.99


def _sentence(kind: ScalingKind, by: WorkBasis | None, rows: Sequence[ScaledJob]) -> str:
    first, last = rows[0], rows[-1]
    if kind == "unknown" or last.efficiency is None:
        return (
            f"A step takes {first.step_ms:.2f} ms on {_gpus(first)} and {last.step_ms:.2f} ms on {_gpus(last)}; how "
            "much work that is is not known, so efficiency is unknown."
        )
    text = (
        f"{_KINDS[kind].format(by=by)}: {_gpus(last)} do {last.throughput:.2f} times the work of {_gpus(first)} per "
        f"time, {100 * last.efficiency:.0f} % efficiency"
    )
    named: list[tuple[float, str]] = []
    for part in FACTORS:
        value = getattr(last, part)
        if value is not None and value < _WORTH_NAMING:
            named.append((value, part))
    losses = [f"{_LOST[part]} (factor {value:.2f})" for value, part in sorted(named)]
    return text + (f"; lost by {', '.join(losses)}." if losses else ".")


def _gpus(row: ScaledJob) -> str:
    return f"{row.gpus} GPU" + ("s" if row.gpus > 1 else "")


def _notes(jobs: Sequence[tuple[str, Job]], rows: Sequence[ScaledJob], known: bool) -> list[str]:
    notes = []
    if not known:
        notes.append(
            "The work of a step is known by the batch size (the hook records it), by FLOPs of matrix products (with "
            "record_shapes=True), or where all GPUs run the very same kernels."
        )
    if rows[0].parts.waiting_ms is None:
        notes.append("Of a rank alone waiting is not known: it is part of the transfer in all jobs.")
    for name, job in jobs:
        if job.missing_ranks:
            notes.append(f"{len(job.missing_ranks)} of {job.world_size} ranks of {name} are missing.")
        different = "" if job is jobs[0][1] else flops_per_sample_note(jobs[0][1], job)
        if different:
            notes.append(f"{name}: {different}")
    return notes
