"""Repairs the JSON text of one event: errors of real exporters, and damage of a disk or copy."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from tb_dlprof_plugin.readers.errors import UNDECODABLE
from tb_dlprof_plugin.readers.kineto.records import Complete, Instant

NO_CODES: frozenset[str] = frozenset()
_TIMES = ("ts", "dur")
_NO_TIME = "9e99"  # what no clock shows: an event with such a time is left out and counted with the others

_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_BLANKS = bytes(0x20 if byte < 0x20 and byte not in b"\t\n\r" else byte for byte in range(256))
_LINE_BREAKS = {ord(c): " " for c in "\t\n\r"}
_NOT_A_NUMBER = r"[-+]?(?:nan|inf(?:inity)?|1\.#\w+)(?:\(\w*\))?"
_LOOKS_LIKE_NAN = re.compile(rb":\s*[-+]?(?:nan|inf|1\.#)", re.IGNORECASE)
# With its key: so it is not part of a name.
_NAN_OF_KEY = re.compile(
    rb'("[^"\\]*(?:\\.[^"\\]*)*"\s*:\s*)' + _NOT_A_NUMBER.encode() + rb"(?=\s*[,}])", re.IGNORECASE | re.DOTALL
)
_NAN = re.compile(rf"(?<=[:,\[\s]){_NOT_A_NUMBER}(?=\s*[,}}\]])", re.IGNORECASE)
_COMMA_TOO_MANY = re.compile(r",(?=\s*[}\]])")
_LONE_SURROGATE = re.compile(
    r"(?<!\\)\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})|[c-fC-F][0-9a-fA-F]{2})"
)
_PAIR_OR_LONE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|" + _LONE_SURROGATE.pattern)
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_BACKSLASH = re.compile(r'\\(?!["\\])|\\(?=\\)\\')
_STRUCTURE = re.compile(r'[{}\[\],"]')
_QUOTE = re.compile(r'\\.|"', re.DOTALL)
_ENDS_KEY = re.compile(r"\s*:")
_ENDS_VALUE = re.compile(r'\s*(?:,\s*"[^"\\]*(?:\\.[^"\\]*)*"\s*:|,?\s*\}\s*(?:[,}\]]|\Z)|\Z)', re.DOTALL)
_ENDS_ITEM = re.compile(r'\s*(?:,\s*(?:["\[{\d-]|true|false|null)|\]\s*(?:[,}\]]|\Z)|\Z)')


class Mended(NamedTuple):
    """A repaired object; its numbers are `msgspec.Raw`, as they were written. ``rest`` is the text after it."""

    value: dict[str, Any]
    rest: str
    codes: set[str]


def mend_text(event: bytes) -> tuple[bytes, frozenset[str]]:
    """Repairs what needs no parsing of the event: UTF-8, control characters, NaN. Returns the repairs."""
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


def mend_json(text: bytes) -> Mended | None:
    """The object that a text begins with, repaired as far as needed; None if that does not help."""
    event, first_codes = mend_text(text)
    whole = event.decode()
    paired = _paired(whole)
    found = _first_object(paired)
    codes = first_codes if paired == whole else first_codes | {"bad_utf8"}
    return found and Mended(found.value, found.rest, found.codes | codes)


def without_odd_fields(event: dict[str, Any]) -> bool | None:
    """Takes out of an event what its types refuse. Returns whether there was any, None for an event of no known kind.

    A time that is no number becomes one that no clock shows.
    """
    kind = event.get("ph")
    if kind not in ("X", "i"):
        return None
    return _drop_odd(event, Complete if kind == "X" else Instant)


def _first_object(text: str) -> Mended | None:
    """Tries one repair after another, each on top of those before it that leave valid text unchanged."""
    codes: set[str] = set()
    before: set[str] = set()

    def constant(_: str) -> None:
        codes.add("not_a_number")

    decode = json.JSONDecoder(parse_float=_raw, parse_int=_raw, parse_constant=constant).raw_decode
    for name, mend in _MENDINGS:
        mended = mend(text)
        if mended is None or (name and mended == text):
            continue
        kinds = before | {name} if name else set()
        for _ in range(2):
            codes.clear()
            try:
                value, stop = decode(mended)
            except json.JSONDecodeError as error:
                if not error.msg.startswith("Invalid control character"):
                    break
                mended = mended.translate(_LINE_BREAKS)
                kinds.add("control_characters")
            except RecursionError:
                return None
            else:
                return Mended(value, mended[stop:], codes | kinds) if isinstance(value, dict) else None
        if name == "not_a_number":
            text = mended
            before = {name}
    return None


def _raw(digits: str) -> msgspec.Raw:
    return msgspec.Raw(digits.encode())


def _paired(text: str) -> str:
    """Text without escapes of half a character."""
    return _PAIR_OR_LONE.sub(lambda m: m[0] if len(m[0]) == 12 else "\\ufffd", text) if "\\u" in text else text


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
    return "".join((*result, text[copied:]))


_MENDINGS: tuple[tuple[str, Callable[[str], str | None]], ...] = (
    ("", lambda text: text),
    ("not_a_number", lambda text: _NAN.sub("null", text)),
    ("stray_text", lambda text: _COMMA_TOO_MANY.sub("", text)),
    ("unescaped_text", _escapes),
    ("unescaped_text", lambda text: (quoted := _quotes(text)) and _escapes(quoted)),
)


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any, bool], ...]:
    """Name in JSON, type, and whether that is a struct."""
    return tuple(
        (field.encode_name, field.type, isinstance(field.type, type) and issubclass(field.type, msgspec.Struct))
        for field in msgspec.structs.fields(kind)
    )


@functools.lru_cache(maxsize=64)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind, strict=False)


def _fits(value: Any, kind: Any) -> bool:
    try:
        _decoder(kind).decode(msgspec.json.encode(value))
    except UNDECODABLE:
        return False
    return True


def _drop_odd(values: dict[str, Any], kind: type[msgspec.Struct]) -> bool:
    odd = False
    for name, field_type, nested in _fields(kind):
        if name not in values:
            continue
        value = values[name]
        if value is None and name not in _TIMES:
            del values[name]
        elif nested and isinstance(value, dict):
            odd |= _drop_odd(value, field_type)
        elif nested or not _fits(value, field_type):
            if name in _TIMES:
                values[name] = msgspec.Raw(_NO_TIME.encode())
            else:
                del values[name]
                odd = True
    return odd
