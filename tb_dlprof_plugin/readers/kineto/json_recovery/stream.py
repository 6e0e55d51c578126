"""Reads runs of events that do not decode as a whole: each event repaired as far as needed, or left out and counted.

Kineto and its predecessors wrote names without escaping them, NaN, control characters, bytes that are not UTF-8, and
files that end in the middle. What is common is repaired for a whole run at once; the rest of the run is then read in
stretches that grow where they decode and shrink where they do not, and an event that does not decode alone is repaired
alone. So one bad event costs a few decodes of its run, and a run of bad ones less than 0.1 ms each.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from tb_dlprof_plugin.readers.errors import UNDECODABLE
from tb_dlprof_plugin.readers.kineto.json_recovery.event import Mended, mend_json, mend_text, without_odd_fields
from tb_dlprof_plugin.readers.kineto.json_recovery.log import Damage
from tb_dlprof_plugin.readers.kineto.split import cuts_of

_LARGEST_MENDED_EVENT = 1 << 20  # bytes: no event is as long, but what a damaged file makes of many may be
_MOST_MENDED_ALONE = 300_000
"""Events repaired one by one in a file, at up to 0.1 ms each. Then whole stretches are lost, so that the time per
file is bounded: no exporter writes as many that need it."""
_LOST_AT_ONCE = 64

_SEPARATORS = re.compile(r"[\s,\0]*")
_SCAN = json.JSONDecoder(strict=False, parse_int=len, parse_float=len).raw_decode
_WINDOW = 1 << 13
_LONGEST_WORD = len("-Infinity")
_LIST_ENDS = re.compile(r'\]\s*(?:[^,\]{\s]|,\s*"|,?\s*\Z)')
_EVENT_BEGINS = re.compile(r'\{\s*"(?:ph|name|cat|pid|tid|ts|dur|id|args|s|bp|sf|tts)"\s*:')
_PHASE_FIRST = re.compile(r'\{\s*"ph"\s*:')
_MAYBE_LIST_ENDS = re.compile(rb'\](?=\s*(?:\}|,\s*"|\Z))')
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
        damage: called with repairs and losses.
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
        self._hand_on(self._events)  # together: columns of one event each would cost more than the repair
        self._events = []
        return read

    def _accept(self, text: bytes) -> bool:
        events = self._decode(text)
        if events is None:
            return False
        self._events += events
        return True

    def _read(self, run: bytes, last: bool) -> Read:
        text = run.decode("latin-1")  # one character a byte: places in it are places in the run
        between = cuts_of(run)
        starts = [_SEPARATORS.match(text).end(), *(cut.end() for cut in between)]  # type: ignore[union-attr]
        stops = [*(cut.start() + 1 for cut in between), len(run)]
        mended = [mend_text(run[start:stop]) for start, stop in zip(starts, stops, strict=True)]
        walk = _Walk(run, text, stops, starts, last)
        position = piece = 0
        reach = len(mended)
        while True:
            before = position
            position = _SEPARATORS.match(text, position).end()  # type: ignore[union-attr]
            if (
                text[position : position + 1] == "{"
                and text[before - 1 : before] == "}"
                and "," not in text[before:position]
            ):
                self._damage.add("stray_text")  # no comma between two events
            if position == len(run):
                return Read(position, False)
            piece = bisect_left(starts, position, lo=piece)
            if piece < len(starts) and position == starts[piece]:
                taken = mended[piece : piece + reach]
                if self._accept(b"[" + b",".join(event for event, _ in taken) + b"]"):
                    for _, codes in taken:
                        self._damage.add_all(codes)
                    piece += len(taken)
                    position = starts[piece] if piece < len(starts) else len(run)
                    reach *= 2
                    continue
                if self._alone >= _MOST_MENDED_ALONE and reach <= _LOST_AT_ONCE < len(starts) - piece:
                    self._damage.add("events_lost", len(taken))
                    position = starts[piece + len(taken)]
                    reach = _LOST_AT_ONCE
                    continue
                if reach > 1:
                    reach = min(reach, len(taken)) // 4 or 1
                    continue
            step = self._one(walk, position)
            if step.ended or step.stop == position:
                return step
            position = step.stop
            reach = 1

    def _one(self, walk: _Walk, position: int) -> Read:
        """Reads one event, or skips what is none."""
        if _LIST_ENDS.match(walk.text, position):
            return Read(position + 1, True)
        if walk.text[position] != "{":
            self._damage.add("stray_text")
            begins = _EVENT_BEGINS.search(walk.text, position)
            stop = begins.start() if begins else walk.list_end(position, stray=True)
            return Read(len(walk.run) if stop is None else stop, False)
        event_end, region_end = walk.object_at(position)
        if event_end:
            self._take(walk.run[position:event_end])
            return Read(event_end, False)
        if region_end == len(walk.run) and not walk.last and region_end - position < _LARGEST_MENDED_EVENT:
            return Read(position, False)
        at_end = region_end == len(walk.run)
        if (
            not at_end
            and walk.text[region_end - 1] != "}"
            and not walk.text[position:region_end].strip("{[]}, \t\r\n\0")
        ):
            # A bracket too many before the event.
            self._damage.add("stray_text")
            return Read(region_end, False)
        return self._mend(walk, position, region_end)

    def _mend(self, walk: _Walk, position: int, region_end: int) -> Read:
        list_end = walk.list_end(position) if region_end == len(walk.run) else None
        region = walk.run[position : region_end if list_end is None else list_end]
        found = self._mend_alone(region)
        if found is None:
            self._damage.add("events_lost")
            return Read(position + len(region), False)
        self._take_value(found.value, found.codes)
        rest = found.rest[_SEPARATORS.match(found.rest).end() :]  # type: ignore[union-attr]
        behind = rest[1:].encode()
        if region_end == len(walk.run) and _LIST_ENDS.match(rest) and region.endswith(behind):
            return Read(region_end - len(behind), True)
        self._damage.add("stray_text", bool(rest))
        return Read(position + len(region), False)

    def _mend_alone(self, event: bytes) -> Mended | None:
        if self._alone >= _MOST_MENDED_ALONE or len(event) > _LARGEST_MENDED_EVENT:
            return None
        self._alone += 1
        return mend_json(event)

    def _take(self, event: bytes) -> None:
        """Takes in one event whose brackets match."""
        mended, codes = mend_text(event)
        if self._accept(b"[" + mended + b"]"):
            self._damage.add_all(codes)
            return
        found = self._mend_alone(event)
        if found is not None:
            self._take_value(found.value, found.codes)
        else:
            self._damage.add("events_lost")

    def _take_value(self, value: dict[str, Any], codes: set[str]) -> None:
        odd: bool | None = False
        if not self._accepts(value):
            odd = without_odd_fields(value)
            if odd is None or not self._accepts(value):
                self._damage.add("events_lost")
                return
        self._damage.add_all(codes | {"odd_fields"} if odd else codes)

    def _accepts(self, value: dict[str, Any]) -> bool:
        try:
            return self._accept(b"[" + msgspec.json.encode(value) + b"]")
        except (RecursionError, UnicodeEncodeError):
            return False


class _Walk:
    """A damaged run, to be read event by event."""

    def __init__(self, run: bytes, text: str, stops: list[int], starts: list[int], last: bool) -> None:
        self.run = run
        self.text = text
        self.last = last
        self._stops = stops
        self._starts = starts

    def object_at(self, position: int) -> tuple[int, int]:
        """Where the event that begins here ends, or else 0 and where what is damaged ends."""
        stop, place = self._scan(position)
        end = stop or self.end_behind(place)
        # No event holds another: text is missing between them.
        if swallowed := _PHASE_FIRST.search(self.text, position + 1, max(place, end)):
            return 0, min(self.end_behind(swallowed.start()), swallowed.start())
        return (stop, 0) if stop else (0, end)

    def list_end(self, position: int, stray: bool = False) -> int | None:
        """Where the bracket is that ends the list behind a damaged place; None where the file has no such end."""
        if self.last:
            for bracket in _MAYBE_LIST_ENDS.finditer(self.run, max(position, len(self.run) - _LARGEST_MENDED_EVENT)):
                rest = self.run[bracket.end() :]
                # A file that is cut in an event may end with a bracket as well.
                bare = rest.strip() in (b"", b"}")
                if (stray or self.run[: bracket.start()].rstrip().endswith(b"}")) if bare else _is_rest(rest):
                    return bracket.start()
        return None

    def _scan(self, position: int) -> tuple[int, int]:
        """Where the object that begins here ends (0: nowhere), and up to where it makes sense."""
        window = _WINDOW
        while True:
            # In a part of the run, because an error counts the lines before it.
            part = self.text[position : position + window]
            try:
                stop = position + _SCAN(part)[1]
            except RecursionError:
                return 0, position + 1
            except json.JSONDecodeError as error:
                at_end = error.pos + _LONGEST_WORD >= len(part) or error.msg.startswith("Unterminated")
                if not at_end or position + window >= len(self.text):
                    return 0, position + max(error.pos, 1)
                window *= 16
            else:
                return stop, stop

    def end_behind(self, place: int) -> int:
        """The end of the event that is damaged at ``place``: the next cut, or the end of the run."""
        return self._stops[bisect_left(self._starts, place, lo=1) - 1]


def _is_rest(text: bytes) -> bool:
    """Whether this can stand behind the bracket that ends the list of events in a document."""
    try:
        keys = msgspec.json.decode(b'{"traceEvents":[]' + text)
    except UNDECODABLE:
        return False
    return _KEYS_OF_ARGS.isdisjoint(keys)
