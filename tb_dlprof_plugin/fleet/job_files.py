"""A job's ranks from what a user names: a run's directory, folders, globs or files of traces, dumps next to them."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.fleet.engines import Engine, Failure
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.fleet.flight_recorder import FlightRecord, dumps_beside, with_sequences
from tb_dlprof_plugin.fleet.inspected_calls import with_logs
from tb_dlprof_plugin.fleet.nccl_inspector import InspectorLog, logs_beside
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.fleet.stored_facts import facts_of_job
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers import registry
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.trace_names import rank_of_path
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.event_file import read_blobs
from tb_dlprof_plugin.store.logdir import no_such_path, runs_below
from tb_dlprof_plugin.store.remote_copies import path_here

_MAGIC = "*?["
_LEAST_ON_ENGINE = 8
"""Traces: a process starts in the time that a few small ones take."""
_UNNAMED = " A recording that names no rank has that of its name, as rank1.json.gz or rank1/trace.json.gz, or else 0."
_NO_LOG_FITS = (
    "The files of NCCL Inspector are of no recorded rank: no line is of the time of the recording, or none is of the "
    "communicator of all ranks."
)


@dataclass(slots=True)
class JobFiles:
    """What was found of a job.

    Attributes:
        facts: of each rank, by rank.
        numbers: of the steps whose calls are among the facts; None: of all.
        dumps: of the flight recorder, in the folders that were named.
        logs: of NCCL Inspector, there too.
        unreadable: a sentence for each stored rank that cannot be read.
        unused: a sentence for files that were found and are of no recorded rank.
    """

    facts: list[RankFacts] = field(default_factory=list)
    numbers: Ints | None = None
    dumps: list[FlightRecord] = field(default_factory=list)
    logs: list[InspectorLog] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)


def read_job(sources: Iterable[str | Path], engine: Engine | None = None) -> JobFiles:
    """Everything below these paths, which are one job: a run's directory, or traces, as files, folders and globs.

    Sequence numbers that a recording lacks come from dumps of the flight recorder and files of NCCL Inspector, bytes
    and groups from the latter.

    Args:
        sources: the paths.
        engine: where traces are read; by default in this process, one after the other.

    Raises:
        ProfileError: a path does not exist or holds no recording, or there are several runs; one sentence.
        TraceError: a trace cannot be read.
    """
    files, below = JobFiles(), {path: _below(path) for path in _paths(sources)}
    every = [trace for _, traces in below.values() for trace in traces]
    of_trace = _of_trace if engine is None else _read_on(engine, every)
    for path, (runs, traces) in below.items():
        _read(path, runs, traces, files, of_trace)
    dumps = {dump.rank: dump for dump in files.dumps}
    files.facts = sorted(
        (with_sequences(rank, dumps[rank.rank]) if rank.rank in dumps else rank for rank in files.facts),
        key=lambda one: one.rank,
    )
    if files.logs and files.facts:
        files.facts, fitting = with_logs(files.facts, files.logs)
        if not fitting:
            files.unused.append(_NO_LOG_FITS)
    return files


def _paths(sources: Iterable[str | Path]) -> Sequence[Path]:
    paths: list[Path] = []
    for source in sources:
        path = path_here(source)
        if path.exists() or not any(sign in str(source) for sign in _MAGIC):
            paths.append(path)
            continue
        matching = sorted(glob.glob(str(source), recursive=True))
        if not matching:
            raise ProfileError(f"No file matches {source}.")
        paths += map(Path, matching)
    return list(dict.fromkeys(paths))


def _below(path: Path) -> tuple[dict[str, list[Path]], list[Path]]:
    """The runs of a path; its traces where it holds none."""
    if not path.exists():
        raise ProfileError(no_such_path(path))
    if path.is_file() and "tfevents" not in path.name:
        return {}, [path]
    runs = runs_below(path)
    return runs, [] if runs else registry.files_below(path)


def _read(
    path: Path,
    runs: dict[str, list[Path]],
    traces: Sequence[Path],
    found: JobFiles,
    of_trace: Callable[[Path], list[RankFacts]],
) -> None:
    if path.is_dir():
        found.dumps += dumps_beside(path)
        found.logs += logs_beside(path)
    if runs:
        if len(runs) > 1:
            names = sorted(runs)
            listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            raise ProfileError(f"{path} holds {len(runs)} runs; name one of them: {listed}.")
        ((run, files),) = runs.items()
        stored = facts_of_job((blob for file in files for blob in read_blobs(file, run)), len(files))
        found.facts += stored.facts
        found.unreadable += stored.unreadable
        found.numbers = stored.numbers
        return
    if not traces and not found.dumps:
        raise ProfileError(f"{path} holds neither profiles nor traces.")
    of_rank: dict[int, Path] = {}
    for trace in traces:
        facts = of_trace(trace)
        for one in facts:
            other = of_rank.setdefault(one.rank, trace)
            if other != trace:
                first, second = (one.relative_to(path) for one in (other, trace))
                what = "recordings"
                if first.parent != second.parent:
                    first, second, what = first.parent, second.parent, "folders"
                unnamed = all(rank_of_path(str(one)) is None for one in (other, trace))
                raise ProfileError(
                    f"{path} holds rank {one.rank} several times, in {first} and in {second}; name one of these {what}"
                    f"{'' if what == 'folders' else ' for each rank'}.{_UNNAMED if unnamed else ''}"
                )
        found.facts += facts


def _read_on(engine: Engine, traces: Sequence[Path]) -> Callable[[Path], list[RankFacts]]:
    """`_of_trace` of traces that an engine has read by now; few are read when they are asked for."""
    if len(traces) < _LEAST_ON_ENGINE:
        return _of_trace
    results = dict(engine.map_unordered(_result, traces))

    def of_trace(path: Path) -> list[RankFacts]:
        result = results[path]
        if isinstance(result, list):
            return result
        raise TraceError(f"{path} cannot be read: {result.why}." if isinstance(result, Failure) else result)

    return of_trace


def _result(path: Path) -> list[RankFacts] | str:
    """In a worker: the facts of all ranks that a recording holds, or why it cannot be read."""
    try:
        return _of_trace(path)
    except TraceError as error:
        return str(error)


def _of_trace(path: Path) -> list[RankFacts]:
    """Of all ranks that a recording holds."""
    return [facts_of_profile(ProfileView(profile)) for profile in analyze_ranks(path)]
