"""Reads the table ``NVTX_EVENTS``.

A range's text is in ``text``, or, where the program registered it (TensorRT, NCCL and MPI do), in ``textId``. A
domain's number counts in its process; its name is the text of the row of type 75 with that number. Marks and names of
threads and categories are no ranges.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tb_dlprof_plugin.model.timeline import Ints
from tb_dlprof_plugin.readers.nsys.ids import process_key
from tb_dlprof_plugin.readers.nvtx.ranges import Ranges
from tb_dlprof_plugin.readers.sqlite_tables import MISSING, Database, integers

_PUSHED, _STARTED = (59, 70), (60, 71)
"""``eventType`` of push/pop and start/end ranges: NVTX's own, and those of imported NVTXT files."""
_DOMAIN = 75
_COLUMNS = ("start", "end", "eventType", "globalTid", "endGlobalTid", "textId", "jsonTextId", "domainId")
_MOST_TEXTS = 50_000_000


def read_ranges(database: Database) -> tuple[Ranges, list[Any], list[str], set[int]]:
    """The ranges; their texts, of which numbers are ids of strings; the names of domains; all such ids."""
    texts: dict[Any, int] = {"": 0}
    parts: list[dict[str, Ints]] = []
    domains: dict[tuple[int, int], Any] = {}
    for batch in database.batches("NVTX_EVENTS", _COLUMNS, ("text", "jsonText")):
        *numbers, inline, json = batch
        columns = dict(zip(_COLUMNS, map(integers, numbers), strict=True))
        kind = columns["eventType"]
        if not database.has("NVTX_EVENTS", "eventType"):
            kind = np.full(len(kind), _PUSHED[0], dtype=np.int64)
        for row in np.flatnonzero(kind == _DOMAIN).tolist():
            named = inline[row] if isinstance(inline[row], str) else numbers[5][row]
            key = (int(process_key(columns["globalTid"])[row]), int(columns["domainId"][row]))
            domains.setdefault(key, named)
        kept = np.isin(kind, (*_PUSHED, *_STARTED)) & (columns["start"] != MISSING)
        rows = range(len(kind)) if kept.all() else np.flatnonzero(kept).tolist()
        if any(value is not None for value in json):
            inline = [one if isinstance(one, str) else other for one, other in zip(inline, json, strict=True)]
        number_of = texts.setdefault
        registered, registered_json = numbers[5], numbers[6]
        places = [
            number_of(
                text if type(text := inline[row]) is str
                else found if type(found := registered[row]) is int
                else found if type(found := registered_json[row]) is int
                else "",
                len(texts),
            )
            for row in rows
        ]  # fmt: skip
        part = {name: column[kept] for name, column in columns.items()}
        part["text"] = np.array(places, dtype=np.int64)
        part["kind"] = kind[kept]
        parts.append(part)
    if not parts:
        return Ranges.none(), [""], [""], set()
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    process = process_key(columns["globalTid"])
    names, domain = _domains(process, columns["domainId"], domains)
    thread, end_thread = columns["globalTid"], columns["endGlobalTid"]
    ranges = Ranges(
        process=np.where(process == MISSING, -1, process),
        thread=np.where(thread == MISSING, -1, thread),
        # 0 and -1 stand for none in old versions.
        end_thread=np.where(end_thread > 0, end_thread, np.where(thread == MISSING, -1, thread)),
        start_ns=columns["start"],
        stop_ns=columns["end"],
        text=columns["text"],
        domain=domain,
        nested=np.isin(columns["kind"], _PUSHED),
    )
    ids = {one for one in texts if isinstance(one, int)} | {one for one in names if isinstance(one, int)}
    found = database.texts("StringIds", "id", "value", {one for one in names if isinstance(one, int)})
    return ranges, list(texts), [one if isinstance(one, str) else found.get(one, "") for one in names], ids


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
