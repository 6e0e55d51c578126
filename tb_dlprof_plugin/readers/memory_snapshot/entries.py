"""Reads entries of a snapshot's history as they lie in the pickle, without making objects of them.

A history has millions of entries with the same keys in the same order. One that was unpickled says which; those behind
it are recognised by a regular expression over opcodes. Each opcode says how long it is, so that there is one way to
read them: what matches is what `pickle` would read, and what does not match is left to it.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tb_dlprof_plugin.readers.memory_snapshot.blocks import LIMIT, STEPS, History

_MOST_PATTERNS, _MOST_KEYS = 8, 30
_MOST_SIZES = 10_000
_LONGEST_TEXT = 63
_NEEDED = ("action", "size", "time_us")
_SIGNS = {**STEPS, "free_requested": 0}
"""Of the actions that need no object: what is added to the allocated bytes."""

_LONG, _SIGNED = pickle.LONG1[0], pickle.BININT[0]
_MEMOIZED = re.escape(pickle.MEMOIZE)


def _sized(code: bytes, longest: int) -> bytes:
    """An opcode with one byte that says how many follow."""
    return re.escape(code) + b"(?:%s)" % b"|".join(re.escape(bytes([n])) + b".{%d}" % n for n in range(longest + 1))


_REFERENCE = b"(?:h.|j.{4})"
_WHOLE = b"(?:K.|M.{2}|J.{4}|%s)" % _sized(pickle.LONG1, 9)
_LIST = b"\\]%s(?:\\(%s+e|%sa)?" % (_MEMOIZED, _REFERENCE, _REFERENCE)
_PAIR = b"%s%s\x86%s" % (_WHOLE, _WHOLE, _MEMOIZED)
_TEXT = _sized(pickle.SHORT_BINUNICODE, _LONGEST_TEXT) + _MEMOIZED
_OTHER = b"(?:%s|%s|[N\x88\x89]|G.{8}|(%s|%s|%s))" % (_REFERENCE, _WHOLE, _LIST, _TEXT, _PAIR)
"""Any value; the group has one that takes a place in the memo."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Of entries with the same keys: how they match, and which groups are the action, size and time."""

    match: Callable[[bytes, int], re.Match[bytes] | None]
    action: int
    size: int
    time: int
    groups: int


class EntryReader:
    """Of one pickle."""

    def __init__(self) -> None:
        self._references: dict[str, bytes] = {}
        """How a text is referred to."""
        self._signs: dict[bytes, int] = {}
        self._patterns: dict[tuple[str, ...], _Pattern | None] = {}
        self._sizes: dict[bytes, int] = {}
        """By their opcodes."""

    def memoized(self, text: str, place: int) -> None:
        """A text has got this place in the memo."""
        reference = b"h%c" % place if place < 256 else b"j" + place.to_bytes(4, "little")
        self._references[text] = reference
        if text in _SIGNS:
            self._signs[reference] = _SIGNS[text]

    def learn(self, entry: dict[Any, Any]) -> None:
        """An entry was unpickled: others may be like it."""
        keys = tuple(entry)
        if keys not in self._patterns and len(self._patterns) < _MOST_PATTERNS:
            self._patterns[keys] = self._pattern(keys)

    def _pattern(self, keys: tuple[Any, ...]) -> _Pattern | None:
        if not set(_NEEDED) <= set(keys) or len(keys) > _MOST_KEYS or not all(key in self._references for key in keys):
            return None
        values = {
            "action": b"(?P<action>%s)" % _REFERENCE,
            "size": b"(?P<size>%s)" % _WHOLE,
            "time_us": b"(?P<time_us>%s)" % _WHOLE,
        }
        parts = (re.escape(self._references[key]) + values.get(key, _OTHER) for key in keys)
        pattern = re.compile(b"\\}%s\\(%su" % (_MEMOIZED, b"".join(parts)), re.DOTALL)
        action, size, time = (pattern.groupindex[name] - 1 for name in _NEEDED)
        return _Pattern(pattern.match, action, size, time, pattern.groups)

    def read(self, content: bytes, at: int, history: History) -> tuple[int, int]:
        """Adds entries to a history as far as they are like others.

        Args:
            content: of a frame of the pickle.
            at: where an entry begins.
            history: of the list that they belong to.

        Returns:
            Where they end, and how many places they take in the memo.
        """
        places, signs, sizes = 0, self._signs, self._sizes
        times: list[int] = []
        changes: list[int] = []
        patterns = [one for one in self._patterns.values() if one is not None]
        number = 0
        while number < len(patterns):
            pattern = patterns[number]
            found = pattern.match(content, at)
            if found is None:
                number += 1
                continue
            groups = found.groups()
            sign = signs.get(groups[pattern.action])
            if sign is None:
                break
            if sign:
                opcode = groups[pattern.size]
                size = sizes.get(opcode)
                if size is None:
                    if len(sizes) >= _MOST_SIZES:
                        sizes.clear()
                    size = sizes[opcode] = _number(opcode)
                times.append(_number(groups[pattern.time]))
                changes.append(sign * size)
            # The entry itself, and each value with a place.
            places += 1 + pattern.groups - len(_NEEDED) - groups.count(None)
            at = found.end()
            if number:
                patterns.insert(0, patterns.pop(number))
                number = 0
        history.extend(times, changes)
        return at, places


def _number(opcode: bytes) -> int:
    code = opcode[0]
    if code == _LONG:
        value = int.from_bytes(opcode[2:], "little", signed=True)
    else:
        value = int.from_bytes(opcode[1:], "little", signed=code == _SIGNED)
    return value if 0 <= value < LIMIT else 0
