"""SQLite files on disk: recognised by their first bytes, and unpacked to a temporary file where they are gzip."""

from __future__ import annotations

import contextlib
import gzip
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from tb_dlprof_plugin.readers.errors import TraceError

DATABASE_ENDINGS = (".sqlite", ".sqlite.gz")
HEADER = b"SQLite format 3\0"
_GZIP = b"\x1f\x8b"
_BLOCK = 1 << 20
_MOST_GROWTH = 1100
"""Times that deflate can shrink; a file that claims more is no gzip file."""


def is_sqlite(path: Path) -> bool:
    """Whether a file begins as SQLite databases do, after unpacking where it is gzip.

    Raises:
        TraceError: the file cannot be opened or read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(len(HEADER))
        if not head.startswith(_GZIP):
            return head == HEADER
        with gzip.open(path) as packed:
            return packed.read(len(HEADER)) == HEADER
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return False
    except OSError as error:
        raise TraceError(f"{path} cannot be read ({error.strerror}).") from None


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The database itself: the file, or a temporary copy of what is in the gzip file.

    A database says its own size in its first 100 bytes; more than that is not unpacked.

    Raises:
        TraceError: the gzip file is damaged, or there is no room for the copy.
    """
    with path.open("rb") as file:
        if not file.read(2).startswith(_GZIP):
            yield path
            return
    with tempfile.TemporaryDirectory(prefix="tb_dlprof_") as folder:
        target = Path(folder) / "unpacked.sqlite"
        try:
            with gzip.open(path) as packed, target.open("wb") as copy:
                _copy(cast(BinaryIO, packed), copy, path)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TraceError(f"{path} is a damaged gzip file ({error}); copy it again.") from None
        except OSError as error:
            raise TraceError(f"{path} cannot be unpacked ({error.strerror}); unpack it with gunzip.") from None
        yield target


def _copy(packed: BinaryIO, copy: BinaryIO, path: Path) -> None:
    head = packed.read(100)
    page = int.from_bytes(head[16:18], "big")
    size = (65536 if page == 1 else page) * int.from_bytes(head[28:32], "big")
    most = min(shutil.disk_usage(Path(copy.name).parent).free, path.stat().st_size * _MOST_GROWTH)
    if size > most:
        raise TraceError(
            f"{path} holds a database of {size / 1e9:.1f} GB, for which there is no room; unpack it with gunzip."
        )
    copy.write(head)
    left = (size or most) - len(head)
    while left > 0 and (block := packed.read(min(_BLOCK, left))):
        copy.write(block)
        left -= len(block)
