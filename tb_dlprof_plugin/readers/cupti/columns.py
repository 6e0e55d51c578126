"""Steps from the columns of a database to those of a recording, which Nsight Systems and nvprof share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tb_dlprof_plugin.model.grouping import group_rows
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import DeviceKind, Ints, LaunchConfig
from tb_dlprof_plugin.readers.cupti.occupancy import SmLimits, occupancy_percent
from tb_dlprof_plugin.readers.cupti.recording import Activities, rows_of
from tb_dlprof_plugin.readers.sqlite_tables import MISSING, filled

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


def kinds(column: Ints) -> Ints:
    """A column of small numbers, -1 for what is none."""
    return np.where((column >= 0) & (column < 1000), column, -1)


def activities(columns: dict[str, Ints], kind: DeviceKind, process: Ints, name: Ints) -> Activities:
    """A table's rows as activities, without launch configurations."""
    count = len(columns["start"])
    return Activities(
        process=process,
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


def timed(table: Activities) -> Activities:
    """Those whose start is known."""
    kept = table.start_ns != MISSING
    made: Activities = table if kept.all() else rows_of(table, kept)
    return made


def add_configs(kernels: Activities, columns: dict[str, Ints], configs: list[LaunchConfig]) -> None:
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


def with_occupancy(config: LaunchConfig, limits: SmLimits) -> LaunchConfig:
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
