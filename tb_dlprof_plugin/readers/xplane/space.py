"""The planes of an XPlane file, plain or gzip: each is parsed alone, so that of a cut file the first ones stay."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.message import DecodeError

from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.xplane.xplane_pb2 import XPlane

MOST_BYTES = 2**31 - 1
"""Of the unpacked file. protobuf itself, and so every profiler that writes the format, stops at 2 GiB."""

_GZIP = b"\x1f\x8b"
_NAMES = (b"/host:", b"/device:", b"Task Environment")
"""What names of planes begin with."""
_PLANES, _ERRORS, _WARNINGS, _HOSTS = 1, 2, 3, 4
_FIELDS = (_PLANES, _ERRORS, _WARNINGS, _HOSTS)


@dataclass(frozen=True, slots=True)
class Space:
    """What a file holds; ``cut`` says that its end is missing, ``damaged`` counts planes that cannot be parsed."""

    planes: list[XPlane]
    warnings: list[str]
    hosts: list[str]
    cut: bool
    damaged: int


def looks_like_space(head: bytes) -> bool:
    """Whether a file's first bytes are those of an XSpace: its fields, the first plane of which begins like one."""
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(31).decompress(head, 4096)
        except zlib.error:
            return False
    position = 0
    while position < len(head):
        number, body, after = _field(head, position)
        if number not in _FIELDS:
            return False
        if number == _PLANES:
            return _begins_like_plane(head[body : min(after, len(head))])
        position = after
    return False


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
        number, body, after = _field(text, position)
        if number not in _FIELDS or after > len(text):
            cut = True
            break
        if number == _PLANES:
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
    if not text.startswith(_GZIP):
        return text, False
    unpack = zlib.decompressobj(31)
    try:
        text = unpack.decompress(text, MOST_BYTES)
    except zlib.error:
        raise TraceError(f"{path} is a damaged gzip file; copy it again, or record again.") from None
    if unpack.unconsumed_tail:
        raise TraceError(too_large)
    return text, not unpack.eof


def _field(text: bytes, position: int) -> tuple[int, int, int]:
    """Number, beginning and end of the value of a length-delimited field; number 0 for anything else."""
    tag, position = _varint(text, position)
    length, position = _varint(text, position)
    if tag is None or length is None or tag & 7 != 2:
        return 0, position, position
    return tag >> 3, position, position + length


def _varint(text: bytes, position: int) -> tuple[int | None, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(text):
            return None, position
        byte = text[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    return None, position


def _begins_like_plane(text: bytes) -> bool:
    """Whether bytes begin with an id (a varint), then a name, as far as they go."""
    position = 0
    if text[:1] == b"\x08":
        _, position = _varint(text, 1)
    if position >= len(text):
        return position > 0
    if text[position] != 0x12:
        # A plane without a name has lines or stats only; of one whose first bytes say neither nothing is known.
        return text[position] in (0x1A, 0x22, 0x2A, 0x32)
    length, position = _varint(text, position + 1)
    name = text[position : position + (length or 0)]
    return length is not None and length < 4096 and name.startswith(_NAMES)
