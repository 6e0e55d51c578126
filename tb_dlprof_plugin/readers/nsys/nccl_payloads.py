"""What NCCL says of its calls in the payloads of its NVTX ranges: the communicator, how many bytes, to whom.

NCCL's message size is that of a rank's input, but of a reduce-scatter that of its output
(``NVTX3_FUNC_WITH_PARAMS`` of src/collectives.cc). The communicator's ID is a hash that all its ranks share; the calls
of older versions of NCCL do not name it.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.timeline import Ints
from tb_dlprof_plugin.readers.cupti.recording import Communicator, NcclCalls
from tb_dlprof_plugin.readers.nvtx.payloads import decoded, decoded_json
from tb_dlprof_plugin.readers.nvtx.ranges import NvtxRanges
from tb_dlprof_plugin.readers.sqlite_tables import Database

COMMUNICATOR, RANKS, RANK, PEER = "NCCL communicator ID", "No. of ranks", "Rank", "Peer rank"
SIZES = ("Message size [bytes]", "Bytes")
_ENTRIES = "NVTX_PAYLOAD_SCHEMA_ENTRIES"
_DOMAIN, _REDUCE_SCATTER, _INIT = "NCCL", "ReduceScatter", "ncclCommInit"
_MOST_BYTES = 2**52
_MOST_RANKS = 2**22

Payloads = dict[int, dict[str, int]]
"""The numbers of each payload, by the row of its range."""


def payloads_of(database: Database, ranges: NvtxRanges, domains: list[str]) -> Payloads:
    """The payloads of NCCL's ranges.

    Args:
        database: with the payloads.
        ranges: whose rows are asked about.
        domains: what ``ranges.domain`` indexes.
    """
    of_nccl = np.array([name == _DOMAIN for name in domains], dtype=np.bool_)[ranges.domain]
    there = any(database.has("NVTX_EVENTS", column) for column in ("binaryData", "jsonText"))
    if not of_nccl.any() or not there:
        return {}
    found = _payloads(database)
    rows = {row: (int(ranges.thread[row]), int(ranges.start_ns[row])) for row in np.flatnonzero(of_nccl).tolist()}
    return {row: found[key] for row, key in rows.items() if key in found}


def input_bytes(payloads: Payloads, ranges: NvtxRanges, texts: list[str]) -> Ints:
    """Per range the bytes that the rank puts into the collective; -1 for every other range and where not recorded.

    Args:
        payloads: of the ranges.
        ranges: whose rows are asked about.
        texts: what ``ranges.text`` indexes.
    """
    result = np.full(len(ranges), -1, dtype=np.int64)
    ranks = {
        payload[COMMUNICATOR]: payload[RANKS]
        for payload in payloads.values()
        if COMMUNICATOR in payload and RANKS in payload
    }
    for row, found in payloads.items():
        size = next((found[name] for name in SIZES if name in found), -1)
        if _REDUCE_SCATTER in texts[int(ranges.text[row])]:
            members = ranks.get(found.get(COMMUNICATOR, -1), -1)
            size = size * members if members > 0 else -1
        if 0 <= size < _MOST_BYTES:
            result[row] = size
    return result


def nccl_calls(payloads: Payloads, ranges: NvtxRanges, texts: list[str]) -> NcclCalls:
    """The calls that name their communicator.

    A call's number in its communicator is known where the recording holds the communicator's creation by the process,
    because NCCL itself writes none.
    """
    communicators: dict[int, int] = {}
    known: list[Communicator] = []
    count: dict[tuple[int, int], int] = {}
    rows: list[tuple[int, int, int, int]] = []
    for row in sorted(payloads, key=lambda one: int(ranges.start_ns[one])):
        found, process = payloads[row], int(ranges.process[row])
        if COMMUNICATOR not in found:
            continue
        index = communicators.setdefault(found[COMMUNICATOR], len(communicators))
        if index == len(known):
            known.append(Communicator(found[COMMUNICATOR]))
        if RANK in found and 0 < found.get(RANKS, 0) <= _MOST_RANKS:
            known[index].size = found[RANKS]
            known[index].rank_of[process] = found[RANK]
            if texts[int(ranges.text[row])].startswith(_INIT):
                count.setdefault((process, index), 0)
        elif any(name in found for name in SIZES):
            number = count.get((process, index), -1)
            if number >= 0:
                count[process, index] = number + 1
            peer = found.get(PEER, -1)
            rows.append((row, index, number, peer if 0 <= peer < _MOST_RANKS else -1))
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return NcclCalls(
        process=ranges.process[table[:, 0]],
        thread=ranges.thread[table[:, 0]],
        start_ns=ranges.start_ns[table[:, 0]],
        text=ranges.text[table[:, 0]],
        communicator=table[:, 1],
        number=table[:, 2],
        peer=table[:, 3],
        communicators=known,
    )


def _payloads(database: Database) -> dict[tuple[int, int], dict[str, int]]:
    """The numbers of each payload, by thread and start."""
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
            if numbers and type(thread) is int and type(start) is int:
                found[thread, start] = numbers
    return found
