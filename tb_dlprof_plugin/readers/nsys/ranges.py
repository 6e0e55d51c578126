"""Reads the table ``NVTX_EVENTS``.

A range's text is in ``text``, or, where the program registered it (TensorRT, NCCL and MPI do), in ``textId``. A
domain's number counts in its process; its name is the text of the row of type 75 with that number. Marks and names of
threads and categories are no ranges.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tb_dlprof_plugin.model.timeline import Ints
from tb_dlprof_plugin.readers.nsys.machine import process_key
from tb_dlprof_plugin.readers.nvtx.emit_nvtx import Emitted, without_numbers
from tb_dlprof_plugin.readers.nvtx.ranges import NvtxRanges
from tb_dlprof_plugin.readers.sqlite_tables import MISSING, Database, integers

_PUSHED, _STARTED = (59, 70), (60, 71)
"""``eventType`` of push/pop and start/end ranges: NVTX's own, and those of imported NVTXT files."""
_DOMAIN = 75
_COLUMNS = ("start", "end", "eventType", "globalTid", "endGlobalTid", "textId", "domainId")
_MOST_TEXTS = 50_000_000


def read_ranges(database: Database) -> tuple[NvtxRanges, list[Any], list[str], set[int]]:
    """The ranges; their texts, of which numbers are ids of strings; the names of domains; all such ids."""
    texts = _TextNumbers({"": 0})
    parts: list[dict[str, Ints]] = []
    domains: dict[tuple[int, int], Any] = {}
    for batch in database.batches("NVTX_EVENTS", _COLUMNS, ("text",)):
        *numbers, inline = batch
        columns = dict(zip(_COLUMNS, map(integers, numbers), strict=True))
        kind = columns["eventType"]
        if not database.has("NVTX_EVENTS", "eventType"):
            kind = np.full(len(kind), _PUSHED[0], dtype=np.int64)
        for row in np.flatnonzero(kind == _DOMAIN).tolist():
            named = inline[row] if isinstance(inline[row], str) else int(columns["textId"][row])
            key = (int(process_key(columns["globalTid"])[row]), int(columns["domainId"][row]))
            domains.setdefault(key, named)
        kept = np.isin(kind, (*_PUSHED, *_STARTED)) & (columns["start"] != MISSING)
        rows = [text if type(text) is str else "" for text in inline]
        ids = columns["textId"]
        part = {name: column[kept] for name, column in columns.items()}
        if not kept.all():
            rows, ids = list(itertools.compress(rows, kept.tolist())), ids[kept]
        # All in one dict: a registered text is its id, any other a string, or the parts of one of PyTorch's.
        keys, sequence, op_id = without_numbers(rows)
        if (ids != MISSING).any():
            keys = [key or number for key, number in zip(keys, ids.tolist(), strict=True)]
        places = np.fromiter(map(texts.__getitem__, keys), np.int64, len(keys))
        part |= {"text": places, "sequence_number": sequence, "op_id": op_id}
        part["kind"] = kind[kept]
        parts.append(part)
    if not parts:
        return NvtxRanges.none(), [""], [""], set()
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    process = process_key(columns["globalTid"])
    names, domain = _domains(process, columns["domainId"], domains)
    thread, end_thread = columns["globalTid"], columns["endGlobalTid"]
    ranges = NvtxRanges(
        process=np.where(process == MISSING, -1, process),
        thread=np.where(thread == MISSING, -1, thread),
        # 0 and -1 stand for none in old versions.
        end_thread=np.where(end_thread > 0, end_thread, np.where(thread == MISSING, -1, thread)),
        start_ns=columns["start"],
        stop_ns=columns["end"],
        text=columns["text"],
        domain=domain,
        nested=np.isin(columns["kind"], _PUSHED),
        sequence_number=columns["sequence_number"],
        op_id=columns["op_id"],
        input_bytes=np.full(len(process), -1, dtype=np.int64),
    )
    wanted = {one for one in texts if isinstance(one, int)} | {one for one in names if isinstance(one, int)}
    found = database.texts("StringIds", "id", "value", {one for one in names if isinstance(one, int)})
    named_texts = [Emitted(*one) if isinstance(one, tuple) else one for one in texts]
    return ranges, named_texts, [one if isinstance(one, str) else found.get(one, "") for one in names], wanted


class _TextNumbers(dict[Any, int]):
    """Gives every key that is asked for a number."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


def _domains(process: Ints, number: Ints, named: dict[tuple[int, int], Any]) -> tuple[list[Any], Ints]:
    """The names of domains, and the index of each range's. The default domain has no row, and no name."""
    names: dict[Any, int] = {"": 0}
    result = np.zeros(len(process), dtype=np.int64)
    for (key, domain), name in named.items():
        mine = (process == key) & (number == domain)
        if mine.any():
            result[mine] = names.setdefault(name if isinstance(name, (str, int)) else f"domain {domain}", len(names))
    unnamed = (result == 0) & (number > 0)
    for domain in np.unique(number[unnamed]).tolist() if unnamed.any() else ():
        # Cut out of a slice: what it is called is not known.
        result[unnamed & (number == domain)] = names.setdefault(f"domain {domain}", len(names))
    return list(names), result
