"""Reads the text of a trace file, plain or gzip, block by block, so that it need not fit into memory.

A gzip file that ends early or has a wrong checksum gives what could be unpacked. One that expands as no trace does is
refused: real traces shrink by 10 to 50 times, a bomb by up to 1,000.
"""

from __future__ import annotations

import queue
import threading
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.kineto.json_recovery.log import Damage

BLOCK_BYTES = 1 << 20
_LARGEST_EXPANSION = 200
_EXPANSION_WATCHED_FROM = 1 << 26  # bytes
_BLOCKS_AHEAD = 2
_SMALL_STEP = 64  # bytes
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_blocks(source: Path, damage: Damage, progress: Callable[[float], None] | None = None) -> Generator[bytes]:
    """The file's text in blocks of at most `BLOCK_BYTES`.

    Args:
        source: the file.
        damage: records that a gzip file is damaged or cut.
        progress: called after each block with the fraction read (0 to 1).

    Raises:
        TraceError: the file cannot be opened or read, is empty, or is a gzip bomb.
    """
    try:
        with source.open("rb") as file:
            start = file.read(len(_GZIP_MAGIC))
            file.seek(0)
            size = source.stat().st_size
            raw = iter(lambda: file.read(BLOCK_BYTES), b"")
            blocks = _ahead(_unpack(source, raw, damage)) if start == _GZIP_MAGIC else raw
            for block in _without_mark(blocks):
                yield block
                if progress is not None:
                    progress(min(1.0, file.tell() / max(1, size)))
    except OSError as error:
        raise TraceError(f"{source} cannot be read ({error.strerror or error}); check the path.") from None


def _without_mark(blocks: Iterator[bytes]) -> Iterator[bytes]:
    start = b""
    for block in blocks:
        start += block
        if len(start) >= len(_BYTE_ORDER_MARK):
            yield start.removeprefix(_BYTE_ORDER_MARK)
            yield from blocks
            return
    yield start


def _unpack(source: Path, packed: Iterator[bytes], damage: Damage) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    read = written = 0
    between = b""
    for block in packed:
        read += len(block)
        while block:
            if unpacker.eof:
                # The next member, or zeros that fill a disk block.
                between = (between + block).lstrip(b"\0")
                if len(between) < len(_GZIP_MAGIC) and _GZIP_MAGIC.startswith(between):
                    break
                if not between.startswith(_GZIP_MAGIC):
                    damage.add("gzip_damaged")
                    return
                block, between = between, b""
                unpacker = zlib.decompressobj(_GZIP_WINDOW)
            before = unpacker.copy()
            try:
                text = unpacker.decompress(block, BLOCK_BYTES)
            except zlib.error:
                damage.add("gzip_damaged")
                yield from _up_to_damage(before, block)
                return
            block = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            written += len(text)
            if written > _EXPANSION_WATCHED_FROM and written > _LARGEST_EXPANSION * (read - len(block)):
                raise TraceError(
                    f"{source} expands to over {_LARGEST_EXPANSION} times its size, which no trace does, and was not "
                    "read further; check where the file comes from."
                )
            if text:
                yield text
    if not unpacker.eof:
        damage.add("gzip_cut")


def _up_to_damage(unpacker: zlib._Decompress, block: bytes) -> Iterator[bytes]:
    """The output of a block up to the damage, which zlib discards when it raises."""
    try:
        while block:
            yield unpacker.decompress(block, _SMALL_STEP)
            block = unpacker.unconsumed_tail
    except zlib.error:
        return


def _ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same blocks, made by a thread: zlib unpacks the next ones while this one is decoded."""
    ready: queue.Queue[bytes | BaseException | None] = queue.Queue(_BLOCKS_AHEAD)
    left = threading.Event()

    def put(item: bytes | BaseException | None) -> bool:
        while not left.is_set():
            try:
                ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for block in blocks:
                if not put(block):
                    return
            put(None)
        except BaseException as error:  # handed to the reader, which raises it
            put(error)

    thread = threading.Thread(target=work, name="tb_dlprof unpack", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        left.set()
        thread.join()
