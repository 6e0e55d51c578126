"""The format of TensorFlow's, Keras' and JAX' profiles: XPlane files, plain or gzip."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.log_directory import ENDINGS, in_session
from tb_dlprof_plugin.readers.options import ReadOptions

NAME = "xplane"
TITLE = "a profile of TensorFlow, Keras or JAX (*.xplane.pb)"

GZIP = b"\x1f\x8b"
PLANES = 1
FIELDS = (PLANES, 2, 3, 4)
"""Numbers of the fields of an XSpace: planes, errors, warnings, hosts."""
_NAMES = (b"/host:", b"/device:", b"Task Environment")
"""What names of planes begin with."""
_HEAD_BYTES = 65536


def recognises(path: Path) -> bool:
    """Whether a file begins like an XSpace.

    Raises:
        TraceError: the file cannot be opened or read.
    """
    try:
        with path.open("rb") as file:
            return _looks_like_space(file.read(_HEAD_BYTES))
    except OSError as error:
        raise TraceError(f"{path} cannot be read ({error.strerror}); check the path.") from None


def read(path: Path, options: ReadOptions, progress: Callable[[float], None] | None = None) -> list[Timeline]:
    """A Timeline for each GPU that worked, else one for the host.

    Hosts of a session are ranks of one run: the GPUs of the first host, by name, come first. All are taken to have as
    many GPUs as this one.
    """
    from tb_dlprof_plugin.readers.xplane.reader import read_xplane

    return read_xplane(path, progress, _place_among_hosts(path))


def run_name(path: Path) -> str:
    """The session's time for a file in a log directory, else the file's name without its ending."""
    return path.resolve().parent.name if in_session(path) else _stem(path)


def files_below(folder: Path) -> set[Path]:
    """XPlane files in a directory and those below it."""
    return {file for ending in ENDINGS for file in folder.rglob(f"*{ending}") if file.is_file() and file.name[0] != "."}


def _stem(path: Path) -> str:
    for ending in ENDINGS[::-1]:
        if path.name.endswith(ending):
            return path.name.removesuffix(ending) or path.name
    return path.name


def _place_among_hosts(path: Path) -> int | None:
    """How many hosts of the session come before this one; None where there is no other."""
    if not in_session(path):
        return None
    hosts = sorted(file.name for ending in ENDINGS for file in path.parent.glob(f"*{ending}"))
    return hosts.index(path.name) if len(hosts) > 1 and path.name in hosts else None


def _looks_like_space(head: bytes) -> bool:
    """Whether a file's first bytes are those of an XSpace: its fields, the first plane of which begins like one."""
    if head.startswith(GZIP):
        try:
            head = zlib.decompressobj(31).decompress(head, 4096)
        except zlib.error:
            return False
    position = 0
    while position < len(head):
        number, body, after = field_at(head, position)
        if number not in FIELDS:
            return False
        if number == PLANES:
            return _begins_like_plane(head[body : min(after, len(head))])
        position = after
    return False


def field_at(text: bytes, position: int) -> tuple[int, int, int]:
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
