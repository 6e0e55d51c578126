"""The part of ``tb-dlprof import`` that takes the recordings of a job's ranks, wherever they are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.options import Output, OutputFormat, Printing
from tb_dlprof_plugin.cli.progress import Progress
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model import addresses
from tb_dlprof_plugin.model.addresses import AddressError
from tb_dlprof_plugin.model.request import Option, Request
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.readers.options import Markers, ReadOptions

if TYPE_CHECKING:
    from tb_dlprof_plugin.api.import_job import ImportedRecording, ImportedRun

_MOST_NAMED = 5
"""Recordings that could not be imported, of a run."""


class EngineName(str, Enum):
    """Where the work on a job's recordings is done."""

    processes = "processes"
    dask = "dask"
    here = "here"


@dataclass(frozen=True, kw_only=True)
class ImportOptions(Request):
    """Which runs recordings become, and how they are read."""

    logdir: Annotated[Path, Option("TensorBoard's log directory for the runs; of a job also an address.")]
    run: Annotated[
        str | None,
        Option("Name of one run for all traces; by default one run for each trace, named after its file."),
    ] = None
    force: Annotated[bool, Option("Replace the profiles that the run has. Runs below it and all other files stay.")] = (
        False
    )
    rank: Annotated[int | None, Option("Rank; the traces' own by default.")] = None
    facts_from: Annotated[
        Path | None, Option("Event file of the same run: keep the facts that the hook recorded in it.")
    ] = None
    pytorch_views: Annotated[
        bool, Option("Also write a trace that the PyTorch Profiler tab can read into the run.")
    ] = False
    model: Annotated[
        str | None,
        Option("Name of the model, by which runs are grouped and compared, where recordings do not say it."),
    ] = None
    markers: Annotated[
        Markers, Option("Which convention the NVTX ranges of a recording follow: it says which of them are ops.")
    ] = Markers.AUTO
    torch_trace: Annotated[
        Path | None,
        Option("Folder of TORCH_TRACE of the same run: it explains the kernels of torch.compile and of CUDA graphs."),
    ] = None
    engine: Annotated[
        EngineName | None, Option("Import a job: each folder of recordings is one run. Where the work is done.")
    ] = None
    workers: Annotated[int | None, Option("Of a job: processes; by default one for each CPU.", least=1)] = None
    scheduler: Annotated[
        str | None, Option("Of a job: a Dask scheduler's address, or its file.", metavar="ADDRESS")
    ] = None
    output: Output = OutputFormat.text


class JobRecording(msgspec.Struct, frozen=True):
    """A recording of a job; ``ranks`` and ``event_files`` are empty where it could not be read, for the reason in
    ``error``."""

    run: str
    recording: str
    ranks: list[int]
    iterations: int | None
    event_files: list[str]
    earlier: bool
    error: str


class JobRun(msgspec.Struct, frozen=True):
    """A run of a job, and the ranks that have no profile in it."""

    run: str
    ranks: int
    missing_ranks: list[int]


class ImportedJob(msgspec.Struct, frozen=True):
    """Every run and every recording of a job."""

    profiles: list[JobRecording]
    runs: list[JobRun]


def is_job(named: Sequence[Path], options: ImportOptions) -> bool:
    """Whether a command's arguments name a job: an engine, a pattern or an address."""
    texts = [addresses.with_slashes(os.fspath(path)) for path in (*named, options.logdir)]
    asked = any(value is not None for value in (options.engine, options.workers, options.scheduler))
    return asked or any(addresses.is_remote(text) or addresses.is_pattern(text) for text in texts)


def import_a_job(recordings: Sequence[Path], options: ImportOptions) -> None:
    """Imports a job and prints the result; ends the command with status 2 where a recording failed."""
    from tb_dlprof_plugin.api.import_job import import_job
    from tb_dlprof_plugin.cli.printing import print_page
    from tb_dlprof_plugin.fleet.engines import EngineError

    without = {
        "--rank": options.rank, "--facts-from": options.facts_from, "--pytorch-views": options.pytorch_views,
        "--torch-trace": options.torch_trace,
    }  # fmt: skip
    refused = [name for name, value in without.items() if value is not None and value is not False]
    if refused:
        refuse(f"{refused[0]} is for single recordings; leave it out, or name a file without --engine")
    try:
        with Progress(Path("recordings"), "importing") as progress:
            runs = import_job(
                recordings,
                options.logdir,
                engine=None if options.engine is None else options.engine.value,
                workers=options.workers,
                scheduler=options.scheduler,
                run=options.run,
                force=options.force,
                options=ReadOptions(options.markers),
                progress=lambda done, of: progress.update(done / of),
            )
    except (AddressError, EngineError) as error:
        refuse(error)
    if options.output.is_text:
        for one in runs:
            for line in _lines(one):
                say(line)
    else:
        print_page(_page(runs), Printing(output=options.output))
    if any(recording.error for one in runs for recording in one.recordings):
        raise typer.Exit(2)


def _page(runs: Sequence[ImportedRun]) -> ImportedJob:
    return ImportedJob(
        profiles=[_row(recording) for one in runs for recording in one.recordings],
        runs=[JobRun(one.name, len(one.ranks), one.missing_ranks) for one in runs],
    )


def _row(recording: ImportedRecording) -> JobRecording:
    ranks = [] if recording.error else list(recording.ranks)
    return struct_from(
        JobRecording, recording, recording=recording.address, ranks=ranks, event_files=list(recording.event_files)
    )


def _lines(run: ImportedRun) -> list[str]:
    """The result for a run, in words."""
    failed = [one for one in run.recordings if one.error]
    earlier = sum(one.earlier for one in run.recordings)
    ranks, missing = run.ranks, run.missing_ranks
    line = f"{run.name}: {_count(len(ranks), 'rank')}"
    if missing:
        line += f" of {len(ranks) + len(missing)}; missing: {_ranges(missing)}"
    line += f". {_count(len(run.recordings) - len(failed), 'recording')} imported"
    line += f", {earlier} of them earlier." if earlier else "."
    lines = [line]
    lines += [f"  {one.address}: {one.error}" for one in failed[:_MOST_NAMED]]
    if len(failed) > _MOST_NAMED:
        lines.append(f"  and {len(failed) - _MOST_NAMED} more; --format json has them all.")
    return lines


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _ranges(ranks: Sequence[int]) -> str:
    """Such as "3, 8-15 and 40 more"."""
    ranges: list[list[int]] = []
    for rank in ranks:
        if ranges and ranges[-1][1] == rank - 1:
            ranges[-1][1] = rank
        else:
            ranges.append([rank, rank])
    named = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:_MOST_NAMED]]
    left = sum(last - first + 1 for first, last in ranges[_MOST_NAMED:])
    return ", ".join(named) + (f" and {left} more" if left else "")
