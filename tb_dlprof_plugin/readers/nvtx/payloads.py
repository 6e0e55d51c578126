"""Decodes extended payloads of NVTX ranges: structs whose layout the program registered (``nvToolsExtPayload.h``).

Nsight Systems keeps them as bytes, with the layouts in ``NVTX_PAYLOAD_SCHEMA_ENTRIES``: a header of 32 bytes (schema at
8, size of the payload at 16, both little-endian), then the struct. Other exports write JSON.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import msgspec

HEADER_BYTES = 32
_SCHEMA_AT, _SIZE_AT = 8, 16
_FORMATS = {
    3: "h", 4: "H", 5: "i", 6: "I", 7: "q", 8: "Q", 9: "q", 10: "Q", 11: "b", 12: "B", 13: "h", 14: "H", 15: "i",
    16: "I", 17: "q", 18: "Q", 22: "Q",
}  # fmt: skip
"""By ``NVTX_PAYLOAD_ENTRY_TYPE``; only whole numbers are read. ``long`` and ``size_t`` are those of 64-bit Linux."""
_LONGEST_NUMBER = 26

Layout = Mapping[int, Mapping[str, tuple[int, int]]]
"""By schema the type and offset of each field."""


def decoded(payload: bytes, layout: Layout) -> dict[str, int]:
    """The whole numbers of a payload by the names of its fields; empty where it is damaged or of an unknown layout."""
    if len(payload) < HEADER_BYTES:
        return {}
    (schema,) = struct.unpack_from("<I", payload, _SCHEMA_AT)
    (size,) = struct.unpack_from("<Q", payload, _SIZE_AT)
    body = payload[HEADER_BYTES : HEADER_BYTES + size]
    found: dict[str, int] = {}
    for name, (kind, offset) in layout.get(schema, {}).items():
        code = _FORMATS.get(kind)
        if code is not None and 0 <= offset <= len(body) - struct.calcsize(code):
            (found[name],) = struct.unpack_from(f"<{code}", body, offset)
    return found


def decoded_json(text: str) -> dict[str, int]:
    """The same of JSON, in which long numbers may be texts with commas: "1,048,576"."""
    try:
        found: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    numbers = {key: _number(value) for key, value in found.items()}
    return {key: value for key, value in numbers.items() if value is not None}


def _number(value: Any) -> int | None:
    if type(value) is int:
        return value
    digits = value.replace(",", "") if isinstance(value, str) and len(value) <= _LONGEST_NUMBER else ""
    return int(digits) if digits.isascii() and digits.isdigit() else None
