"""Reads the tables of an exported report into a `Recording`.

The schema is that of the nsys that exported, and changes from version to version; tables without rows are absent. So a
table's columns are asked for, and what is not there counts as missing. What each table holds, and what is wrong in them
(``CUPTI_ACTIVITY_KIND_RUNTIME`` has a second row for a call with a backtrace, ``syncType`` lies,
``TARGET_INFO_GPU.id`` is not CUDA's ordinal): docs/inputs.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tb_dlprof_plugin.model.grouping import group_rows
from tb_dlprof_plugin.model.timeline import DeviceKind, Ints, LaunchConfig, TraceNote
from tb_dlprof_plugin.readers.cupti.copies import UNIFIED, copy_name, set_name
from tb_dlprof_plugin.readers.cupti.occupancy import SmLimits, occupancy_percent
from tb_dlprof_plugin.readers.cupti.recording import Activities, Calls, ProcessFacts, Recording, joined, rows_of
from tb_dlprof_plugin.readers.cupti.timelines import GRAPH_PREFIX
from tb_dlprof_plugin.readers.nsys.ids import pid_of, process_key
from tb_dlprof_plugin.readers.nsys.machine import Machine, read_machine
from tb_dlprof_plugin.readers.nsys.ranges import read_ranges
from tb_dlprof_plugin.readers.nvtx.meanings import Tables
from tb_dlprof_plugin.readers.sqlite_tables import MISSING, Database, filled

KERNELS, COPIES, SETS = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET"))
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
RANGES = "NVTX_EVENTS"
OVERHEAD = "PROFILER_OVERHEAD"
STRINGS = "StringIds"
ALL = (KERNELS, COPIES, SETS, GRAPHS, RUNTIME, RANGES, OVERHEAD, STRINGS)
"""What is read row by row."""

_COMMON = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")
_LAUNCH = (
    "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory",
    "dynamicSharedMemory",
)  # fmt: skip
_NAMES = ("demangledName", "shortName", "mangledName")
_BACKTRACE = 67
"""``eventClass`` of a call's second row, which has its CUDA backtrace."""
_VERSION = re.compile(r"(?:_v\d+|_ptsz|_ptds)+\Z")
_LARGEST_DEVICE = 2**31 - 1
_LARGEST_BYTES = 2**62
_WARNING = 2
_TOLD = re.compile(r"(?=.*CUDA).*(?:not all|lost|dropped|incomplete|failed to collect)", re.IGNORECASE | re.DOTALL)
_TOLD_CHARACTERS = 300
_MOST_DIAGNOSTICS = 3


def read_tables(database: Database, shown: Path) -> Recording:
    """The contents of an exported report. ``shown`` is the path that the user knows it by."""
    return _Reader(database, shown).read()


@dataclass(slots=True)
class _Names:
    """Ids of texts that tables asked for, and where their strings stand."""

    wanted: set[int] = field(default_factory=set)

    def want(self, *columns: Ints) -> None:
        for column in columns:
            self.wanted.update(np.unique(column[column != MISSING]).tolist())


class _Reader:
    def __init__(self, database: Database, shown: Path) -> None:
        self._database, self._shown = database, shown
        self._tables = Tables()
        self._configs: list[LaunchConfig] = [LaunchConfig()]
        self._notes: list[TraceNote] = []

    def read(self) -> Recording:
        database = self._database
        database.expect(ALL)
        kernels = database.columns(KERNELS, (*_COMMON, *_NAMES, *_LAUNCH))
        copies = database.columns(COPIES, (*_COMMON, "bytes", "copyKind", "srcKind", "dstKind"))
        sets = database.columns(SETS, (*_COMMON, "bytes", "memKind"))
        graphs = database.columns(GRAPHS, (*_COMMON, "graphId", "graphExecId"))
        calls = database.columns(RUNTIME, ("start", "end", "eventClass", "globalTid", "correlationId", "nameId"))
        overhead = database.columns(OVERHEAD, ("start", "end", "globalTid", "nameId"))
        ranges, texts, domains, text_ids = read_ranges(database)

        kernel_name = _first_known([kernels[name] for name in _NAMES])
        names = _Names(text_ids)
        names.want(kernel_name, calls["nameId"], overhead["nameId"])
        found = database.texts(STRINGS, "id", "value", names.wanted)
        texts = [found.get(text, "") if isinstance(text, int) else text for text in texts]

        call_rows = self._calls(calls, found)
        activities = [
            self._kernels(kernels, kernel_name, found),
            self._copies(copies),
            self._sets(sets),
            self._graphs(graphs),
        ]
        joined_activities = self._with_process(joined(activities, Activities), call_rows)
        machine = read_machine(database, np.unique(joined_activities.process).tolist())
        self._occupancies(joined_activities, machine)
        self._note_losses()
        return Recording(
            source=str(self._shown),
            format="nsys",
            tables=self._tables,
            calls=call_rows,
            activities=joined_activities,
            overhead=self._overhead(overhead, found),
            ranges=ranges,
            texts=texts,
            domains=domains,
            configs=self._configs,
            processes={
                key: ProcessFacts(pid_of(key), machine.ranks.get(key), machine.devices.get(key, []))
                for key in np.unique(np.concatenate((joined_activities.process, ranges.process, call_rows.process)))
                .astype(np.int64)
                .tolist()
            },
            epoch_unix_ns=machine.epoch_unix_ns,
            system=machine.system,
            cuda_driver_version=machine.cuda_driver_version,
            notes=self._notes,
            rows=database.rows_read,
        )

    def _calls(self, columns: dict[str, Ints], found: dict[int, str]) -> Calls:
        kept = (columns["start"] != MISSING) & (columns["eventClass"] != _BACKTRACE)
        columns = {name: column[kept] for name, column in columns.items()}
        return Calls(
            process=filled(process_key(columns["globalTid"]), -1),
            thread=filled(columns["globalTid"], -1),
            start_ns=columns["start"],
            stop_ns=columns["end"],
            correlation=_positive(columns["correlationId"]),
            name=self._strings(columns["nameId"], found, lambda text: _VERSION.sub("", text)),
        )

    def _overhead(self, columns: dict[str, Ints], found: dict[int, str]) -> Calls:
        kept = (columns["start"] != MISSING) & (columns["globalTid"] != MISSING)
        columns = {name: column[kept] for name, column in columns.items()}
        return Calls(
            process=process_key(columns["globalTid"]),
            thread=columns["globalTid"],
            start_ns=columns["start"],
            stop_ns=columns["end"],
            correlation=np.full(len(columns["start"]), -1, dtype=np.int64),
            name=self._strings(columns["nameId"], found),
        )

    def _kernels(self, columns: dict[str, Ints], name: Ints, found: dict[int, str]) -> Activities:
        made = self._activities(columns, DeviceKind.KERNEL, self._strings(name, found))
        shared = np.maximum(columns["staticSharedMemory"], -1), np.maximum(columns["dynamicSharedMemory"], -1)
        launch = [np.clip(columns[one], -1, 2**31) for one in _LAUNCH[:7]]
        launch.append(
            np.where(
                (shared[0] >= 0) | (shared[1] >= 0), np.clip(shared[0], 0, 2**31) + np.clip(shared[1], 0, 2**31), -1
            )
        )
        if len(made):
            unique, made.config = group_rows(*launch)
            made.config += len(self._configs)
            self._configs += [_config(row) for row in zip(*(column.tolist() for column in unique), strict=True)]
        return _timed(made)

    def _copies(self, columns: dict[str, Ints]) -> Activities:
        kinds = [np.clip(columns[one], -1, 1000) for one in ("copyKind", "srcKind", "dstKind")]
        made = self._activities(columns, DeviceKind.MEMCPY, self._named(kinds, copy_name))
        unified = np.isin(kinds[0], UNIFIED)
        if unified.any():
            text = "Page faults copied unified memory: no call asked for these copies, and they are in no op's time."
            self._notes.append(TraceNote("unified_memory", text, int(unified.sum())))
        return _timed(made)

    def _sets(self, columns: dict[str, Ints]) -> Activities:
        kinds = [np.clip(columns["memKind"], -1, 1000)]
        return _timed(self._activities(columns, DeviceKind.MEMSET, self._named(kinds, set_name)))

    def _graphs(self, columns: dict[str, Ints]) -> Activities:
        number = np.where(columns["graphExecId"] == MISSING, columns["graphId"], columns["graphExecId"])
        name = self._named(
            [np.clip(number, -1, 2**40)], lambda one: f"{GRAPH_PREFIX}{one}" if one >= 0 else GRAPH_PREFIX.strip()
        )
        return _timed(self._activities(columns, DeviceKind.KERNEL, name))

    def _activities(self, columns: dict[str, Ints], kind: DeviceKind, name: Ints) -> Activities:
        count = len(columns["start"])
        size = columns.get("bytes", np.full(count, -1, dtype=np.int64))
        return Activities(
            process=process_key(columns["globalPid"]),
            start_ns=columns["start"],
            stop_ns=columns["end"],
            device=np.clip(filled(columns["deviceId"], 0), 0, _LARGEST_DEVICE),
            context=_positive(columns["contextId"]),
            stream=_positive(columns["streamId"]),
            correlation=_positive(columns["correlationId"]),
            name=name,
            kind=np.full(count, int(kind), dtype=np.int64),
            bytes=np.where((size >= 0) & (size < _LARGEST_BYTES), size, -1),
            config=np.zeros(count, dtype=np.int64),
        )

    def _with_process(self, activities: Activities, calls: Calls) -> Activities:
        """Activities of tables that do not say the process belong to that of the call with their number."""
        unknown = activities.process == MISSING
        if not unknown.any():
            return activities
        process = np.full(len(activities), int(calls.process.min()) if len(calls) else -1, dtype=np.int64)
        if len(calls):
            order = np.argsort(calls.correlation, kind="stable")
            at = np.minimum(np.searchsorted(calls.correlation[order], activities.correlation), len(order) - 1)
            known = calls.correlation[order[at]] == activities.correlation
            process = np.where(known, calls.process[order[at]], process)
        activities.process = np.where(unknown, process, activities.process)
        return activities

    def _strings(self, ids: Ints, found: dict[int, str], change: Callable[[str], str] | None = None) -> Ints:
        """String indices of text ids; the empty string for those without a text."""
        if not len(ids):
            return ids
        unique, row = np.unique(ids, return_inverse=True)
        texts = [found.get(one, "") for one in unique.tolist()]
        add = self._tables.strings.add
        return np.array([add(change(text) if change else text) for text in texts], dtype=np.int64)[row.reshape(-1)]

    def _named(self, kinds: Sequence[Ints], name: Callable[..., str]) -> Ints:
        if not len(kinds[0]):
            return kinds[0]
        unique, row = group_rows(*kinds)
        rows = zip(*(column.tolist() for column in unique), strict=True)
        return np.array([self._tables.strings.add(name(*one)) for one in rows], dtype=np.int64)[row]

    def _occupancies(self, activities: Activities, machine: Machine) -> None:
        """Adds the occupancy to the launch configurations, where one GPU's limits are known and all are alike."""
        limits = machine.limits
        if limits is None:
            return
        self._configs = [_with_occupancy(config, limits) for config in self._configs]

    def _note_losses(self) -> None:
        damaged = self._database.damaged
        if damaged:
            named = ", ".join(dict.fromkeys(damaged))
            text = f"The database is damaged: the rest of {named} could not be read. Export the report again."
            self._notes.append(TraceNote("database_damaged", text))
        told: set[str] = set()
        for levels, texts in self._database.batches("DIAGNOSTIC_EVENT", ("severity",), ("text",)):
            for level, text in zip(levels, texts, strict=True):
                serious = isinstance(level, int) and level >= _WARNING and isinstance(text, str)
                if serious and _TOLD.search(text) and len(told) < _MOST_DIAGNOSTICS:
                    told.add(" ".join(text.split())[:_TOLD_CHARACTERS])
        self._notes += [TraceNote("nsys_warning", f"Nsight Systems says: {text}") for text in sorted(told)]


def _first_known(columns: Sequence[Ints]) -> Ints:
    """Per row the first value that is not missing."""
    result = columns[0]
    for column in columns[1:]:
        result = np.where(result == MISSING, column, result)
    return result


def _positive(column: Ints) -> Ints:
    return np.where((column >= 0) & (column < 2**62), column, -1)


def _timed(activities: Activities) -> Activities:
    kept = activities.start_ns != MISSING
    made: Activities = activities if kept.all() else rows_of(activities, kept)
    return made


def _config(row: Sequence[Any]) -> LaunchConfig:
    grid, block = tuple(row[:3]), tuple(row[3:6])
    return LaunchConfig(
        grid=grid if min(grid) >= 0 else None,
        block=block if min(block) >= 0 else None,
        registers_per_thread=row[6] if row[6] >= 0 else None,
        shared_memory_bytes=row[7] if row[7] >= 0 else None,
    )


def _with_occupancy(config: LaunchConfig, limits: SmLimits) -> LaunchConfig:
    if config.grid is None or config.block is None or config.registers_per_thread is None:
        return config
    blocks, threads = int(np.prod(config.grid, dtype=object)), int(np.prod(config.block, dtype=object))
    percent = occupancy_percent(limits, blocks, threads, config.registers_per_thread, config.shared_memory_bytes or 0)
    return LaunchConfig(config.grid, config.block, config.registers_per_thread, config.shared_memory_bytes, percent)
