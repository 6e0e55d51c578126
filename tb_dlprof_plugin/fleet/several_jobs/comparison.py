"""What a comparison of two jobs says: the step and its parts, each rank, delays that are gone or new, collectives.

Times are ms per step: of accounts without the profiler, of collectives as recorded. A difference is the candidate minus
the base. Unknown is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tb_dlprof_plugin.fleet.job import Cause, JobStep
from tb_dlprof_plugin.fleet.several_jobs.parts import RelativeWork, StepParts

PairedBy = Literal["mesh", "rank", "share"]


@dataclass(frozen=True, slots=True)
class JobSide:
    """One of the two jobs. ``parallel``, ``wasted_gpu_share`` and ``flops_utilization`` are of `job.Efficiency`."""

    name: str
    world_size: int
    ranks: int
    step: JobStep
    sentence: str
    parallel: float | None
    wasted_gpu_share: float | None
    flops_utilization: float | None


@dataclass(frozen=True, slots=True)
class PartChange:
    """A part of the step, mean over the ranks of each job: the differences add up to that of the step."""

    part: str
    base_ms: float | None
    candidate_ms: float | None
    difference_ms: float | None


@dataclass(frozen=True, slots=True)
class RankChange:
    """A rank of the candidate with its counterpart: ``base_ranks`` with weights where the jobs differ in size."""

    rank: int
    base_ranks: list[tuple[int, float]]
    base: StepParts
    candidate: StepParts
    difference_ms: float


@dataclass(frozen=True, slots=True)
class DelayChange:
    """A rank that delays the others beyond chance in one job or in both; ranks are those of each job.

    ``what`` is gone, new, or stays: the same cause on the counterpart.
    """

    what: Literal["gone", "new", "stays"]
    cause: Cause
    base_rank: int | None
    rank: int | None
    base_saving_ms: float | None
    saving_ms: float | None
    why: str


@dataclass(frozen=True, slots=True)
class CollectiveChange:
    """Calls of one operation, dimension, size class and module, means over the ranks that take part.

    Those of a job that makes no such calls are None; ``difference_ms`` is that of the exposed time.
    """

    operation: str
    dimension: str
    size: str
    module: str
    base_calls_per_step: float | None
    calls_per_step: float | None
    base_transfer_ms: float | None
    transfer_ms: float | None
    base_waiting_ms: float | None
    waiting_ms: float | None
    base_exposed_ms: float | None
    exposed_ms: float | None
    difference_ms: float
    base_bus_gb_s: float | None
    bus_gb_s: float | None


@dataclass(frozen=True, slots=True)
class JobComparison:
    """The answer. ``sentence`` is its first line.

    Attributes:
        difference_ms: of the steps, with its interval: that of either step, added. ``beyond_intervals``: it excludes 0.
        work: of a step of the candidate over one of the base; ``throughput`` is how much more work it does per time.
        paired_by: how ranks were found to correspond.
    """

    sentence: str
    base: JobSide
    candidate: JobSide
    difference_ms: float
    low_ms: float
    high_ms: float
    beyond_intervals: bool
    work: RelativeWork | None
    throughput: float | None
    parts: list[PartChange]
    paired_by: PairedBy
    rank_changes: list[RankChange]
    delays: list[DelayChange]
    collectives: list[CollectiveChange]
    notes: list[str]
