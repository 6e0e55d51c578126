"""Small JSON files of other tools: their first bytes, and their content as it is."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import msgspec

from tb_dlprof_plugin.readers.errors import UNDECODABLE, TraceError

MOST_BYTES = 2**28
"""Of the unpacked text, 256 MiB: exports of these tools have some megabytes."""
_GZIP = b"\x1f\x8b"


def head_of(path: Path, count: int = 65536) -> bytes:
    """The first bytes of a file, unpacked; b"" for a damaged gzip file.

    Raises:
        TraceError: the file cannot be opened or read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(count)
    except OSError as error:
        raise TraceError(f"{path} cannot be read ({error.strerror}); check the path.") from None
    if not head.startswith(_GZIP):
        return head
    try:
        return zlib.decompressobj(31).decompress(head, count)
    except zlib.error:
        return b""


def text_of(path: Path) -> bytes:
    """The whole text, unpacked.

    Raises:
        TraceError: the file cannot be read, is damaged or too large.
    """
    try:
        with gzip.open(path) if _is_gzip(path) else path.open("rb") as file:
            text: bytes = file.read(MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise TraceError(f"{path} is a damaged gzip file; copy it again, or record again.") from None
    except OSError as error:
        raise TraceError(f"{path} cannot be read ({error.strerror}); check the path.") from None
    if len(text) > MOST_BYTES:
        raise TraceError(f"{path} is larger than {MOST_BYTES >> 20} MiB; record fewer iterations.")
    return text


def decoded(path: Path, text: bytes) -> Any:
    """What a JSON text holds.

    Raises:
        TraceError: it is no JSON.
    """
    try:
        return msgspec.json.decode(text.decode(errors="replace"))
    except UNDECODABLE:
        raise TraceError(f"{path} is damaged: it is no valid JSON; copy it again, or record again.") from None


def number(value: object) -> float:
    """A number of the file; 0 for what is none, or no finite one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0.0
    return float(value) if abs(value) < 1e15 else 0.0


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == _GZIP
