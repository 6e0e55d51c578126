"""Imports the recordings of a job's ranks, from any file system to any, on any engine.

The recordings of one folder become one run, whose name is the folder's path below the fixed part of the pattern. Each
is read, analysed and written where a worker runs; a worker gives back a few hundred bytes. An event file's name holds a
hash of everything it is made from, and its content depends on nothing else: a second import does what is missing, and
all engines write the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.fleet.engines import Failure, engine_for
from tb_dlprof_plugin.fleet.run_writer import facts_beside
from tb_dlprof_plugin.fleet.world import missing_of, world_of
from tb_dlprof_plugin.model import addresses
from tb_dlprof_plugin.model.addresses import AddressError, Listed
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.options import DEFAULT, ReadOptions
from tb_dlprof_plugin.readers.trace_names import RECORDING_ENDINGS, rank_of_path, run_folder, stem_of
from tb_dlprof_plugin.store.code_version import code_version
from tb_dlprof_plugin.store.codec import encode
from tb_dlprof_plugin.store.event_file import event_file_content, event_file_name
from tb_dlprof_plugin.store.run_folder import RunFolderError, run_name_parts

_MADE_BY = re.compile(
    r"events\.out\.tfevents\.\d+\.\d+\.rank(\d+)of(\d+)\.import-([0-9a-f]{16})-([0-9a-f]{16})-(\d+)of(\d+)\.tb_dlprof"
)
"""In an event file's name: rank, world size (0: unknown), hashes of the recording's address and of all it is made from,
and which it is of the recording's profiles."""
_PER_FILE_NS = 1_000_000_000
_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class ImportedRecording:
    """A recording and the result of its import.

    Attributes:
        ranks: of the recording; where it could not be read, the one in its name, if there is one.
        world_size: as recorded; None where it is not.
        event_files: addresses of the profiles, one for each rank in it.
        iterations: of the first rank; None where an earlier import made it, and where it was not read.
        earlier: it was there already, from an import before.
        error: why there is no profile; "" where there is one.
        died: its task did: the worker was killed or lost, each time.
    """

    address: str
    run: str
    ranks: tuple[int, ...]
    world_size: int | None = None
    event_files: tuple[str, ...] = ()
    iterations: int | None = None
    earlier: bool = False
    error: str = ""
    died: bool = False


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """A run of an import.

    Attributes:
        missing_ranks: of the world that the recordings name, else of the recordings that could not be read.
    """

    name: str
    recordings: tuple[ImportedRecording, ...]

    @property
    def ranks(self) -> list[int]:
        """Ranks with a profile."""
        return sorted({rank for one in self.recordings if not one.error for rank in one.ranks})

    @property
    def missing_ranks(self) -> list[int]:
        """Ranks without one."""
        have = set(self.ranks)
        world = world_of((one.world_size for one in self.recordings), ())
        named = {rank for one in self.recordings if one.error for rank in one.ranks}
        return sorted({*missing_of(world, have), *named} - have)


@dataclass(frozen=True, slots=True)
class _ImportTask:
    """What a worker needs; pickled."""

    source: Listed
    run: str
    folder: str
    session: str
    cycle: int
    at_ns: int
    key: str
    options: ReadOptions

    @property
    def identity(self) -> str:
        """Of the recording, whatever it holds now."""
        return _hash([self.source.address])


def import_job(
    recordings: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    logdir: str | os.PathLike[str],
    *,
    engine: Any = None,
    workers: int | None = None,
    scheduler: Any = None,
    run: str | None = None,
    force: bool = False,
    options: ReadOptions = DEFAULT,
    progress: Callable[[int, int], None] | None = None,
) -> list[ImportedRun]:
    """Imports the recordings of a job's ranks as runs of a log directory, one for each folder.

    Args:
        recordings: paths, directories, patterns ("traces/*/rank*.json.gz") or addresses ("s3://bucket/job/*.json.gz").
        logdir: TensorBoard's log directory, or its address.
        engine: "processes", "dask" or "here"; a number of processes; the address of a Dask scheduler; a
            ``distributed.Client``; a ``concurrent.futures.Executor``. By default the Dask client that is active in this
            process, else processes.
        workers: of processes, and of a Dask cluster that is made for this.
        scheduler: address or file of a Dask scheduler.
        run: one run for all recordings.
        force: also import again what was imported before.
        options: how recordings are read.
        progress: called with the recordings done and their number.

    Raises:
        AddressError: the recordings or the log directory cannot be listed, or nothing matches.
        EngineError: the engine cannot work.
    """
    given = [recordings] if isinstance(recordings, (str, os.PathLike)) else list(recordings)
    sources = [addresses.with_slashes(os.fspath(one)) for one in given]
    target = addresses.with_slashes(os.fspath(logdir))
    if not addresses.is_remote(target):
        target = os.path.abspath(target)
    tasks = list(_tasks(sources, target, run, options))
    chosen = engine_for(
        engine,
        workers=workers,
        scheduler=scheduler,
        needs=sorted({package for one in (*sources, target) for package in addresses.package_for(one)}),
        sees=[task.source.address for task in tasks[:1] if not addresses.is_remote(task.source.address)],
    )
    there = _event_files(target)
    found = {} if force else {task.key: earlier for task in tasks if (earlier := _earlier(task, there)) is not None}
    left = [task for task in tasks if task.key not in found]
    if progress is not None:
        progress(len(found), len(tasks))
    for task, result in chosen.map_unordered(_import_one, left):
        if isinstance(result, Failure):
            result = replace(_unread(task), error=result.why, died=result.died)
        found[task.key] = result
        if not result.error:
            _remove_older(task, there)
        if progress is not None:
            progress(len(found), len(tasks))
    names = dict.fromkeys(task.run for task in tasks)
    return [ImportedRun(name, tuple(found[task.key] for task in tasks if task.run == name)) for name in names]


def _tasks(sources: Sequence[str], logdir: str, run: str | None, options: ReadOptions) -> Iterator[_ImportTask]:
    """In the order of runs and addresses: the same ones for the same files, whichever engine takes them."""
    listed: dict[str, tuple[Listed, str]] = {}
    for source in sources:
        for one in addresses.listing(source if addresses.is_remote(source) else os.path.abspath(source)):
            if _may_be_recording(one.address, source):
                listed.setdefault(one.address, (one, run or _run_name(source, one.address)))
    if not listed:
        raise AddressError(f"{', '.join(sources)}: no file matches; name recordings, a directory or a pattern.")
    runs: dict[str, list[Listed]] = {}
    for one, name in listed.values():
        runs.setdefault(name, []).append(one)
    for name, members in sorted(runs.items()):
        members.sort(key=lambda one: one.address)
        first_ns = min(one.changed_ns for one in members)
        cycles = _cycles([one.address for one in members])
        for one, cycle in zip(members, cycles, strict=True):
            # A later cycle's event file has a later name. The fraction of a second is always 0.
            at_ns = (first_ns // _PER_FILE_NS + cycle) * _PER_FILE_NS
            folder = addresses.join(logdir, *_parts(name))
            session = re.sub(r"[^A-Za-z0-9_.-]", "-", name) or "job"
            key = _hash([one.address, one.size, one.stamp, _code(), name, cycle, at_ns, str(options)])
            yield _ImportTask(one, name, folder, session, cycle, at_ns, key, options)


def _parts(name: str) -> tuple[str, ...]:
    """Of a run's folder. Keys of a store may hold what leads out of the log directory."""
    try:
        return run_name_parts(name)
    except RunFolderError as error:
        raise AddressError(f"{error}; name one with --run.") from None


def _code() -> str:
    """Of all that a profile is made with."""
    return code_version("fleet", "readers")


def _may_be_recording(address: str, source: str) -> bool:
    name = address.rpartition("/")[2]
    return (
        addresses.is_pattern(source)
        or address.endswith(source)
        or (name.endswith(RECORDING_ENDINGS) and name[:1] != ".")
    )


def _run_name(source: str, address: str) -> str:
    """The folder below the fixed part of a pattern; of files in that part itself, its last name.

    Where each rank has a folder of its own, that above it.
    """
    fixed = addresses.fixed_part(source if addresses.is_remote(source) else os.path.abspath(source))
    folder = address.rpartition("/")[0] if addresses.is_remote(address) else Path(address).parent.as_posix()
    folder = folder.rstrip("/")
    folder = folder.rpartition("/")[0] if run_folder(Path(folder)) != Path(folder) else folder
    fixed = fixed.rstrip("/")
    below = folder[len(fixed) :].strip("/") if folder.startswith(fixed) else ""
    return below or folder.rpartition("/")[2] or "job"


def _cycles(members: Sequence[str]) -> list[int]:
    """Of recordings named <worker>.<time>: each worker's in order of time; else each is a rank's only one."""
    seen: dict[tuple[str, int | None], int] = {}
    result = []
    for address in members:
        worker = re.sub(r"\.\d{10,}$", "", stem_of(address)), rank_of_path(address)
        result.append(seen.get(worker, 0))
        seen[worker] = result[-1] + 1
    return result


@dataclass(frozen=True, slots=True)
class _EventFile:
    """What an event file's name says."""

    address: str
    rank: int
    world_size: int | None
    identity: str
    key: str
    number: int
    count: int


def _event_files(logdir: str) -> dict[str, list[_EventFile]]:
    """Those of imports, by the recording's identity: one listing, whatever their number."""
    files: dict[str, list[_EventFile]] = {}
    for one in addresses.listing(logdir) if addresses.is_remote(logdir) or os.path.isdir(logdir) else []:
        found = _MADE_BY.fullmatch(one.address.rpartition("/")[2])
        if found:
            rank, world, number, count = (int(found[part]) for part in (1, 2, 5, 6))
            file = _EventFile(one.address, rank, world or None, found[3], found[4], number, count)
            files.setdefault(file.identity, []).append(file)
    return files


def _earlier(task: _ImportTask, there: dict[str, list[_EventFile]]) -> ImportedRecording | None:
    """The recording as an earlier import left it, if all of its event files are there."""
    files = sorted((one for one in there.get(task.identity, ()) if one.key == task.key), key=lambda one: one.number)
    if not files or len(files) != files[0].count:
        return None
    return replace(
        _unread(task),
        ranks=tuple(one.rank for one in files),
        world_size=files[0].world_size,
        event_files=tuple(one.address for one in files),
        earlier=True,
    )


def _remove_older(task: _ImportTask, there: dict[str, list[_EventFile]]) -> None:
    """Event files of the same recording in this very run that were made from what it held before, or by other code."""
    for one in there.get(task.identity, ()):
        if one.key != task.key and one.address == addresses.join(task.folder, one.address.rpartition("/")[2]):
            addresses.remove(one.address)


def _unread(task: _ImportTask) -> ImportedRecording:
    rank = rank_of_path(task.source.address)
    return ImportedRecording(task.source.address, task.run, () if rank is None else (rank,))


def _import_one(task: _ImportTask) -> ImportedRecording:
    """In a worker: reads, analyses and writes one recording.

    Raises:
        AddressError: it cannot be fetched or written, which may be different in a moment.
    """
    try:
        with addresses.local_copy(task.source.address) as path:
            profiles = analyze_ranks(path, session=task.session, options=task.options)
    except TraceError as error:
        return replace(_unread(task), error=str(error)[:_LONGEST])
    world = _world_size(profiles[0])
    written = []
    for number, profile in enumerate(profiles):
        source = replace(profile.source, cycle=task.cycle, created_unix_ns=task.source.changed_ns)
        profiles[number] = replace(profile, source=source)
        maker = f"rank{source.rank}of{world or 0}.import-{task.identity}-{task.key}-{number + 1}of{len(profiles)}"
        name = event_file_name(task.at_ns, maker)
        target = addresses.join(task.folder, name)
        blob = encode(profiles[number])
        facts = facts_beside(profiles[number], blob)
        addresses.write(target, event_file_content(profiles[number], task.at_ns, facts=facts, blob=blob))
        written.append(target)
    return ImportedRecording(
        address=task.source.address,
        run=task.run,
        ranks=tuple(profile.source.rank for profile in profiles),
        world_size=world,
        event_files=tuple(written),
        iterations=_iterations(profiles[0]),
    )


def _iterations(profile: Profile) -> int:
    return len(profile.iterations) if profile.iterations.found_by != "none" else 0


def _world_size(profile: Profile) -> int | None:
    return profile.facts.world_size


def _hash(parts: list[object]) -> str:
    return hashlib.blake2s(json.dumps(parts).encode(), digest_size=8).hexdigest()
