"""The planes of an XPlane file, plain or gzip: each is parsed alone, so that of a cut file the first ones stay."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.message import DecodeError

from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.xplane.trace_format import FIELDS, GZIP, PLANES, field_at
from tb_dlprof_plugin.readers.xplane.xplane_pb2 import XPlane

MOST_BYTES = 2**31 - 1
"""Of the unpacked file. protobuf itself, and so every profiler that writes the format, stops at 2 GiB."""

_ERRORS, _WARNINGS, _HOSTS = 2, 3, 4


@dataclass(frozen=True, slots=True)
class Space:
    """What a file holds; ``cut`` says that its end is missing, ``damaged`` counts planes that cannot be parsed."""

    planes: list[XPlane]
    warnings: list[str]
    hosts: list[str]
    cut: bool
    damaged: int


def read_space(path: Path) -> Space:
    """The planes of a file.

    Raises:
        TraceError: the file cannot be read, is too large or holds no plane.
    """
    text, cut = _text(path)
    planes: list[XPlane] = []
    texts: dict[int, list[str]] = {_ERRORS: [], _WARNINGS: [], _HOSTS: []}
    position, damaged = 0, 0
    view = memoryview(text)
    while position < len(text):
        number, body, after = field_at(text, position)
        if number not in FIELDS or after > len(text):
            cut = True
            break
        if number == PLANES:
            plane = XPlane()
            try:
                plane.ParseFromString(view[body:after])  # type: ignore[arg-type]
            except DecodeError:
                damaged += 1
            else:
                planes.append(plane)
        else:
            texts[number].append(bytes(view[body:after]).decode(errors="replace"))
        position = after
    if not planes:
        raise TraceError(
            f"{path} is an XPlane file of which no plane can be read: it is damaged; copy it again, or record again."
        )
    return Space(planes, texts[_ERRORS] + texts[_WARNINGS], texts[_HOSTS], cut, damaged)


def _text(path: Path) -> tuple[bytes, bool]:
    """The file unpacked, and whether a compressed one ends early."""
    too_large = f"{path} is larger than the 2 GiB that XPlane files can have; record fewer steps."
    try:
        if path.stat().st_size > MOST_BYTES:
            raise TraceError(too_large)
        text = path.read_bytes()
    except OSError as error:
        raise TraceError(f"{path} cannot be read ({error.strerror}); check the path.") from None
    if not text.startswith(GZIP):
        return text, False
    unpack = zlib.decompressobj(31)
    try:
        text = unpack.decompress(text, MOST_BYTES)
    except zlib.error:
        raise TraceError(f"{path} is a damaged gzip file; copy it again, or record again.") from None
    if unpack.unconsumed_tail:
        raise TraceError(too_large)
    return text, not unpack.eof
