"""The answers about a job of many ranks, in Python.

job = tb_dlprof_plugin.distributed("runs/llama")
job.sentence, job.delays[0].rank, job.delays[0].cause
tb_dlprof_plugin.job_table(job, "delays").to_pandas()
"""

from __future__ import annotations

from dataclasses import asdict, fields
from os import PathLike, fspath

from tb_dlprof_plugin.fleet.answers.hang import hang_notes, job_of_dumps
from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.job import CollectiveRow, Delay, Job, RankAccount, WhatIf
from tb_dlprof_plugin.fleet.job_files import read_job
from tb_dlprof_plugin.reports.table import Report

_TABLES = {"account": RankAccount, "delays": Delay, "what_if": WhatIf, "collective_rows": CollectiveRow}


def distributed(*sources: str | PathLike[str]) -> Job:
    """Where the step of a job goes, who delays whom and why, and what repairs would win.

    Args:
        sources: of one job: a run's directory with its ranks, or traces of its ranks as files, folders and globs. Dumps
            of the flight recorder and files of NCCL Inspector in a folder count, too.

    Raises:
        ValueError: a path does not exist or holds no recording, a recording cannot be read, or a rank is there twice.
    """
    found = read_job([fspath(source) for source in sources])
    if not found.facts and found.dumps:
        return job_of_dumps(found.dumps)
    return job_of(found.facts, [*hang_notes(found.dumps), *found.unreadable, *found.unused], found.numbers)


def job_table(job: Job, name: str | None = None) -> Report:
    """A table of a job: "account" (the default), "delays", "what_if" or "collective_rows".

    Raises:
        ValueError: there is no such table; one sentence that says which there are.
    """
    name = name or "account"
    if name not in _TABLES:
        raise ValueError(f"there is no table {name!r}; there are {', '.join(_TABLES)}")
    columns = tuple(field.name for field in fields(_TABLES[name]))
    rows = [tuple(asdict(row).values()) for row in getattr(job, name)]
    return Report(columns, rows, dict(zip(columns, columns, strict=True)), tuple(job.notes))
