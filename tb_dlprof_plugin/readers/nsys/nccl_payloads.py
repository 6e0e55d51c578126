"""What NCCL says of its calls in the payloads of its NVTX ranges: how many bytes each rank puts in.

NCCL's message size is that of a rank's input, but of a reduce-scatter that of its output
(``NVTX3_FUNC_WITH_PARAMS`` of src/collectives.cc).
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.timeline import Ints
from tb_dlprof_plugin.readers.nvtx.payloads import decoded, decoded_json
from tb_dlprof_plugin.readers.nvtx.ranges import Ranges
from tb_dlprof_plugin.readers.sqlite_tables import Database

COMMUNICATOR, SIZE, RANKS = "NCCL communicator ID", "Message size [bytes]", "No. of ranks"
_ENTRIES = "NVTX_PAYLOAD_SCHEMA_ENTRIES"
_DOMAIN, _REDUCE_SCATTER = "NCCL", "ReduceScatter"
_MOST_BYTES = 2**52


def input_bytes(database: Database, ranges: Ranges, texts: list[str], domains: list[str]) -> Ints:
    """Per range the bytes that the rank puts into the collective; -1 for every other range and where not recorded.

    Args:
        database: with the payloads.
        ranges: whose rows are asked about.
        texts: what ``ranges.text`` indexes.
        domains: what ``ranges.domain`` indexes.
    """
    result = np.full(len(ranges), -1, dtype=np.int64)
    of_nccl = np.array([name == _DOMAIN for name in domains], dtype=np.bool_)[ranges.domain]
    if not of_nccl.any() or not database.has(_ENTRIES):
        return result
    payloads = _payloads(database)
    ranks = {one[COMMUNICATOR]: one[RANKS] for one in payloads.values() if COMMUNICATOR in one and RANKS in one}
    for row in np.flatnonzero(of_nccl).tolist():
        found = payloads.get((int(ranges.thread[row]), int(ranges.start_ns[row])), {})
        size = found.get(SIZE, -1)
        if _REDUCE_SCATTER in texts[int(ranges.text[row])]:
            members = ranks.get(found.get(COMMUNICATOR, -1), -1)
            size = size * members if members > 0 else -1
        if 0 <= size < _MOST_BYTES:
            result[row] = size
    return result


def _payloads(database: Database) -> dict[tuple[int, int], dict[str, int]]:
    """The numbers of each payload that names a communicator, by thread and start."""
    layout: dict[int, dict[str, tuple[int, int]]] = {}
    for schemas, kinds, offsets, names in database.batches(_ENTRIES, ("schemaId", "type", "offset"), ("name",)):
        for schema, kind, offset, name in zip(schemas, kinds, offsets, names, strict=True):
            if type(schema) is int and type(kind) is int and isinstance(name, str):
                # The first field has no offset.
                layout.setdefault(schema, {})[name] = (kind, offset if type(offset) is int else 0)
    found: dict[tuple[int, int], dict[str, int]] = {}
    for threads, starts, blobs, texts in database.batches(
        "NVTX_EVENTS", ("globalTid", "start", "binaryData"), ("jsonText",)
    ):
        for thread, start, blob, text in zip(threads, starts, blobs, texts, strict=True):
            if blob is None and text is None:
                continue
            numbers = decoded(blob, layout) if isinstance(blob, bytes) else {}
            if not numbers and isinstance(text, str):
                numbers = decoded_json(text)
            if COMMUNICATOR in numbers and type(thread) is int and type(start) is int:
                found[thread, start] = numbers
    return found
