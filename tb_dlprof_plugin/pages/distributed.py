"""The Distributed page: where a step of the whole job goes, who delays whom and why, and what repairs would win."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Annotated, Any

import msgspec

from tb_dlprof_plugin.fleet.job import Efficiency, Heat, Job, JobStep, RankAccount, VerdictKind, WhatIf, cause_text
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.store.run_ref import RunRef

_NS_PER_MS = 1e6
_MOST_DELAYS = 50
_NO_SAVING = SimpleNamespace(saving_ns=None, saving_low_ns=None, saving_high_ns=None)
_LEAST_SAVED_PERCENT = 0.1
_MOST_COLLECTIVES = 200
_MOST_HEAT_ROWS = 512
"""More ranks share a row of the heat map, which shows the worst of them."""


class JobAccount(msgspec.Struct, frozen=True):
    """Where the step of each rank goes: columns with one entry per rank (ns per step), which add up to ``step_ns``."""

    rank: list[int]
    step_ns: list[int]
    compute_ns: list[int]
    transfer_ns: list[int]
    waiting_ns: list[int | None]
    bubble_ns: list[int]
    host_ns: list[int]


class JobVerdict(msgspec.Struct, frozen=True):
    """Who delays the others, as of `fleet.job.Verdict` (ns per step); the headline has its sentence."""

    kind: VerdictKind
    rank: int | None
    cause: str | None
    late_ns: int | None
    saving_ns: int | None
    saving_low_ns: int | None
    saving_high_ns: int | None
    visible_ns: int | None


class JobDelay(msgspec.Struct, frozen=True):
    """What a rank costs the others (ns per step). What its repair saves is known where ``certain``."""

    rank: Annotated[int, Column("Rank", "The rank where the delay begins.")]
    saving_ns: Annotated[int | None, Column("Saving", "jobSaving", missing="–", bar=True)]
    saving_low_ns: Annotated[int | None, Column("At least", "Lower end of its interval.", missing="–")]
    saving_high_ns: Annotated[int | None, Column("At most", "Upper end of its interval.", missing="–")]
    cause: Annotated[str, Column("Cause", "What makes it late.", width=140)]
    certain: Annotated[
        bool,
        Column("Certain", width=130),
        Definition(
            "jobCertain",
            "Someone is always last. Certain is a delay whose cause was seen in several steps, beyond what even "
            "ranks differ by. Its repair saves at least 1 % of the step.",
        ),
    ]
    caused_waiting_ns: Annotated[
        int,
        Column("Waiting caused"),
        Definition(
            "jobCausedWaiting",
            "GPU time that other ranks wait per step because of this one, counted where the delay began. With "
            "many ranks it is large although repairing the rank saves little.",
        ),
    ]
    host: Annotated[str, Column("Host", "The rank's host, as its recording names it.", width=120)]
    why: Annotated[str, Column("Why", "The figures that the cause rests on.", width=460, terminal=False)]


class JobWhatIf(msgspec.Struct, frozen=True):
    """The job's step after one change (ns)."""

    change: Annotated[str, Column("If", "What is repaired, alone.", width=300)]
    step_ns: Annotated[int, Column("Step", "The job's step then, by replaying all ranks.")]
    low_ns: Annotated[int, Column("At least", "Lower end of the interval.")]
    high_ns: Annotated[int, Column("At most", "Upper end of the interval.")]
    saved_percent: Annotated[float | None, Column("Saved", "Part of the step that it saves.", bar=True, terminal=False)]


class JobCollective(msgspec.Struct, frozen=True):
    """Calls of one operation, dimension, size and module over all ranks; times are means per rank and step (ns)."""

    operation: Annotated[str, Column("Operation", "What the calls do.", choice=True, width=140)]
    dimension: Annotated[str, Column("Dimension", "Parallel dimension of the group.", missing="–", choice=True)]
    size: Annotated[str, Column("Size", "Class of message sizes.", missing="–", choice=True, width=110)]
    module: Annotated[str, Column("Module", "Module or FSDP unit that the calls belong to.", missing="–", width=180)]
    calls_per_step: Annotated[float, Column("Calls", "Calls of a rank per step.", unit="count_per_step")]
    bytes: int | None
    transfer_ns: Annotated[int, Column("Transfer", "jobTransfer")]
    waiting_ns: Annotated[int | None, Column("Waiting", "jobWaiting")]
    exposed_ns: Annotated[
        int,
        Column("Exposed", "Time in which nothing else ran on the GPU, mean of the ranks.", bar=True),
    ]
    bus_bytes_per_second: Annotated[
        float | None,
        Column("Bus bandwidth", unit="bytes_per_second"),
        Definition(
            "jobBus",
            "Bus bandwidth as nccl-tests define it, on the time of the rank that comes last: waiting would look "
            "like a slow network.",
        ),
    ]
    attainable_bytes_per_second: Annotated[
        float | None,
        Column(
            "Attainable",
            "The best bus bandwidth of such calls in this job, or what the link allows.",
            unit="bytes_per_second",
            terminal=False,
        ),
    ]
    verdict: Annotated[
        str,
        Column("Bound by", choice=True, width=130),
        Definition(
            "jobVerdict", "Whether these calls take long because data moves, or because ranks come at different times."
        ),
    ]
    hiding_bytes_per_second: Annotated[
        float | None,
        Column("To hide it", unit="bytes_per_second"),
        Definition(
            "jobHiding",
            "The bus bandwidth at which these calls would be hidden: their transfers would take as long as other "
            "work runs next to them now. Unknown where none does.",
        ),
    ]


class JobHeat(msgspec.Struct, frozen=True):
    """Ranks x iterations: by how many percent each rank worked longer by itself than the median rank, row by row.

    A row is a rank, or several of which the worst is shown: ``first`` and ``last`` are their numbers. None is not
    recorded. ``of_rank`` is the mean over the iterations of each rank of `JobAccount`.
    """

    first: list[int]
    last: list[int]
    iterations: list[int]
    percent: list[float | None]
    of_rank: list[float | None]


class JobDimension(msgspec.Struct, frozen=True):
    """A dimension of the mesh: the place of each rank of `JobAccount` in it."""

    name: str
    size: int
    place: list[int]


class JobFigures(msgspec.Struct, frozen=True):
    """The job in numbers; None is unknown.

    ``parallel_percent`` is how long the steps of the ranks would be by themselves, on average, over the job's step:
    load balance times communication efficiency (POP metrics). The host's time counts, in which the GPU may wait.
    """

    step_ns: int | None
    step_low_ns: int | None
    step_high_ns: int | None
    compute_percent: Annotated[
        float | None,
        Definition("jobComputing", "Mean share of the step in which ranks compute; the table of ranks has the rest."),
    ]
    parallel_percent: float | None
    balance_percent: float | None
    communication_percent: float | None
    wasted_percent: Annotated[
        float | None, Definition("jobWasted", "GPU time of all ranks that a job of even ranks would not take.")
    ]
    wasted_gpu_hours_per_day: float | None
    flops_utilization_percent: float | None
    matched_percent: Annotated[
        float | None,
        Definition(
            "jobMatched", "Collectives that were found on all members of their group, by group and number or order."
        ),
    ]
    clock_us: Annotated[
        float | None,
        Definition(
            "jobClock",
            "How well the clocks of the ranks are aligned, by the ends of collectives. Only drawings need "
            "clocks: every number here comes from durations.",
        ),
    ]
    simulated_error_percent: float | None


class DistributedPage(msgspec.Struct, frozen=True):
    """All ranks of a run together.

    ``ranks`` are recorded, of ``world_size``; ``shown_ranks`` are worth looking at side by side.
    """

    ref: RunRef
    headline: str
    world_size: int
    ranks: int
    missing: str
    verdict: JobVerdict | None
    figures: JobFigures
    account: JobAccount
    delays: list[JobDelay]
    what_if: list[JobWhatIf]
    collectives: list[JobCollective]
    heat: JobHeat | None
    mesh: list[JobDimension]
    shown_ranks: list[int]
    notes: list[str]


def distributed_page(job: Job, ref: RunRef) -> DistributedPage:
    """The page of a job, of which ``ref`` is one rank."""
    return struct_from(
        DistributedPage,
        job,
        ref=ref,
        # Where the step goes is the table below the verdict.
        headline=job.verdict.sentence if job.verdict and job.verdict.kind == "delays" else job.sentence,
        ranks=len(job.ranks),
        missing=_numbers(job.missing_ranks),
        verdict=None if job.verdict is None else struct_from(JobVerdict, job.verdict, in_ns(job.verdict)),
        figures=_figures(job, job.efficiency),
        account=_account(job.account),
        delays=[
            struct_from(
                JobDelay, delay, *(() if delay.certain else (_NO_SAVING,)), in_ns(delay), cause=cause_text(delay.cause)
            )
            for delay in job.delays[:_MOST_DELAYS]
        ],
        what_if=[
            struct_from(
                JobWhatIf,
                repair,
                in_ns(repair),
                saved_percent=_saved_percent(repair, job.step),
            )
            for repair in job.what_if
        ],
        collectives=[
            struct_from(
                JobCollective,
                calls,
                in_ns(calls),
                bus_bytes_per_second=_rate(calls.bus_gb_s),
                attainable_bytes_per_second=_rate(calls.attainable_gb_s),
                hiding_bytes_per_second=_rate(calls.hiding_gb_s),
            )
            for calls in job.collective_rows[:_MOST_COLLECTIVES]
        ],
        heat=_heat(job.heat),
        mesh=[JobDimension(name, max(places, default=0) + 1, places) for name, places in _places(job)],
        shown_ranks=_shown(job),
    )


def _saved_percent(repair: WhatIf, step: JobStep | None) -> float | None:
    """0 for what is less than a tenth of a percent: the error of floating point has a sign."""
    if step is None or not step.ms:
        return None
    saved = 100 * (1 - repair.step_ms / step.ms)
    return saved if abs(saved) >= _LEAST_SAVED_PERCENT else 0.0


def whole_ns(milliseconds: float) -> int:
    """A time in whole ns."""
    return round(milliseconds * _NS_PER_MS)


def in_ns(row: Any) -> SimpleNamespace:
    """The times of a row of a job (``..._ms``) as whole ns (``..._ns``), None where they are unknown."""
    times = {name.removesuffix("_ms"): getattr(row, name) for name in row.__slots__ if name.endswith("_ms")}
    return SimpleNamespace(**{f"{name}_ns": None if ms is None else whole_ns(ms) for name, ms in times.items()})


def _rate(gigabytes: float | None) -> float | None:
    return None if gigabytes is None else gigabytes * 1e9


def as_percent(share: float | None) -> float | None:
    """A share from 0 to 1 in percent."""
    return None if share is None else 100 * share


def _figures(job: Job, efficiency: Efficiency) -> JobFigures:
    step = job.step
    return struct_from(
        JobFigures,
        efficiency,
        job,
        step_ns=whole_ns(step.ms) if step else None,
        step_low_ns=whole_ns(step.low_ms) if step else None,
        step_high_ns=whole_ns(step.high_ms) if step else None,
        compute_percent=as_percent(_computing(job)),
        parallel_percent=as_percent(efficiency.parallel),
        balance_percent=as_percent(efficiency.load_balance),
        communication_percent=as_percent(efficiency.communication),
        wasted_percent=as_percent(efficiency.wasted_gpu_share),
        flops_utilization_percent=as_percent(efficiency.flops_utilization),
        matched_percent=job.collectives.matched_percent,
        clock_us=job.clock.uncertainty_us,
    )


def _computing(job: Job) -> float | None:
    shares = [row.compute_ms / row.step_ms for row in job.account if row.step_ms]
    return sum(shares) / len(shares) if shares else None


def _account(rows: list[RankAccount]) -> JobAccount:
    """Whole ns that still add up: what rounding leaves goes to the largest part."""
    columns: dict[str, list[Any]] = {name: [] for name in JobAccount.__struct_fields__}
    for row in rows:
        waiting = row.waiting_ms or 0.0
        parts = [whole_ns(one) for one in (row.compute_ms, row.transfer_ms, waiting, row.bubble_ms, row.host_ms)]
        step = whole_ns(row.step_ms)
        parts[parts.index(max(parts))] += step - sum(parts)
        values: list[int | None] = [row.rank, step, *parts]
        if row.waiting_ms is None:
            values[4] = None
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value)
    return JobAccount(**columns)


def _heat(heat: Heat | None) -> JobHeat | None:
    if heat is None or not heat.ranks or not heat.iterations:
        return None
    count = len(heat.ranks)
    size = -(-count // _MOST_HEAT_ROWS)
    first, last, percent = [], [], list[float | None]()
    for begin in range(0, count, size):
        rows = heat.percent[begin : begin + size]
        first.append(heat.ranks[begin])
        last.append(heat.ranks[min(begin + size, count) - 1])
        for column in zip(*rows, strict=True):
            waits = [percent_of for percent_of in column if percent_of is not None]
            percent.append(round(max(waits), 1) if waits else None)
    return JobHeat(first, last, heat.iterations, percent, [_mean(row) for row in heat.percent])


def _mean(row: list[float | None]) -> float | None:
    waits = [share for share in row if share is not None]
    return round(sum(waits) / len(waits), 1) if waits else None


def _places(job: Job) -> Iterable[tuple[str, list[int]]]:
    for dimension, (name, _) in enumerate(job.mesh):
        yield name, [places[dimension] for places in job.mesh_places]


def _shown(job: Job) -> list[int]:
    """The late rank, and the ranks that wait least, most, and as much as most do."""
    if len(job.account) < 2:
        return [row.rank for row in job.account]
    by_waiting = sorted(job.account, key=lambda row: (row.waiting_ms or 0.0, row.rank))
    worst = by_waiting[0].rank
    if job.verdict is not None and job.verdict.rank is not None:
        worst = job.verdict.rank
    elif job.delays:
        worst = job.delays[0].rank
    chosen = (worst, by_waiting[0].rank, by_waiting[len(by_waiting) // 2].rank, by_waiting[-1].rank)
    return sorted(dict.fromkeys(chosen))


def _numbers(ranks: list[int]) -> str:
    """Ranks as text, runs of them shortened: 0, 4 to 7."""
    parts: list[str] = []
    begin = 0
    for index in range(1, len(ranks) + 1):
        if index == len(ranks) or ranks[index] != ranks[index - 1] + 1:
            low, high = ranks[begin], ranks[index - 1]
            parts.append(str(low) if low == high else f"{low} to {high}")
            begin = index
    return ", ".join(parts)
