"""Reads ``CUDA_GPU_MEMORY_USAGE_EVENTS``: what CUDA handed out, recorded with ``--cuda-memory-usage=true``."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.model.timeline import Ints
from tb_dlprof_plugin.readers.cupti.columns import positive
from tb_dlprof_plugin.readers.cupti.recording import MemoryCalls
from tb_dlprof_plugin.readers.nsys.machine import process_key
from tb_dlprof_plugin.readers.sqlite_tables import Database, filled

_COLUMNS = (
    "start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType", "correlationId",
)  # fmt: skip
_OF_THE_HOST = (0, 1)
"""``memKind`` of pageable and pinned memory."""
_ALLOCATION, _FREE = 0, 1
_MOST_BYTES = 2**52
_LATEST_NS = 2**61


def read_memory_calls(database: Database) -> MemoryCalls:
    """Allocations and frees of GPU memory; those of the host's memory are left out, and what has no size or time.

    A free without a size has that of the last allocation at its address.
    """
    columns = database.columns("CUDA_GPU_MEMORY_USAGE_EVENTS", _COLUMNS)
    operation, size = columns["memoryOperationType"], columns["bytes"]
    kept = (columns["start"] > -_LATEST_NS) & (columns["start"] < _LATEST_NS) & np.isin(operation, (_ALLOCATION, _FREE))
    kept &= ~np.isin(columns["memKind"], _OF_THE_HOST)
    order = np.flatnonzero(kept)
    order = order[np.argsort(columns["start"][order], kind="stable")]
    size = _sizes(size, operation == _FREE, columns, order)
    order = order[(size[order] > 0) & (size[order] < _MOST_BYTES)]
    signed = np.where(operation == _FREE, -size, size)
    return MemoryCalls(
        process=filled(process_key(columns["globalPid"]), -1)[order],
        time_ns=columns["start"][order],
        device=np.clip(filled(columns["deviceId"], 0), 0, 2**31 - 1)[order],
        address=positive(columns["address"])[order],
        bytes=signed[order],
        correlation=positive(columns["correlationId"])[order],
    )


def _sizes(size: Ints, is_free: Bools, columns: dict[str, Ints], order: Ints) -> Ints:
    if not (is_free[order] & (size[order] <= 0)).any():
        return size
    result, at = size.copy(), dict[tuple[int, int], int]()
    for row in order.tolist():
        place = (int(columns["globalPid"][row]), int(columns["address"][row]))
        if not is_free[row]:
            at[place] = int(size[row])
        elif size[row] <= 0:
            result[row] = at.get(place, 0)
    return result
