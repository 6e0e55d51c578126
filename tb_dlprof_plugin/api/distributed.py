"""The answers about jobs of many ranks, in Python.

job = tb_dlprof_plugin.distributed("runs/llama")
job.sentence, job.delays[0].rank, job.delays[0].cause
tb_dlprof_plugin.job_table(job, "delays").to_pandas()

tb_dlprof_plugin.compare_jobs("runs/before", "runs/after").sentence
tb_dlprof_plugin.scaling("runs/gpus1", "runs/gpus2", "runs/gpus4").jobs[-1].efficiency
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from os import PathLike, fspath
from pathlib import PurePath
from typing import Any, TypeAlias

from tb_dlprof_plugin.fleet.answers.hang import hang_notes, job_of_dumps
from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.answers.more_gpus import Growth
from tb_dlprof_plugin.fleet.engines import engine_for
from tb_dlprof_plugin.fleet.job import CollectiveRow, Delay, Job, RankAccount, WhatIf
from tb_dlprof_plugin.fleet.job_files import read_job
from tb_dlprof_plugin.fleet.several_jobs.compare_jobs import compare_jobs as comparison_of
from tb_dlprof_plugin.fleet.several_jobs.comparison import (
    CollectiveChange,
    DelayChange,
    JobComparison,
    PartChange,
    RankChange,
)
from tb_dlprof_plugin.fleet.several_jobs.parts import StepParts
from tb_dlprof_plugin.fleet.several_jobs.scaling import ScaledJob, Scaling
from tb_dlprof_plugin.fleet.several_jobs.scaling import scaling as scaling_of
from tb_dlprof_plugin.reports.table import Report

JobSource: TypeAlias = "str | PathLike[str] | Sequence[str | PathLike[str]] | Job"
"""A source of `distributed`, several of them, or what it returned."""
_TABLES: dict[type, dict[str, type]] = {
    Job: {"account": RankAccount, "delays": Delay, "what_if": WhatIf, "collective_rows": CollectiveRow},
    JobComparison: {
        "parts": PartChange,
        "rank_changes": RankChange,
        "delays": DelayChange,
        "collectives": CollectiveChange,
    },
    Scaling: {"jobs": ScaledJob},
}
"""Of each answer its tables, the main one first, with the kind of their rows."""


def distributed(
    *sources: str | PathLike[str], gpus: Sequence[int] = (), network_gb_s: float | None = None, engine: Any = "here"
) -> Job:
    """Where the step of a job goes, who delays whom and why, and what repairs would win.

    Args:
        sources: of one job: a run's directory with its ranks, or traces of its ranks as files, folders and globs. Dumps
            of the flight recorder and files of NCCL Inspector in a folder count, too.
        gpus: numbers of GPUs, multiples of the job's, on which its step is forecast; by default twice and four times as
            many, where the recording shows the links.
        network_gb_s: bus bandwidth of collectives across hosts (GB/s), for a job that was recorded on one host.
        engine: where eight traces or more are read: in this process, in "processes", on Dask; as `import_job` has it.

    Raises:
        ValueError: a path does not exist or holds no recording, a recording cannot be read, or a rank is there twice.
    """
    found = read_job([fspath(source) for source in sources], engine_for(engine))
    if not found.facts and found.dumps:
        return job_of_dumps(found.dumps)
    growth = Growth(tuple(gpus), network_gb_s)
    notes = [*hang_notes(found.dumps), *found.unused]
    return job_of(found.facts, notes, found.numbers, growth, found.unreadable)


def compare_jobs(
    base: JobSource,
    candidate: JobSource,
) -> JobComparison:
    """What changed from one job to another: its step, where it goes, each rank, delays and collectives.

    Args:
        base: a source of `distributed`, several of them, or what it returned. The job that is compared with.
        candidate: the other one, which may have another number of ranks.

    Raises:
        ValueError: a source cannot be read, as in `distributed`, or of a job no step was recorded.
    """
    return comparison_of(_job(base), _job(candidate), names_of_two(base, candidate))


def scaling(*jobs: JobSource) -> Scaling:
    """How a training scales over jobs on different numbers of GPUs: efficiency against the smallest, and its factors.

    Args:
        jobs: each a source of `distributed`, several of them, or what it returned.

    Raises:
        ValueError: a source cannot be read, of a job no step was recorded, or all have as many GPUs.
    """
    read = [(_name(one), _job(one)) for one in jobs]
    return scaling_of([(name or f"{job.world_size} GPUs", job) for name, job in read])


def names_of_two(base: JobSource, candidate: JobSource) -> tuple[str, str]:
    """What to call two jobs in sentences: as their paths end, where these differ."""
    names = _name(base) or "base", _name(candidate) or "candidate"
    return names if names[0] != names[1] else ("base", "candidate")


def _job(source: JobSource) -> Job:
    if isinstance(source, Job):
        return source
    return distributed(source) if isinstance(source, str | PathLike) else distributed(*source)


def _name(source: JobSource) -> str:
    """The last part of the first path; "" of a job, which has no name."""
    if isinstance(source, Job):
        return ""
    first = source if isinstance(source, str | PathLike) else source[0]
    return PurePath(fspath(first)).name or fspath(first)


def job_table(job: Job | JobComparison | Scaling, name: str | None = None) -> Report:
    """A table of an answer, by default its first.

    Of a job "account", "delays", "what_if" or "collective_rows"; of a comparison "parts", "rank_changes", "delays" or
    "collectives"; of a series "jobs".

    Raises:
        ValueError: there is no such table; one sentence that says which there are.
    """
    tables = _TABLES[type(job)]
    name = name or next(iter(tables))
    if name not in tables:
        raise ValueError(f"there is no table {name!r}; there are {', '.join(tables)}")
    columns = _columns(tables[name])
    rows = [_cells(row) for row in getattr(job, name)]
    return Report(columns, rows, dict(zip(columns, columns, strict=True)), tuple(job.notes))


_PARTS = tuple(field.name for field in fields(StepParts))


def _columns(kind: type) -> tuple[str, ...]:
    """Names of the columns of a table; parts of a step are columns of their own."""
    names: list[str] = []
    for field in fields(kind):
        whole = field.type == StepParts.__name__
        names += [_part_name(field.name, part) for part in _PARTS] if whole else [field.name]
    return tuple(names)


def _cells(row: Any) -> tuple[Any, ...]:
    cells: list[Any] = []
    for field in fields(row):
        value = getattr(row, field.name)
        if isinstance(value, StepParts):
            cells += [getattr(value, part) for part in _PARTS]
        else:
            cells.append(_text(value) if isinstance(value, list) else value)
    return tuple(cells)


def _part_name(field: str, part: str) -> str:
    return part if field == "parts" else f"{field}_{part}"


def _text(weighted: list[tuple[int, float]]) -> str:
    """Ranks with their weights, as "0 (0.5), 1 (0.5)"; one alone without."""
    return str(weighted[0][0]) if len(weighted) == 1 else ", ".join(f"{rank} ({weight:g})" for rank, weight in weighted)
