"""Reads what strict JSON parsers refuse: events one by one, each mended as far as needed, or left out and counted.

Kineto and its predecessors wrote names without escaping them, NaN, control characters, bytes that are not UTF-8, and
files that end in the middle.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

from tb_dlprof_plugin.trace.columns import LARGEST_ID
from tb_dlprof_plugin.trace.damage import Damage
from tb_dlprof_plugin.trace.records import Complete, Instant
from tb_dlprof_plugin.trace.split import BETWEEN_EVENTS

_ARRAY_ENDS = re.compile(r"\s*,?\s*\]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_BARE_NUMBER = re.compile(r"(?<=[:,\[])\s*[-+]?(?:nan|inf(?:inity)?|1\.#\w+)(?=\s*[,}\]])", re.IGNORECASE)
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_S = TypeVar("_S", bound=msgspec.Struct)
_LARGEST_EVENT = 1 << 20
"""Characters of one event that are mended; a longer one is lost: no event is, but a damaged file may look so."""


class Events:
    """What `mend_events` found: the events that count, and the text behind the end of their list (None: no end)."""

    def __init__(self) -> None:
        self.complete: list[Complete] = []
        self.memory: list[Instant] = []
        self.rest: str | None = None
        self.count = 0


def mend_events(run: bytes, damage: Damage) -> Events:
    """Reads a run of events that does not decode as a whole."""
    found = Events()
    for piece in _pieces(run):
        text = piece.decode("utf-8", "replace")
        event, rest = _read(text, piece, damage)
        if event is not None:
            found.count += 1
            _sort_in(event, found, damage)
        if rest is not None:
            found.rest = rest
            return found
    return found


def lenient_json(text: str) -> Any:
    """The value of a JSON text with NaN, Infinity and control characters allowed; None where even that fails."""
    try:
        return json.loads(_BARE_NUMBER.sub("null", text), parse_constant=lambda _: None, strict=False)
    except (ValueError, RecursionError):
        return None


def _pieces(run: bytes) -> Iterator[bytes]:
    start = 0
    for between in BETWEEN_EVENTS.finditer(run):
        yield run[start : between.start() + 1]
        start = between.end()
    yield run[start:]


def _read(text: str, piece: bytes, damage: Damage) -> tuple[dict[str, Any] | None, str | None]:
    """One event as a dict (None: lost, or nothing there), and what follows the end of the list if it ends here."""
    stripped = text.lstrip(" \t\r\n,")
    if end := _ARRAY_ENDS.match(stripped):
        return None, stripped[end.end() :]
    if not stripped:
        return None, None
    value, rest, mended = None, "", set[str]()
    if len(stripped) <= _LARGEST_EVENT:
        value, rest, mended = _first_object(stripped)
    if not isinstance(value, dict):
        damage.add("events_lost")
        return None, None
    if "\N{REPLACEMENT CHARACTER}" in stripped and not _is_utf8(piece):
        mended.add("bad_utf8")
    for code in mended:
        damage.add(code)
    end = _ARRAY_ENDS.match(rest)
    return value, rest[end.end() :] if end else None


def _first_object(text: str) -> tuple[Any, str, set[str]]:
    """The value that ``text`` begins with, the text behind it, and what had to be mended for it."""
    mended: set[str] = set()
    constants: list[str] = []
    decoder = json.JSONDecoder(strict=False, parse_constant=lambda name: constants.append(name))
    for mend in (_as_it_is, _bare_numbers, _escapes, _quotes):
        candidate = mend(text)
        if candidate is None:
            continue
        constants.clear()
        try:
            value, stop = decoder.raw_decode(candidate)
        except (ValueError, RecursionError):
            continue
        if mend in (_escapes, _quotes):
            mended.add("unescaped_text")
        if constants or _bare_numbers(text) is not None:
            mended.add("not_a_number")
        if _CONTROL.search(text) or _line_break_in_string(value):
            mended.add("control_characters")
        return value, candidate[stop:], mended
    return None, "", mended


def _as_it_is(text: str) -> str | None:
    return text


def _bare_numbers(text: str) -> str | None:
    mended, count = _BARE_NUMBER.subn(" null", text)
    return mended if count else None


def _escapes(text: str) -> str | None:
    mended = _BAD_ESCAPE.sub(r"\\\\", _bare_numbers(text) or text)
    return mended if mended != text else None


def _quotes(text: str) -> str | None:
    """The text with every quote escaped that does not stand where JSON wants one.

    A quote ends a string if what follows can follow a string: a colon, a bracket, or a comma and then a key or value.
    """
    text = _escapes(text) or text
    result: list[str] = []
    inside = False
    position = 0
    for quote in re.finditer(r'\\.|"', text, re.DOTALL):
        if quote[0] != '"':
            continue
        at = quote.start()
        if not inside:
            inside = True
        elif _ENDS_STRING.match(text, at + 1):
            inside = False
        else:
            result.append(text[position:at] + '\\"')
            position = at + 1
    return "".join(result) + text[position:]


_ENDS_STRING = re.compile(r'\s*(?:$|[}\]]\s*(?:$|[,}\]])|:|,\s*(?:["\[{\d-]|true|false|null))')


def _line_break_in_string(value: dict[str, Any] | Any) -> bool:
    return isinstance(value, dict) and any(isinstance(v, str) and ("\n" in v or "\t" in v) for v in value.values())


def _is_utf8(piece: bytes) -> bool:
    try:
        piece.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _sort_in(event: dict[str, Any], found: Events, damage: Damage) -> None:
    odd: list[str] = []
    if event.get("ph") == "X":
        found.complete.append(_struct(Complete, event, odd))
    elif event.get("ph") == "i" and event.get("name") == "[memory]":
        found.memory.append(_struct(Instant, event, odd))
    damage.add("odd_fields", bool(odd))


def _struct(kind: type[_S], values: dict[str, Any], odd: list[str]) -> _S:
    """The struct of a JSON object; a field of the wrong type keeps its default and is named in ``odd``."""
    known: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        value = values.get(field.encode_name)
        if value is None:
            continue
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            if isinstance(value, dict):
                known[field.name] = _struct(field.type, value, odd)
                continue
            converted = None
        else:
            converted = _CONVERSIONS[field.type](value)
        if converted is None:
            odd.append(field.encode_name)
        else:
            known[field.name] = converted
    return kind(**known)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _integer(value: Any) -> int | None:
    number = _number(value)
    if number is None or number != number:
        return None
    # Kineto's own "none" is -1 written as unsigned.
    return int(value if isinstance(value, int) else number) if abs(number) < LARGEST_ID else -1


_CONVERSIONS: dict[Any, Callable[[Any], Any]] = {
    float: _number,
    float | None: _number,
    int | None: _integer,
    str: lambda value: value if isinstance(value, str) else None,
    int | str | None: lambda value: value if isinstance(value, int | str) else None,
    msgspec.Raw: lambda value: msgspec.Raw(json.dumps(value).encode()),
}
