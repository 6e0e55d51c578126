"""Reads runs of events that do not decode as a whole: each event repaired as far as needed, or left out and counted.

Such runs come from Kineto and its predecessors, which wrote names without escaping them, NaN, control characters and
bytes that are not UTF-8, and from processes that ended while they wrote. A run is cut where one event ends and the next
begins, by the first keys of events. The events are read in stretches that grow where they decode and shrink where they
do not, and an event that does not decode alone is repaired alone. So one bad event costs a few decodes of its run, and
a run of bad ones less than 0.1 ms each.

The text between two cuts is one event, unless sound JSON goes on behind the cut. Where a bracket or comma between two
events is missing, or an event has no end, the neighbouring events are left out: no exporter writes that.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from tb_dlprof_plugin.readers.errors import UNDECODABLE
from tb_dlprof_plugin.readers.kineto.json_recovery.event import drop_unwritable, repair_json, repair_text
from tb_dlprof_plugin.readers.kineto.json_recovery.log import Damage
from tb_dlprof_plugin.readers.kineto.split import cuts_of

_LARGEST_REPAIRED_EVENT = 1 << 20  # bytes: no event is as long, but what a damaged file makes of many may be
_MOST_REPAIRED_ALONE = 300_000
"""Events repaired one by one in a file, at up to 0.1 ms each. Then stretches are left out whole, so that the time for a
file is bounded: no exporter writes as many that need it."""
_LOST_AT_ONCE = 64

_LIST_ENDS = re.compile(r'[\s,\0]*\](?P<behind>)\s*(?:[^,\]{\s]|,\s*"|,?\s*\Z)')
_BLANK = re.compile(r"[\s,\0]*")
_SCAN = json.JSONDecoder(strict=False, parse_int=len, parse_float=len).raw_decode
_WINDOW = 1 << 11
_LONGEST_WORD = len("-Infinity")
_MAYBE_LIST_ENDS = re.compile(rb'\](?=\s*(?:\}|,\s*"|\Z))')
_SEPARATORS = b" \t\r\n,\0"
_KEYS_OF_ARGS = {"Input type", "Input Strides", "Concrete Inputs", "grid", "block"}
"""What stands behind a list in an event: a file cut there is no document that ends."""


class Read(NamedTuple):
    """How far a run was read, and whether the list of events ended there: what follows is the rest of the document."""

    stop: int
    ended: bool


class Repair:
    """Reads damaged runs of one file.

    Args:
        decode: decodes a JSON list of events; None where that fails.
        take: takes decoded events in.
        damage: counts what was repaired and lost.
    """

    def __init__(
        self, decode: Callable[[bytes], list[Any] | None], take: Callable[[list[Any]], None], damage: Damage
    ) -> None:
        self._decode = decode
        self._hand_on = take
        self._damage = damage
        self._events: list[Any] = []
        self._alone = 0

    def read(self, run: bytes, last: bool) -> Read:
        """Reads a run of events that begins between two of them.

        Args:
            run: the events, without the bracket before them.
            last: the file ends with this run. Where it does not, an event without an end is not read: its end may
                follow.
        """
        read = self._read(run, last)
        self._hand_on(self._events)  # together: columns of one event each would cost more than repairing it
        self._events = []
        return read

    def _read(self, run: bytes, last: bool) -> Read:
        between = cuts_of(run)
        starts = [0, *(cut.end() for cut in between)]
        stops = [*(cut.start() + 1 for cut in between), len(run)]
        repaired = [repair_text(run[start:stop]) for start, stop in zip(starts, stops, strict=True)]
        at, reach = 0, len(repaired)
        while at < len(repaired):
            taken = repaired[at : at + reach]
            if self._accept(b"[" + b",".join(text for text, _ in taken) + b"]"):
                for _, codes in taken:
                    self._damage.add_all(codes)
                at += len(taken)
                reach *= 2
            elif reach > 1:
                reach = min(reach, len(taken)) // 4 or 1
            elif self._alone >= _MOST_REPAIRED_ALONE and len(repaired) - at > _LOST_AT_ONCE:
                self._damage.add("events_lost", _LOST_AT_ONCE)
                at += _LOST_AT_ONCE
            else:
                start = starts[at]
                end = _end_of_object(run, start)
                if end is None and not last and len(run) - start < _LARGEST_REPAIRED_EVENT:
                    return Read(start, False)
                piece = max(at, bisect_left(stops, end or 0))
                stop = stops[piece]
                behind = self._alone_or_lost(run[start:stop], last and piece == len(stops) - 1)
                if behind is not None:
                    return Read(stop - behind, True)
                at = piece + 1
        return Read(len(run), False)

    def _alone_or_lost(self, text: bytes, last: bool) -> int | None:
        """Reads the text of one event; returns the length of what follows the list's end, if that is in it too."""
        list_end = _list_end(text) if last else None
        events = text[:list_end]
        rest = self._one(events)
        end = _LIST_ENDS.match(rest)
        behind = rest[end.start("behind") :].encode() if end else b""
        if end and (list_end is None or behind.strip()) and events.endswith(behind):
            return len(behind) + len(text) - len(events)
        if end is None or list_end is not None:
            self._lost(rest.encode())
        return None if list_end is None else len(text) - list_end - 1

    def _one(self, text: bytes) -> str:
        """Reads the event that a text begins with; returns what follows it, "" where the event cannot be read."""
        found = None
        if self._alone < _MOST_REPAIRED_ALONE and len(text) <= _LARGEST_REPAIRED_EVENT and text.strip(_SEPARATORS):
            self._alone += 1
            found = repair_json(text)
        if found is None:
            self._lost(text)
            return ""
        self._take(found.value, found.codes)
        return found.rest

    def _lost(self, text: bytes) -> None:
        """Counts the events in text that cannot be read; what is none is stray."""
        if text.strip(_SEPARATORS):
            events = text.count(b'"ph"') or (b":" in text or b"{" in text)
            self._damage.add("events_lost" if events else "stray_text", events or 1)

    def _take(self, value: dict[str, Any], codes: set[str]) -> None:
        odd = drop_unwritable(value)
        if self._accept(b"[" + msgspec.json.encode(value) + b"]"):
            self._damage.add_all(codes | {"odd_fields"} if odd else codes)
        else:
            self._damage.add("events_lost")

    def _accept(self, text: bytes) -> bool:
        events = self._decode(text)
        if events is None:
            return False
        self._events += events
        return True


def _end_of_object(run: bytes, start: int) -> int | None:
    """Where the object that begins here ends: 0 where it is damaged, None where the text ends before it."""
    window = _WINDOW
    while True:
        # In a part of the run, because an error counts the lines before it; one character a byte keeps places.
        part = run[start : start + window].decode("latin-1")
        try:
            return start + _SCAN(part, _BLANK.match(part).end())[1]  # type: ignore[union-attr]
        except RecursionError:
            return 0
        except json.JSONDecodeError as error:
            if error.pos + _LONGEST_WORD < len(part) and not error.msg.startswith("Unterminated"):
                return 0
            if start + window >= len(run):
                return None
            window *= 16


def _list_end(text: bytes) -> int | None:
    """Where the bracket is that ends the list behind an event that cannot be read; None where the file is cut."""
    for bracket in _MAYBE_LIST_ENDS.finditer(text, max(0, len(text) - _LARGEST_REPAIRED_EVENT)):
        rest = text[bracket.end() :]
        # A file that is cut in an event may end with a bracket as well.
        before = text[: bracket.start()].rstrip()
        bare = rest.strip() in (b"", b"}")
        if (b"{" not in before or before.endswith(b"}")) if bare else _is_rest(rest):
            return bracket.start()
    return None


def _is_rest(text: bytes) -> bool:
    """Whether this can stand behind the bracket that ends the list of events in a document."""
    try:
        keys = msgspec.json.decode(b'{"traceEvents":[]' + text)
    except UNDECODABLE:
        return False
    return _KEYS_OF_ARGS.isdisjoint(keys)
