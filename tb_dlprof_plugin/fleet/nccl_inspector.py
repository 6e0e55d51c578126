"""Files of NCCL Inspector, the profiler plugin of NCCL 2.28 and later, and RCCL's port of it: collectives of a process.

Each process of a job writes one file, ``<host>-pid<pid>.log``, with a JSON object on each line: the communicator
("header"), the process ("metadata") and the collective that ended last when the plugin's thread looked ("coll_perf"),
so that of calls that follow each other faster than ``NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS`` some are
missing. Numbers count each communicator's calls of each operation by itself. Source: ext-profiler/inspector of NCCL,
output format v4.0.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from tb_dlprof_plugin.fleet.operations import operation_of
from tb_dlprof_plugin.fleet.rank_facts import Operation
from tb_dlprof_plugin.model.decoders import json_decoder
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.visible import VisibleMessage
from tb_dlprof_plugin.readers.trace_names import INSPECTOR_NAME

_FOLDER = "nccl-inspector-*"
"""Where the plugin writes without ``NCCL_INSPECTOR_DUMP_DIR``."""
_MOST_CALLS = 2_000_000
"""Of a file, the first ones: about 1 GB of text."""
_LONGEST_LINE = 1 << 20
_MOST_BYTES = 1 << 30
"""Of the text; a gzip file of 1 MB can hold as much."""
_LARGEST = 1 << 62
_MOST_SEQUENCE = 1 << 48
"""Numbers are multiplied to be one for each operation (`inspected_calls`)."""
_OF_EACH_RANK = (Operation.ALL_GATHER, Operation.REDUCE_SCATTER)
"""Operations whose message size is that of one rank's part."""


class InspectorError(VisibleMessage):
    """A file that NCCL Inspector did not write."""


@dataclass(frozen=True, slots=True)
class InspectedCommunicator:
    """A process' calls on one NCCL communicator, in the order of the file.

    Attributes:
        name: hash of the communicator, the same on all of its members.
        rank, members: this process' rank in it, and how many there are.
        operation: `Operation`.
        sequence: which call of its operation it is on this communicator.
        bytes: S in the formula of the bus bandwidth, as in `rank_facts.Collectives`.
        duration_ns: of the kernel.
        ended_ns: unix time by which it had ended: when the plugin saw the end, else when it wrote the line.
    """

    name: str
    rank: int
    members: int
    operation: Ints
    sequence: Ints
    bytes: Ints
    duration_ns: Ints
    ended_ns: Ints


@dataclass(frozen=True, slots=True)
class InspectorLog:
    """What one process wrote."""

    host: str
    process: int
    communicators: tuple[InspectedCommunicator, ...]


class _Header(msgspec.Struct):
    id: str
    rank: int
    n_ranks: int


class _Metadata(msgspec.Struct):
    dump_timestamp_us: int


class _Channel(msgspec.Struct):
    kernel_stop_ts: int = 0


class _Times(msgspec.Struct):
    kernel_events: list[_Channel] = []


class _Performance(msgspec.Struct):
    coll: str
    coll_sn: int
    coll_msg_size_bytes: int
    coll_exec_time_us: int
    event_trace_ts: _Times | None = None


class _LogLine(msgspec.Struct):
    header: _Header
    metadata: _Metadata
    coll_perf: _Performance


def read_log(path: str | os.PathLike[str]) -> InspectorLog:
    """The calls in a file; lines that are cut, as the last one of a process that was killed, are passed over.

    Raises:
        InspectorError: no line is of the format, the name does not say the process, or the file cannot be read.
    """
    source = Path(path)
    named = INSPECTOR_NAME.search(source.name)
    if named is None:
        raise InspectorError(f"{source} is not named as NCCL Inspector names its files, <host>-pid<pid>.log")
    decoder: msgspec.json.Decoder[_LogLine] = json_decoder(_LogLine)
    calls: dict[tuple[str, int, int], list[tuple[int, int, int, int, int]]] = {}
    count = 0
    try:
        for text in _lines(source):
            try:
                line = decoder.decode(text)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
            key = line.header.id, line.header.rank, line.header.n_ranks
            row = _row(line)
            if row is not None:
                calls.setdefault(key, []).append(row)
                count += 1
                if count == _MOST_CALLS:
                    break
    except (OSError, EOFError, zlib.error) as error:
        raise InspectorError(f"{source} cannot be read ({error})") from None
    if not calls:
        raise InspectorError(f"{source} holds no collectives of NCCL Inspector")
    communicators = []
    for (name, rank, members), rows in calls.items():
        columns = np.array(rows, dtype=np.int64).T
        communicators.append(InspectedCommunicator(name, rank, members, *columns))
    return InspectorLog(named["host"], int(named["process"]), tuple(communicators))


def logs_beside(directory: str | os.PathLike[str]) -> list[InspectorLog]:
    """The files in a directory, and in those that the plugin makes below it; what is none is passed over."""
    logs = []
    for path in _files(Path(directory)):
        if path.is_file() and INSPECTOR_NAME.search(path.name):
            try:
                logs.append(read_log(path))
            except InspectorError:
                continue
    return logs


def _files(directory: Path) -> Iterable[Path]:
    yield from sorted(directory.iterdir())
    for folder in sorted(directory.glob(_FOLDER)):
        if folder.is_dir():
            yield from sorted(folder.iterdir())


def _lines(path: Path) -> Iterator[bytes]:
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        left = _MOST_BYTES
        while left > 0 and (line := file.readline(_LONGEST_LINE)):
            left -= len(line)
            yield line


def _row(line: _LogLine) -> tuple[int, int, int, int, int] | None:
    """Of a call; None of one whose figures are out of range."""
    header, performance = line.header, line.coll_perf
    operation = operation_of(performance.coll)
    size = performance.coll_msg_size_bytes * (header.n_ranks if operation in _OF_EACH_RANK else 1)
    stops = [channel.kernel_stop_ts for channel in (performance.event_trace_ts or _Times()).kernel_events]
    ended = max(stops, default=0) or line.metadata.dump_timestamp_us
    row = int(operation), performance.coll_sn, size, performance.coll_exec_time_us * 1000, ended * 1000
    sound = all(0 <= value < _LARGEST for value in (*row, header.n_ranks)) and row[1] < _MOST_SEQUENCE
    return row if 0 <= header.rank < header.n_ranks and sound else None
