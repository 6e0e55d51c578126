"""Decodes many small protobuf messages at once, into columns.

protobuf makes an object of each event and each of its ten to twenty stats, which takes ten times as long as parsing
them. Here one numpy operation reads the next field of all messages. Encoding:
https://protobuf.dev/programming-guides/encoding/.

Single bytes are read ten times as fast as words that begin anywhere, and rows are taken by place several times as
fast as by a mask: most numbers have one byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.model.timeline import Bools, Ints

Words = npt.NDArray[np.uint64]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types."""
_PADDING = 32
_HIGH_BITS = np.uint64(0x8080808080808080)
_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_ONE = np.uint64(1)


class Buffer:
    """Messages one behind the other; a word is the eight bytes that begin at a place."""

    def __init__(self, messages: list[bytes]) -> None:
        text = b"".join(messages)
        self.size = len(text)
        self.data = np.frombuffer(text + bytes(_PADDING), dtype=np.uint8)
        self.words: Words = np.ndarray((len(text) + _PADDING - 8,), "<u8", self.data, strides=(1,))
        length = np.fromiter(map(len, messages), np.int64, len(messages))
        self.stop: Ints = np.cumsum(length)
        self.start: Ints = self.stop - length

    def text(self, start: int, stop: int) -> bytes:
        """The bytes between two places."""
        return self.data[start:stop].tobytes()


@dataclass(frozen=True, slots=True)
class WireField:
    """One field of some messages: ``value`` of a varint or fixed number as 64 bits; of bytes where they begin is
    ``start``, where the field ends ``stop``. ``row`` is the message."""

    number: int
    wire: int
    row: Ints
    value: Ints
    start: Ints
    stop: Ints


def fields(buffer: Buffer, start: Ints, stop: Ints, damaged: Bools) -> Iterator[WireField]:
    """The fields of messages that lie at the places given: first those that stand first, then the second ones ...

    Messages that end within a field, or hold what is no field, are marked in ``damaged``.
    """
    row = np.flatnonzero(stop > start)
    position, end = start[row], stop[row]
    while len(row):
        tag = buffer.data[position].astype(np.int64)
        body = position + 1
        if (tag >= 128).any():  # Numbers of fields above 15, which no message has that we know.
            tag, length = varint(buffer, position)
            body = position + length
        value, after, body = _values(buffer, tag & 7, body)
        sound = (after <= end) & (after > position) & (tag > 7)
        if not sound.all():
            damaged[row[~sound]] = True
            row, position, end, tag, value, body, after = (
                column[sound] for column in (row, position, end, tag, value, body, after)
            )
        for kind in _kinds(tag):
            here = slice(None) if kind is None else np.flatnonzero(tag == kind)
            first = int(tag[0]) if kind is None else kind
            yield WireField(first >> 3, first & 7, row[here], value[here], body[here], after[here])
        more = np.flatnonzero(after < end)
        row, position, end = row[more], after[more], end[more]


def _kinds(tag: Ints) -> list[int] | list[None]:
    """The distinct tags; one None where all are equal."""
    if not len(tag):
        return []
    if (tag == tag[0]).all():
        return [None]
    return np.unique(tag).tolist()


def _values(buffer: Buffer, wire: Ints, body: Ints) -> tuple[Ints, Ints, Ints]:
    """Values, ends and beginnings of fields whose values begin at ``body``."""
    if (wire == BYTES).all():
        short = buffer.data[np.minimum(body, buffer.size)].astype(np.int64)
        if (short < 128).all():
            return short, body + 1 + short, body + 1
    value, length = varint(buffer, body)
    after = body + length
    return (value, after, body) if (wire == VARINT).all() else _other_values(buffer, wire, value, body, after)


def _other_values(buffer: Buffer, wire: Ints, value: Ints, body: Ints, after: Ints) -> tuple[Ints, Ints, Ints]:
    """Values, ends and beginnings of fields that are not varints."""
    is_bytes, fixed64, fixed32 = wire == BYTES, wire == FIXED64, wire == FIXED32
    begin = np.where(is_bytes, after, body)
    # A length beyond 2**40 is damage, and must not overflow.
    after = after + np.where(is_bytes, np.where((value < 0) | (value > 2**40), 2**40, value), 0)
    if fixed64.any() or fixed32.any():
        word = buffer.words[np.minimum(body, buffer.size)].view(np.int64)
        value = np.where(fixed64, word, np.where(fixed32, word & 0xFFFFFFFF, value))
        after = np.where(fixed64, body + 8, np.where(fixed32, body + 4, after))
    after = np.where((wire == VARINT) | is_bytes | fixed64 | fixed32, after, np.iinfo(np.int64).max)
    return value, after, begin


def varint(buffer: Buffer, position: Ints) -> tuple[Ints, Ints]:
    """The varints at these places and their lengths in bytes; a length of 2**40 for what is none."""
    position = np.minimum(position, buffer.size)  # What lies beyond the end is damage, and reads as zeros.
    value = buffer.data[position].astype(np.int64)
    long = np.flatnonzero(value >= 128)
    if len(long) == len(position):
        return _long_varint(buffer, position)
    length = np.ones(len(position), dtype=np.int64)
    if len(long):
        value[long], length[long] = _long_varint(buffer, position[long])
    return value, length


def _long_varint(buffer: Buffer, position: Ints) -> tuple[Ints, Ints]:
    """Varints of any length."""
    word = buffer.words[position]
    # The lowest bit that is set marks the last byte; as a power of two its exponent is exact.
    stop = ~word & _HIGH_BITS
    last = stop & (~stop + _ONE)
    length = ((last.astype(np.float64).view(np.int64) >> 52) - 1015) >> 3
    long = np.flatnonzero(last == 0)
    word = word & ((last << _ONE) - _ONE) & _LOW_BITS
    if (length > 1).any() or len(long):
        # Groups of 7 bits, then of 14, then of 28 move together.
        word = (word & np.uint64(0x007F007F007F007F)) | ((word & np.uint64(0x7F007F007F007F00)) >> np.uint64(1))
        word = (word & np.uint64(0x00003FFF00003FFF)) | ((word & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2))
        word = (word & np.uint64(0x000000000FFFFFFF)) | ((word & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4))
    if len(long):
        ninth = buffer.data[position[long] + 8].astype(np.uint64)
        tenth = buffer.data[position[long] + 9].astype(np.uint64)
        has_tenth = ninth >= 128
        word[long] |= (ninth & np.uint64(127)) << np.uint64(56)
        word[long] |= np.where(has_tenth, (tenth & _ONE) << np.uint64(63), np.uint64(0))
        length[long] = np.where(has_tenth, np.where(tenth >= 128, 2**40, 10), 9)
    return word.view(np.int64), length
