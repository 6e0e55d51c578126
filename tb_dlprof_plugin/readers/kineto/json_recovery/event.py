"""Repairs the JSON text of one event: the faults of torch's exporters.

Each is in files that torch wrote: quotes and line breaks of source lines and generated code in the names of Python
frames (pytorch/pytorch issues 113001, 130622 and 146900), backslashes of Windows paths (issue 98432), names of bytes
that are not UTF-8 or hold control characters (issue 136180, pytorch/kineto issue 80), NaN and infinity as C++ and
Python print them, and quotes in user metadata, which current Kineto writes as ``/"`` (tests/traces/cpu_metadata).
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import msgspec

NO_CODES: frozenset[str] = frozenset()
_TIMES = ("ts", "dur")
_NO_TIME = "9e99"  # what no clock shows: an event with such a time is left out and counted with the others

_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_BLANKS = bytes(0x20 if byte < 0x20 and byte not in b"\t\n\r" else byte for byte in range(256))
_LINE_BREAKS = {ord(c): " " for c in "\t\n\r"}
_LOOKS_LIKE_NAN = re.compile(rb":\s*[-+]?(?:nan|inf|1\.#)", re.IGNORECASE)
# With its key: so it is not part of a name.
_NAN_OF_KEY = re.compile(
    rb'("[^"\\]*(?:\\.[^"\\]*)*"\s*:\s*)[-+]?(?:nan|inf(?:inity)?|1\.#\w+)(?:\(\w*\))?(?=\s*[,}])',
    re.IGNORECASE | re.DOTALL,
)
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_BACKSLASH = re.compile(r'\\(?!["\\])|\\(?=\\)\\')
_STRUCTURE = re.compile(r'[{}\[\],"]')
_QUOTE = re.compile(r'\\.|"', re.DOTALL)
_ENDS_KEY = re.compile(r"\s*:")
_ENDS_VALUE = re.compile(r'\s*(?:,\s*"[^"\\]*(?:\\.[^"\\]*)*"\s*:|,?\s*\}\s*(?:[,}\]]|\Z)|\Z)', re.DOTALL)
_ENDS_ITEM = re.compile(r'\s*(?:,\s*(?:["\[{\d-]|true|false|null)|\]\s*(?:[,}\]]|\Z)|\Z)')


class Repaired(NamedTuple):
    """A repaired object; its numbers are `msgspec.Raw`, as they were written. ``rest`` is the text behind it."""

    value: dict[str, Any]
    rest: str
    codes: set[str]


def repair_text(event: bytes) -> tuple[bytes, frozenset[str]]:
    """Repairs what can be repaired without parsing the event: UTF-8, control characters, NaN. Returns which it did."""
    codes: set[str] = set()
    if not event.isascii():
        try:
            event.decode()
        except UnicodeDecodeError:
            event = event.decode("utf-8", "replace").encode()
            codes.add("bad_utf8")
    if _CONTROL.search(event):
        event = event.translate(_BLANKS)
        codes.add("control_characters")
    if _LOOKS_LIKE_NAN.search(event):

        def number(match: re.Match[bytes]) -> bytes:
            if match[1].startswith((b'"ts"', b'"dur"')):
                return match[1] + _NO_TIME.encode()
            codes.add("not_a_number")
            return match[1] + b"null"

        event = _NAN_OF_KEY.sub(number, event)
    return event, frozenset(codes) if codes else NO_CODES


def repair_json(text: bytes) -> Repaired | None:
    """The object that a text begins with, repaired as far as needed; None where that does not help."""
    event, codes = repair_text(text)
    found = _first_object(event.decode().lstrip(" \t\r\n,\0"))
    return found and Repaired(found.value, found.rest, found.codes | codes)


def drop_unwritable(values: dict[str, Any]) -> bool:
    """Takes out what cannot be written as JSON again: half of a character, too many levels. Returns whether any was."""
    found = False
    for name, value in list(values.items()):
        if name == "args" and isinstance(value, dict):
            found |= drop_unwritable(value)
            continue
        try:
            msgspec.json.encode({name: value})
        except (RecursionError, UnicodeEncodeError):
            del values[name]
            found = True
    return found


def _first_object(text: str) -> Repaired | None:
    """Tries one repair after another, each on the text as it was: the later ones change more of it."""
    codes: set[str] = set()

    def constant(_: str) -> None:
        codes.add("not_a_number")

    decode = json.JSONDecoder(parse_float=_raw, parse_int=_raw, parse_constant=constant).raw_decode
    for repair in (_as_it_is, _escapes, _quotes):
        repaired = repair(text)
        if repaired is None or (repair is not _as_it_is and repaired == text):
            continue
        kinds = set() if repair is _as_it_is else {"unescaped_text"}
        for _ in range(2):
            codes.clear()
            try:
                value, stop = decode(repaired)
            except json.JSONDecodeError as error:
                if not error.msg.startswith("Invalid control character"):
                    break
                repaired = repaired.translate(_LINE_BREAKS)
                kinds.add("control_characters")
            except RecursionError:
                return None
            else:
                return Repaired(value, repaired[stop:], codes | kinds) if isinstance(value, dict) else None
    return None


def _as_it_is(text: str) -> str:
    return text


def _raw(digits: str) -> msgspec.Raw:
    return msgspec.Raw(digits.encode())


def _escapes(text: str) -> str:
    """A string with an escape that JSON does not know was written without escaping, such as a Windows path."""
    if "\\" not in text:
        return text
    return _STRING.sub(lambda m: _BACKSLASH.sub(r"\\\\", m[0]) if _BAD_ESCAPE.search(m[0]) else m[0], text)


def _quotes(text: str) -> str | None:
    """The first object with every quote in a string escaped; None where a string has no end.

    A quote ends a key before a colon, a value before the next key or the object's end, an item before the next item or
    the list's end. So does one behind a backslash, which then is the last letter of a path.
    """
    result: list[str] = []
    copied = position = 0
    brackets: list[str] = []
    is_key = False
    while mark := _STRUCTURE.search(text, position):
        position = mark.end()
        if mark[0] in "{[":
            brackets.append(mark[0])
            is_key = mark[0] == "{"
        elif mark[0] in "}]":
            if brackets:
                brackets.pop()
            if not brackets:
                break
        elif mark[0] == ",":
            is_key = brackets[-1:] == ["{"]
        else:
            ends = _ENDS_KEY if is_key else _ENDS_VALUE if brackets[-1:] == ["{"] else _ENDS_ITEM
            while True:
                quote = _QUOTE.search(text, position)
                if quote is None:
                    return None
                position = quote.end()
                if quote[0] == '"':
                    if ends.match(text, position):
                        break
                    result += (text[copied : quote.start()], '\\"')
                    copied = position
                elif quote[0] == '\\"' and ends.match(text, position):
                    result += (text[copied : quote.start()], '\\\\"')
                    copied = position
                    break
            is_key = False
    return _escapes("".join((*result, text[copied:])))
