"""Reads nvprof's tables into a `CuptiRecording`.

They have CUPTI's names: runtime and driver calls apart and by number, and markers as two rows, a start and an end with
the same id. Threads are the low words of pthread ids. Times are UNIX nanoseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tb_dlprof_plugin.model.lookup import joined
from tb_dlprof_plugin.model.timeline import DeviceProperties, Ints
from tb_dlprof_plugin.readers.cupti.columns import (
    COPIES,
    LAUNCH,
    SETS,
    TIMES,
    ActivityTables,
    named,
    positive,
    process_of_calls,
)
from tb_dlprof_plugin.readers.cupti.occupancy import SmLimits
from tb_dlprof_plugin.readers.cupti.recording import Activities, CudaCalls, CuptiRecording, ProcessFacts
from tb_dlprof_plugin.readers.nvprof.call_names import driver_call, runtime_call
from tb_dlprof_plugin.readers.nvprof.trace_format import STRINGS
from tb_dlprof_plugin.readers.nvtx.ranges import NvtxRanges
from tb_dlprof_plugin.readers.sqlite_tables import MISSING, Database, filled, integers

_KIND = "CUPTI_ACTIVITY_KIND_"
KERNELS = (f"{_KIND}CONCURRENT_KERNEL", f"{_KIND}KERNEL")
CALLS: tuple[tuple[str, Callable[[int], str]], ...] = (
    (f"{_KIND}RUNTIME", runtime_call),
    (f"{_KIND}DRIVER", driver_call),
)
MARKERS, DEVICES = (f"{_KIND}{kind}" for kind in ("MARKER", "DEVICE"))

_MARKER = ("flags", "timestamp", "id", "name", "domain")
_START, _END = 2, 4
"""CUpti_ActivityFlag: bits of ``flags`` of a marker."""
_THREAD = struct.Struct("<II")
"""``objectId`` of a thread: the process, and the low word of the thread's pthread id."""
_WORD = 32
_NO_NAME = ("-- null --",)
_MOST_DEVICES = 4096


def read_tables(database: Database, shown: Path) -> CuptiRecording:
    """The contents of a database. ``shown`` is the path that the user knows it by."""
    return _NvprofReader(database, shown).read()


class _NvprofReader:
    def __init__(self, database: Database, shown: Path) -> None:
        self._database, self._shown = database, shown
        self._work = ActivityTables(database, TIMES, _unknown, "memoryKind", unknown_memory=True)

    def read(self) -> CuptiRecording:
        """Everything."""
        database = self._database
        database.expect((*KERNELS, *(table for table, _ in CALLS), COPIES, SETS, MARKERS, STRINGS))
        calls = joined([self._calls(table, name) for table, name in CALLS], CudaCalls)
        kernels = [database.columns(table, (*TIMES, "name", *LAUNCH)) for table in KERNELS]
        ranges, texts, domains, wanted = self._ranges()
        for columns in kernels:
            wanted.update(np.unique(columns["name"]).tolist())
        found = database.texts(STRINGS, "_id_", "value", wanted)
        parts = [self._work.kernels(columns, columns["name"], found) for columns in kernels]
        work = joined([*parts, self._work.copies()[0], self._work.sets()], Activities)
        keys = np.unique(np.concatenate((calls.process, ranges.process))).tolist()
        work.process = process_of_calls(work, calls)
        devices, limits = self._devices()
        self._work.limit_configs(limits)
        nothing = np.zeros(0, dtype=np.int64)
        return CuptiRecording(
            source=str(self._shown),
            format="nvprof",
            tables=self._work.tables,
            calls=calls,
            activities=work,
            overhead=CudaCalls(*(nothing,) * 6),
            ranges=ranges,
            texts=[_text(found.get(text, "")) for text in texts],
            domains=[_text(found.get(domain, "")) for domain in domains],
            configs=self._work.configs,
            processes={
                key: ProcessFacts(pid=key, devices=devices) for key in {*keys, *np.unique(work.process).tolist()}
            },
            notes=self._work.damage_notes("Copy it again."),
            rows=database.rows_read,
        )

    def _calls(self, table: str, name: Callable[[int], str]) -> CudaCalls:
        wanted = ("start", "end", "cbid", "processId", "threadId", "correlationId")
        columns = self._database.columns(table, wanted)
        kept = columns["start"] != MISSING
        columns = {key: column[kept] for key, column in columns.items()}
        process = filled(columns["processId"], -1)
        return CudaCalls(
            process=process,
            thread=_thread(process, columns["threadId"]),
            start_ns=columns["start"],
            stop_ns=columns["end"],
            correlation=positive(columns["correlationId"]),
            name=named([np.clip(columns["cbid"], -1, 10_000)], self._work.tables.strings, name),
        )

    def _ranges(self) -> tuple[NvtxRanges, list[int], list[int], set[int]]:
        """Pairs of markers; the ids of the texts and of the domains that they index, and all such ids."""
        parts: list[dict[str, Ints]] = []
        threads: list[Any] = []
        for *numbers, owners in self._database.batches(MARKERS, (*_MARKER, "objectId")):
            parts.append(dict(zip(_MARKER, map(integers, numbers), strict=True)))
            threads += owners
        if not parts:
            return NvtxRanges.none(), [0], [0], set()
        columns = {name: np.concatenate([part[name] for part in parts]) for name in _MARKER}
        owner = [_owner(one) for one in threads]
        process = np.array([pid for pid, _ in owner], dtype=np.int64)
        thread = np.array([tid for _, tid in owner], dtype=np.int64)
        flags, number = np.where(columns["flags"] == MISSING, 0, columns["flags"]), columns["id"]
        timed_rows = columns["timestamp"] != MISSING
        starts = np.flatnonzero((flags & _START > 0) & timed_rows)
        ends = np.flatnonzero((flags & _END > 0) & timed_rows)
        order = np.lexsort((columns["timestamp"][ends], number[ends]))
        ends = ends[order]
        stop = np.full(len(starts), MISSING, dtype=np.int64)
        end_thread = thread[starts].copy()
        if len(ends):
            # The first end after the start: ids may be used again.
            key = np.searchsorted(np.unique(number), number)
            span = int(columns["timestamp"][ends].max() - columns["timestamp"][timed_rows].min()) + 1
            at = np.array(
                _first_after(key[ends], columns["timestamp"][ends], key[starts], columns["timestamp"][starts], span)
            )
            known = at >= 0
            stop[known] = columns["timestamp"][ends[at[known]]]
            end_thread[known] = thread[ends[at[known]]]
        names, text = np.unique(columns["name"][starts], return_inverse=True)
        domains, domain = np.unique(np.maximum(columns["domain"][starts], 0), return_inverse=True)
        ranges = NvtxRanges(
            process=process[starts],
            thread=_thread(process[starts], thread[starts]),
            end_thread=_thread(process[starts], end_thread),
            start_ns=columns["timestamp"][starts],
            stop_ns=stop,
            text=text.reshape(-1).astype(np.int64),
            domain=domain.reshape(-1).astype(np.int64),
            nested=end_thread == thread[starts],
            sequence_number=np.full(len(starts), -1, dtype=np.int64),
            op_id=np.full(len(starts), -1, dtype=np.int64),
            input_bytes=np.full(len(starts), -1, dtype=np.int64),
        )
        return ranges, names.tolist(), domains.tolist(), {*names.tolist(), *domains.tolist()}

    def _devices(self) -> tuple[list[DeviceProperties], SmLimits | None]:
        wanted = (
            "id", "computeCapabilityMajor", "computeCapabilityMinor", "numMultiprocessors", "globalMemorySize", "name",
            "maxWarpsPerMultiprocessor", "maxBlocksPerMultiprocessor", "maxRegistersPerMultiprocessor",
            "maxSharedMemoryPerMultiprocessor", "numThreadsPerWarp",
        )  # fmt: skip
        columns = self._database.columns(DEVICES, wanted)
        names = self._database.texts(STRINGS, "_id_", "value", set(columns["name"].tolist()))
        devices: list[DeviceProperties] = []
        limits: set[SmLimits] = set()
        for row in zip(*(columns[column].tolist() for column in wanted), strict=True):
            if len(devices) >= _MOST_DEVICES:
                break
            number, major, minor, sms, memory, name, *of_sm = (one if 0 <= one < 2**53 else None for one in row)
            known = major is not None and minor is not None
            devices.append(
                DeviceProperties(
                    number or 0, names.get(row[5], "") if name is not None else "", major if known else None,
                    minor if known else None, sms or None, memory or None,
                )
            )  # fmt: skip
            warps, blocks, registers, shared, threads = (one or 0 for one in of_sm)
            limits.add(SmLimits(sms or 0, warps, blocks, registers, shared, threads or 32, major or 0))
        one = limits.pop() if len(limits) == 1 else None
        return devices, one if one is not None and one.warps and one.blocks and one.sm_count else None


def _first_after(keys: Ints, times: Ints, wanted: Ints, since: Ints, span: int) -> list[int]:
    """Per wanted key the place of its first time that is not before ``since``, -1 for none. Keys rise, and times in
    each of them."""
    if not len(keys) or span > 2**61 // (int(keys.max()) + 2):
        return [-1] * len(wanted)
    first = int(min(times.min(), since.min()))
    code = keys * (span + 1) + np.clip(times - first, 0, span)
    at = np.searchsorted(code, wanted * (span + 1) + np.clip(since - first, 0, span))
    found = np.minimum(at, len(keys) - 1)
    return np.where((at < len(keys)) & (keys[found] == wanted), found, -1).tolist()


def _owner(raw: Any) -> tuple[int, int]:
    if not isinstance(raw, bytes) or len(raw) < _THREAD.size:
        return -1, 0
    pid, thread = _THREAD.unpack_from(raw)
    return pid, thread


def _thread(process: Ints, thread: Ints) -> Ints:
    """A key of the thread in its process; the thread's number may be written as signed or unsigned."""
    word = np.where(thread == MISSING, 0, thread) & ((1 << _WORD) - 1)
    return (np.maximum(process, 0) & ((1 << (62 - _WORD)) - 1)) << _WORD | word


def _unknown(columns: dict[str, Ints]) -> Ints:
    return np.full(len(columns["start"]), -1, dtype=np.int64)


def _text(text: str) -> str:
    return "" if text in _NO_NAME else text
