"""Texts in, the same texts out without what differs from one recording to the next: places, versions, file times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

_FIELDS = {"logdir": "<logdir>", "plugin_version": "<version>", "made": "<time>"}
"""Fields of JSON that say where or when the answer was made."""
_EVENT_FILE = re.compile(r"events\.out\.tfevents\.\d+(?:\.\d+)?\.[^\s\"',:;/\\]*")
_FILE_VERSION = re.compile(r"\b\d{10,}-\d+\b")


class Normaliser:
    """Replaces ``places`` (directories, each with the word for it) and whatever else is volatile.

    Runs that were ``imported`` for the record were made just now; when other runs were made is one of their figures.
    """

    def __init__(self, places: Mapping[str, str], version: str, imported: bool = False) -> None:
        self._fields = _FIELDS | ({"created_unix_ns": "<time>"} if imported else {})
        self._places = sorted(places.items(), key=lambda place: -len(place[0]))
        self._version = re.compile(rf"(?<![\d.]){re.escape(version)}(?![\d.]\d)")

    def text(self, text: str) -> str:
        """Of a printed text."""
        for place, word in self._places:
            text = text.replace(place, word)
        text = _EVENT_FILE.sub("<event file>", text)
        return self._version.sub("<version>", text)

    def json(self, value: Any) -> str:
        """Canonical JSON of decoded JSON: keys in order, without blanks; figures to the last bit."""
        return msgspec.json.encode(self._value(value), order="sorted").decode()

    def printed(self, text: str) -> str:
        """Of what a command printed: canonical JSON where it is JSON, else the text."""
        if text[:1] in "{[" and text:
            try:
                return self.json(msgspec.json.decode(text))
            except msgspec.DecodeError:
                pass
        return self.text(text)

    def _value(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self._fields.get(key) or self._value(item, key) for key, item in value.items()}
        if isinstance(value, list):
            if value and isinstance(value[0], int | float):
                return value
            return [self._value(item) for item in value]
        if isinstance(value, str):
            if name == "version":
                return _FILE_VERSION.sub("<file version>", self.text(value))
            return self.text(value)
        return value
