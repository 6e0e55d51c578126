"""Copies a trace event by event, with some of them changed.

Read as `tb_dlprof_plugin.readers.kineto.reader` reads: run by run, repaired where it is not JSON, in the memory of one
run. The output is always valid JSON: one event per line, gzip-compressed.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from tb_dlprof_plugin.model.whole_file import whole_file
from tb_dlprof_plugin.readers.errors import UNDECODABLE
from tb_dlprof_plugin.readers.kineto.blocks import read_blocks
from tb_dlprof_plugin.readers.kineto.json_recovery.event import repair_json
from tb_dlprof_plugin.readers.kineto.json_recovery.log import Damage
from tb_dlprof_plugin.readers.kineto.json_recovery.stream import Repair
from tb_dlprof_plugin.readers.kineto.split import event_runs, open_events
from tb_dlprof_plugin.readers.sqlite_tables import collector_paused

Event = dict[str, Any]
_EVENTS: msgspec.json.Decoder[list[Event]] = msgspec.json.Decoder(list[Event])
_GZIP_LEVEL = 6


class EventChanges(Protocol):
    """Changes to the events of one trace."""

    def change(self, event: Event) -> bool:
        """Changes an event in place; False leaves it out."""
        ...

    def more(self) -> list[Event]:
        """Events to add after the others; called last."""
        ...


def rewrite_trace(
    source: Path,
    target: Path,
    changes: Callable[[dict[str, Any]], EventChanges],
    first: dict[str, str],
    progress: Callable[[float], None] | None = None,
) -> None:
    """Write a changed copy of a trace.

    Args:
        source: the trace, plain or gzip.
        target: the copy, always gzip. Written atomically.
        changes: is called with the keys before the events, which it may change, and returns the `EventChanges` for the
            events.
        first: keys and values to put at the head of the document.
        progress: called with the fraction read (0 to 1).

    Raises:
        TraceError: the source cannot be read, or is not a trace.
        OSError: the target cannot be written.
    """
    damage = Damage()
    blocks = read_blocks(source, damage, progress)
    head, text = open_events(source, blocks, damage)
    with whole_file(target) as file, collector_paused(), gzip.GzipFile("", "wb", _GZIP_LEVEL, file) as packed:
        _copy(head, text, blocks, damage, changes, first, packed.write)


def _copy(
    head: bytes,
    text: bytes,
    blocks: Iterator[bytes],
    damage: Damage,
    changes: Callable[[dict[str, Any]], EventChanges],
    first: dict[str, str],
    write: Callable[[bytes], object],
) -> None:
    is_list = not head.startswith(b"{")
    header: dict[str, Any] = {**first, **({} if is_list else _keys(head + b"]}"))}
    translation = changes(header)
    write(msgspec.json.encode(header)[:-1] + b',"traceEvents":[')
    separator = b"\n"

    def take(events: list[Event]) -> None:
        nonlocal separator
        lines = [msgspec.json.encode(event) for event in events if translation.change(event)]
        if lines:
            write(separator + b",\n".join(lines))
            separator = b",\n"

    def accept(run: bytes) -> bool:
        events = _decode(run)
        if events is not None:
            take(events)
        return events is not None

    repair = Repair(_decode, take, damage)
    rest, ended = event_runs(text, blocks, accept, lambda run: repair.read(run, False), damage)
    rest = rest.rstrip(b"\0")
    behind: dict[str, Any] = {}
    if not ended:
        whole = _decode(b"[" + rest) if is_list else None
        document = {} if is_list else _keys(b'{"traceEvents":[' + rest, repair=False)
        events = document.pop("traceEvents", None)
        if whole is not None:
            take(whole)
        elif isinstance(events, list) and all(isinstance(event, dict) for event in events):
            take(events)
            behind = document
        else:
            stop, ended = repair.read(rest, True)
            rest = rest[stop:]
    if ended and not is_list:
        behind = _keys(b'{"traceEvents":[]' + rest)
    added = translation.more()
    if added:
        write(separator + b",\n".join(map(msgspec.json.encode, added)))
    more = {key: value for key, value in behind.items() if key != "traceEvents" and key not in header}
    write(b"\n]" + (b"," + msgspec.json.encode(more)[1:] if more else b"}") + b"\n")


def _decode(run: bytes) -> list[Event] | None:
    try:
        return _EVENTS.decode(run)
    except UNDECODABLE:
        return None


def _keys(text: bytes, repair: bool = True) -> dict[str, Any]:
    """The keys of a document, whose text begins with a brace; empty if it is damaged."""
    try:
        keys = msgspec.json.decode(text, type=dict[str, Any])
    except UNDECODABLE:
        repaired = repair_json(text) if repair else None
        keys = repaired.value if repaired else {}
    if repair:
        keys.pop("traceEvents", None)
    return keys
