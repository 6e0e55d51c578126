"""Reads ``CUDA_GPU_MEMORY_USAGE_EVENTS``, which ``nsys profile --cuda-memory-usage=true`` records: what CUDA handed out."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.readers.cupti.columns import positive
from tb_dlprof_plugin.readers.cupti.recording import MemoryCalls
from tb_dlprof_plugin.readers.nsys.ids import process_key
from tb_dlprof_plugin.readers.sqlite_tables import MISSING, Database, filled

_COLUMNS = (
    "start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType", "correlationId",
)  # fmt: skip
_OF_THE_HOST = (0, 1)
"""``memKind`` of pageable and pinned memory."""
_ALLOCATION, _FREE = 0, 1
_MOST_BYTES = 2**52


def read_memory_calls(database: Database) -> MemoryCalls:
    """Allocations and frees of GPU memory; those of the host's memory are left out, and what has no size or time."""
    columns = database.columns("CUDA_GPU_MEMORY_USAGE_EVENTS", _COLUMNS)
    operation, size = columns["memoryOperationType"], columns["bytes"]
    kept = (columns["start"] != MISSING) & np.isin(operation, (_ALLOCATION, _FREE))
    kept &= ~np.isin(columns["memKind"], _OF_THE_HOST) & (size > 0) & (size < _MOST_BYTES)
    order = np.flatnonzero(kept)
    order = order[np.argsort(columns["start"][order], kind="stable")]
    signed = np.where(operation == _FREE, -size, size)
    return MemoryCalls(
        process=filled(process_key(columns["globalPid"]), -1)[order],
        time_ns=columns["start"][order],
        device=np.clip(filled(columns["deviceId"], 0), 0, 2**31 - 1)[order],
        address=positive(columns["address"])[order],
        bytes=signed[order],
        correlation=positive(columns["correlationId"])[order],
    )
