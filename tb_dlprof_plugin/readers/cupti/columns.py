"""The tables of GPU work that databases of Nsight Systems and of nvprof have in common, as columns of a recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tb_dlprof_plugin.model.grouping import group_rows
from tb_dlprof_plugin.model.lookup import rows_with, take_or, take_rows
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import DeviceKind, Ints, LaunchConfig, TraceNote
from tb_dlprof_plugin.readers.cupti.occupancy import SmLimits, occupancy_percent
from tb_dlprof_plugin.readers.cupti.recording import Activities, CudaCalls
from tb_dlprof_plugin.readers.nvtx.meanings import Tables
from tb_dlprof_plugin.readers.sqlite_tables import MISSING, Database, filled

COPIES, SETS = "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"
TIMES = ("start", "end", "deviceId", "contextId", "streamId", "correlationId")
"""Columns that every table of GPU activities has."""
LAUNCH = (
    "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory",
    "dynamicSharedMemory",
)  # fmt: skip
_LARGEST = 2**62
_LARGEST_DEVICE = 2**31 - 1
_LARGEST_CONFIG = 2**31


def positive(column: Ints) -> Ints:
    """A column of ids, -1 for what is none."""
    return np.where((column >= 0) & (column < _LARGEST), column, -1)


_DIRECTIONS = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP",
    11: "HtoD", 12: "DtoH", 13: "DtoD",
}  # fmt: skip
"""CUpti_ActivityMemcpyKind; from 11 on Nsight Systems' own: copies of unified memory, which no call asked for."""
UNIFIED = (11, 12, 13)
MEMORY = ("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static")
"""By Nsight Systems' number; CUPTI's is one more, because its 0 is unknown."""


def copy_name(kind: int, source: int, target: int) -> str:
    """The name of a copy.

    Args:
        kind: its ``copyKind``.
        source: index of `MEMORY`, any other number for unknown.
        target: as ``source``.
    """
    direction = _DIRECTIONS.get(kind, "Unknown")
    if kind in UNIFIED:
        return f"Memcpy {direction} (Managed -> Managed)"
    return f"Memcpy {direction} ({memory_name(source)} -> {memory_name(target)})"


def set_name(memory: int) -> str:
    """The name of a set of this kind of memory."""
    return f"Memset ({memory_name(memory)})"


def memory_name(kind: int) -> str:
    """A kind of memory; "Unknown" for other numbers."""
    return MEMORY[kind] if 0 <= kind < len(MEMORY) else "Unknown"


class ActivityTables:
    """Reads the tables of kernels, copies and sets.

    Args:
        database: with the tables.
        common: columns that are read of each.
        process_of: the process of each row of such columns.
        memory_column: of sets, the kind of the memory.
        unknown_memory: the first kind, if it stands for an unknown one: copies and sets have the same kinds.
    """

    def __init__(
        self,
        database: Database,
        common: Sequence[str],
        process_of: Callable[[dict[str, Ints]], Ints],
        memory_column: str,
        unknown_memory: bool = False,
    ) -> None:
        self._database, self._common, self._process_of = database, common, process_of
        self._memory_column, self._first_memory = memory_column, int(unknown_memory)
        self.tables = Tables()
        self.configs: list[LaunchConfig] = [LaunchConfig()]

    def kernels(self, columns: dict[str, Ints], name: Ints, texts: dict[int, str]) -> Activities:
        """Kernels, whose names are the texts with these ids."""
        kernels = self._activities(columns, DeviceKind.KERNEL, string_rows(name, texts, self.tables.strings))
        _add_configs(kernels, columns, self.configs)
        return _timed(kernels)

    def copies(self) -> tuple[Activities, int]:
        """Copies, and how many of them are of unified memory."""
        columns = self._database.columns(COPIES, (*self._common, "bytes", "copyKind", "srcKind", "dstKind"))
        kind = _kinds(columns["copyKind"])
        sides = [self._memory_kinds(columns[side]) for side in ("srcKind", "dstKind")]
        names = named([kind, *sides], self.tables.strings, copy_name)
        return _timed(self._activities(columns, DeviceKind.MEMCPY, names)), int(np.isin(kind, UNIFIED).sum())

    def sets(self) -> Activities:
        """Sets of memory."""
        columns = self._database.columns(SETS, (*self._common, "bytes", self._memory_column))
        names = named([self._memory_kinds(columns[self._memory_column])], self.tables.strings, set_name)
        return _timed(self._activities(columns, DeviceKind.MEMSET, names))

    def graphs(self, columns: dict[str, Ints], name: Ints) -> Activities:
        """Graphs that were recorded whole, as kernels with these string indices as names."""
        return _timed(self._activities(columns, DeviceKind.KERNEL, name))

    def limit_configs(self, limits: SmLimits | None) -> None:
        """Estimates the occupancy of the launch configurations, where the limits of an SM are known."""
        if limits is not None:
            self.configs = [_with_occupancy(config, limits) for config in self.configs]

    def damage_notes(self, what_to_do: str) -> list[TraceNote]:
        """A note where a table could not be read to its end."""
        if not self._database.damaged:
            return []
        tables = ", ".join(dict.fromkeys(self._database.damaged))
        text = f"The database is damaged: the rest of {tables} could not be read. {what_to_do}"
        return [TraceNote("database_damaged", text)]

    def _activities(self, columns: dict[str, Ints], kind: DeviceKind, name: Ints) -> Activities:
        """A table's rows as activities, without launch configurations."""
        count = len(columns["start"])
        return Activities(
            process=self._process_of(columns),
            start_ns=columns["start"],
            stop_ns=columns["end"],
            device=np.clip(filled(columns["deviceId"], 0), 0, _LARGEST_DEVICE),
            context=positive(columns["contextId"]),
            stream=positive(columns["streamId"]),
            correlation=positive(columns["correlationId"]),
            name=name,
            kind=np.full(count, int(kind), dtype=np.int64),
            bytes=positive(columns.get("bytes", np.full(count, -1, dtype=np.int64))),
            config=np.zeros(count, dtype=np.int64),
            node=positive(columns.get("graphNodeId", np.full(count, -1, dtype=np.int64))),
            external_id=np.full(count, -1, dtype=np.int64),
        )

    def _memory_kinds(self, column: Ints) -> Ints:
        return np.maximum(_kinds(column) - self._first_memory, -1)


def process_of_calls(work: Activities, calls: CudaCalls) -> Ints:
    """The process of each activity: that of the call with its number, else the lowest."""
    lowest = int(calls.process.min()) if len(calls) else -1
    return take_or(calls.process, rows_with(calls.correlation, work.correlation), lowest)


def _kinds(column: Ints) -> Ints:
    """A column of small numbers, -1 for what is none."""
    return np.where((column >= 0) & (column < 1000), column, -1)


def _timed(table: Activities) -> Activities:
    """Those whose start is known."""
    kept = table.start_ns != MISSING
    return table if kept.all() else take_rows(table, kept)


def _add_configs(kernels: Activities, columns: dict[str, Ints], configs: list[LaunchConfig]) -> None:
    """Sets the launch configuration of each kernel; new ones are appended to the list."""
    if not len(kernels):
        return
    launch = [np.clip(columns[one], -1, _LARGEST_CONFIG) for one in LAUNCH]
    static, dynamic = launch[7], launch[8]
    recorded = (static >= 0) | (dynamic >= 0)
    shared = np.where(recorded, np.maximum(static, 0) + np.maximum(dynamic, 0), -1)
    unique, row = group_rows(*launch[:7], shared)
    kernels.config = row + len(configs)
    configs += [_config(one) for one in zip(*(column.tolist() for column in unique), strict=True)]


def _with_occupancy(config: LaunchConfig, limits: SmLimits) -> LaunchConfig:
    """The configuration with the estimated occupancy of the GPU."""
    if config.grid is None or config.block is None or config.registers_per_thread is None:
        return config
    (x, y, z), (across, down, deep) = config.grid, config.block
    shared = config.shared_memory_bytes
    percent = occupancy_percent(limits, x * y * z, across * down * deep, config.registers_per_thread, shared or 0)
    return LaunchConfig(config.grid, config.block, config.registers_per_thread, shared, percent)


def string_rows(
    ids: Ints, found: dict[int, str], strings: StringTable, change: Callable[[str], str] | None = None
) -> Ints:
    """String indices of text ids; the empty string for those without a text."""
    if not len(ids):
        return ids
    unique, row = np.unique(ids, return_inverse=True)
    texts = [found.get(one, "") for one in unique.tolist()]
    return np.array([strings.add(change(text) if change else text) for text in texts], np.int64)[row.reshape(-1)]


def named(columns: Sequence[Ints], strings: StringTable, name: Callable[..., str]) -> Ints:
    """String indices of what each combination of numbers is called."""
    if not len(columns[0]):
        return columns[0]
    unique, row = group_rows(*columns)
    rows = zip(*(column.tolist() for column in unique), strict=True)
    return np.array([strings.add(name(*one)) for one in rows], dtype=np.int64)[row]


def _config(row: Sequence[Any]) -> LaunchConfig:
    grid, block = tuple(row[:3]), tuple(row[3:6])
    return LaunchConfig(
        grid=grid if min(grid) >= 0 else None,
        block=block if min(block) >= 0 else None,
        registers_per_thread=row[6] if row[6] >= 0 else None,
        shared_memory_bytes=row[7] if row[7] >= 0 else None,
    )
