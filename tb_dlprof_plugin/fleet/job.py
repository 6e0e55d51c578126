"""The answers about a job, as `tb-dlprof distributed` prints them and the page Distributed shows them: ms per step.

Unknown is None, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Cause = Literal[
    "slow_gpu",
    "slow_host",
    "slow_input",
    "uneven_data",
    "uneven_stage",
    "garbage_collection",
    "slow_link",
    "expert_load",
    "unknown",
]


def cause_text(cause: str) -> str:
    """A cause as a page shows it: "slow GPU" of "slow_gpu"."""
    return cause.replace("_", " ").replace("gpu", "GPU")


@dataclass(frozen=True, slots=True)
class JobStep:
    """The job's step without the profiler, one length for all ranks. ``source`` as of a rank's estimate."""

    ms: float
    low_ms: float
    high_ms: float
    source: str

    @property
    def is_step(self) -> bool:
        """Whether steps were marked, as of `StepEstimate`: else it is the whole recording."""
        return self.source != "whole"


@dataclass(frozen=True, slots=True)
class RankAccount:
    """Exposed parts of a rank's step: they add up to ``step_ms`` (scaled to the step without the profiler).

    ``waiting_ms`` is None where no collective was found on another rank: it is in ``transfer_ms`` then.
    """

    rank: int
    step_ms: float
    compute_ms: float
    transfer_ms: float
    waiting_ms: float | None
    bubble_ms: float
    host_ms: float


@dataclass(frozen=True, slots=True)
class Delay:
    """What a rank costs the others.

    Attributes:
        caused_waiting_ms: GPU time per step that other ranks wait because of this one, charged to the root cause.
        saving_ms: by how much the job's step gets shorter if this rank alone is as fast as the next, with its interval.
        cause: see `Cause`; ``why`` says it in a sentence with the figures it rests on.
        certain: too often or too much to be chance, and its cause was seen.
        host: of the rank, "" where unknown.
    """

    rank: int
    caused_waiting_ms: float
    saving_ms: float
    saving_low_ms: float
    saving_high_ms: float
    cause: Cause
    why: str
    certain: bool
    host: str = ""


VerdictKind = Literal["delays", "hidden", "none", "unknown"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who delays the others: one answer, for page, command, rule, exit code and JSON.

    Attributes:
        kind: "delays": a rank does, and its repair shortens the step. "hidden": a rank is late, but the others are no
            sooner, or may not be, as fast as hosts are. "none": no rank is late beyond chance. "unknown": the
            recordings do not say.
        sentence: the verdict, with its reason and, where it is unknown, what to do.
        rank, cause: of the rank that is late.
        late_ms: by how much it takes longer than the others in a step, whether they wait for it or not.
        saving_ms, saving_low_ms, saving_high_ms: as of its `Delay`.
        visible_ms: a delay of as much or more would have been named; None where a rank is named, or nothing is known.
    """

    kind: VerdictKind
    sentence: str
    rank: int | None = None
    cause: Cause | None = None
    late_ms: float | None = None
    saving_ms: float | None = None
    saving_low_ms: float | None = None
    saving_high_ms: float | None = None
    visible_ms: float | None = None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The job's step after one change."""

    change: str
    step_ms: float
    low_ms: float
    high_ms: float


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """Calls of one operation, group dimension, size class and module, over all ranks.

    Attributes:
        waiting_ms: None where no other member of synchronising calls was recorded: it is in ``transfer_ms`` then.
        verdict: transfer-bound, skew-bound, mixed or inconclusive.
        hiding_gb_s: the bus bandwidth at which transfers would take as long as other work runs next to them now; None
            where no other work does, or the bandwidth is unknown.
        bus_gb_s: on the last arriver's time. attainable_gb_s: the best of the same kind in this job, or the GPU's link.
    """

    operation: str
    dimension: str
    size: str
    module: str
    calls_per_step: float
    bytes: int | None
    transfer_ms: float
    waiting_ms: float | None
    exposed_ms: float
    bus_gb_s: float | None
    attainable_gb_s: float | None
    verdict: str
    hiding_gb_s: float | None = None


@dataclass(frozen=True, slots=True)
class MatchedShare:
    """How many collectives were found on all members. ``by``: "sequence" or "order" (aligned, validated)."""

    total: int = 0
    matched: int = 0
    matched_percent: float | None = None
    contradictions: int = 0
    by: str = "order"


@dataclass(frozen=True, slots=True)
class Clocks:
    """Offsets of the ranks' clocks to rank 0's component (us), and their uncertainty."""

    uncertainty_us: float | None = None
    offsets_us: dict[int, float] = field(default_factory=dict)
    components: int = 0


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Factors of the POP metrics (0 to 1), from one job.

    ``flops_utilization`` is what the matrix products of a step are of the GPUs' BF16 peak over the step, 0 to 1:
    Chowdhery et al., PaLM (https://arxiv.org/abs/2204.02311), call it HFU, because recomputed products count; without
    recomputation it is MFU. ``wasted_gpu_share`` is known where the verdict names a rank, and
    ``wasted_gpu_hours_per_day`` is that share of all GPUs' hours.
    """

    parallel: float | None = None
    load_balance: float | None = None
    communication: float | None = None
    serialisation: float | None = None
    transfer: float | None = None
    wasted_gpu_share: float | None = None
    flops_utilization: float | None = None
    wasted_gpu_hours_per_day: float | None = None


@dataclass(frozen=True, slots=True)
class PipelineShape:
    """Of a job with several pipeline stages; ``microbatches`` of a step, None where no call shows them.

    ``bubble_percent`` is the share of the recorded step in which ranks wait for other stages, ``formula_percent`` that
    of even stages with these microbatches. ``chunks`` of the model are on each rank: several where stages are
    interleaved.
    """

    stages: int
    microbatches: int | None
    bubble_percent: float
    formula_percent: float | None
    chunks: int = 1


@dataclass(frozen=True, slots=True)
class JobWork:
    """What all ranks together do in a step, to compare jobs by. None where it is not recorded.

    Attributes:
        samples: batch sizes of the ranks that read data of their own: those of a tensor, context or pipeline parallel
            group read the same.
        flops: of matrix products whose shapes were recorded, the mean of the recorded ranks times all ranks.
        kernels: hash of kernels and shapes, where it is equal on all ranks and in all steps.
    """

    samples: float | None
    flops: float | None
    kernels: int | None


@dataclass(frozen=True, slots=True)
class Heat:
    """Ranks x iterations: by how many percent the rank worked longer by itself than the median rank of the iteration.

    That is compute, copies and the host, no communication; None where the rank did not record the iteration.
    """

    ranks: list[int]
    iterations: list[int]
    percent: list[list[float | None]]


@dataclass(frozen=True, slots=True)
class Job:
    """Everything about a job. ``sentence`` is its first line; ``notes`` say what cannot be known and why.

    ``verdict`` is None where there is one rank only.

    ``mesh`` has name and size of each dimension, ``mesh_places`` each rank's place in them, -1 where unknown.
    """

    world_size: int
    ranks: list[int]
    missing_ranks: list[int]
    sentence: str
    verdict: Verdict | None = None
    step: JobStep | None = None
    account: list[RankAccount] = field(default_factory=list)
    delays: list[Delay] = field(default_factory=list)
    what_if: list[WhatIf] = field(default_factory=list)
    simulated_error_percent: float | None = None
    collectives: MatchedShare = field(default_factory=MatchedShare)
    collective_rows: list[CollectiveRow] = field(default_factory=list)
    clock: Clocks = field(default_factory=Clocks)
    efficiency: Efficiency = field(default_factory=Efficiency)
    heat: Heat | None = None
    mesh: list[tuple[str, int]] = field(default_factory=list)
    mesh_places: list[tuple[int, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pipeline: PipelineShape | None = None
    work: JobWork | None = None
