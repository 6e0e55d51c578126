"""protobuf's bytes: the fields of a message, and columns of numbers.

A column is a packed field: its bytes say how many numbers it holds before any of them is decoded. protobuf's own
classes would keep each number in an array of theirs as well, and a Python object on the way to ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.store.allowance import ENTRY_BYTES, Allowance

VARINT, FIXED64, BYTES, _FIXED32 = 0, 1, 2, 5
"""Types of fields in the bytes."""
DEEPEST = 20
"""Messages inside of each other: ours are 4 deep."""
_LONGEST_VARINT = 10
_CHUNK_BYTES = 1 << 18
_ENTRIES_AT_ONCE = 64
_FEW = 16
"""So few numbers take less time in Python than as an array."""
_UINT64 = (1 << 64) - 1

_Unsigned = npt.NDArray[np.uint64]


class Entries:
    """Counts the fields of a blob, each of which becomes a Python object.

    Args:
        data: the bytes.
        allowance: of the blob.
    """

    def __init__(self, data: bytes, allowance: Allowance) -> None:
        self.data = memoryview(data)
        self.allowance = allowance
        self._taken = 0

    def count(self, entries: int) -> None:
        """Takes the room of so many.

        Raises:
            TooLarge: the blob may not have so many more.
        """
        if entries > self._taken:
            # Some at a time: fields are many, and mostly few bytes long.
            self._taken += entries + _ENTRIES_AT_ONCE
            self.allowance.take(ENTRY_BYTES * (entries + _ENTRIES_AT_ONCE))
        self._taken -= entries

    def fields(self, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """The fields of the message between two places: number, type, the value or where the content begins, and its
        end.

        Raises:
            ValueError: the bytes are no message, or have too many fields.
        """
        data, at = self.data, begin
        while at < end:
            self.count(1)
            tag, at = _number(data, at, end)
            wire_type = tag & 7
            if wire_type == VARINT:
                content, at = _number(data, at, end)
            elif wire_type == BYTES:
                size, content = _number(data, at, end)
                at = content + size
            elif wire_type in (FIXED64, _FIXED32):
                content = at
                at += 8 if wire_type == FIXED64 else 4
            else:
                raise ValueError("a field has an unknown type")
            if at > end:
                raise ValueError("a field is longer than what is there")
            yield tag >> 3, wire_type, content, at


def _number(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """The number that begins here, and where it ends."""
    value = shift = 0
    while at < end and shift < 7 * _LONGEST_VARINT:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number is cut short or too long")


def signed(value: int) -> int:
    """The int64 that a number is written as."""
    value &= _UINT64
    return value - (1 << 64) if value >> 63 else value


def varint(value: int) -> bytes:
    """The bytes of an int64 or uint64."""
    if 0 <= value < 0x80:
        return bytes((value,))
    value &= _UINT64
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


@dataclass(slots=True)
class WireColumn:
    """A packed field, not decoded: its pieces, and how many numbers they have."""

    pieces: list[memoryview] = field(default_factory=list)
    _length: int = 0

    def __len__(self) -> int:
        return self._length

    def add(self, piece: memoryview) -> int:
        """How many numbers a piece adds: each ends with a byte below 128."""
        self.pieces.append(piece)
        chunks = range(0, len(piece), _CHUNK_BYTES)
        added = sum(
            int(np.count_nonzero(np.frombuffer(piece[at : at + _CHUNK_BYTES], np.uint8) < 0x80)) for at in chunks
        )
        self._length += added
        return added

    def decode(self, zigzag: bool) -> npt.NDArray[np.int64]:
        """The numbers; 0, -1, 1, -2 are stored as 0, 1, 2, 3 where they are zigzag coded.

        Raises:
            ValueError: they are cut short or too long.
        """
        result = np.empty(self._length, dtype=np.int64)
        done = 0
        for piece in self.pieces:
            for values in _numbers(piece):
                result[done : done + len(values)] = values.view(np.int64)
                done += len(values)
        if zigzag:
            sign = -(result & 1)
            result = (result.view(np.uint64) >> np.uint64(1)).view(np.int64)
            result ^= sign
        return result


def _numbers(piece: memoryview) -> Iterator[_Unsigned]:
    """The numbers of a packed field, some at a time: what is needed per number besides is needed for these alone."""
    at = 0
    while at < len(piece):
        chunk = np.frombuffer(piece[at : at + _CHUNK_BYTES], np.uint8)
        ends = np.flatnonzero(chunk < 0x80)
        if not len(ends):
            raise ValueError("a number is cut short or too long")
        at += int(ends[-1]) + 1
        yield _values(chunk, ends)


def _values(chunk: npt.NDArray[np.uint8], ends: npt.NDArray[np.intp]) -> _Unsigned:
    if len(ends) == len(chunk):
        return chunk.astype(np.uint64)
    begins = np.concatenate(([0], ends[:-1] + 1))
    result = (chunk[begins] & 0x7F).astype(np.uint64)
    rows = np.flatnonzero(ends > begins)
    for place in range(1, _LONGEST_VARINT):
        at = begins[rows] + place
        result[rows] |= (chunk[at] & 0x7F).astype(np.uint64) << np.uint64(7 * place)
        rows = rows[ends[rows] > at]
        if not len(rows):
            return result
    raise ValueError("a number is cut short or too long")


def packed_numbers(numbers: npt.NDArray[np.int64], zigzag: bool) -> bytes:
    """The content of a packed field: what `WireColumn.decode` reads."""
    if zigzag:
        numbers = (numbers << 1) ^ (numbers >> 63)
    if len(numbers) <= _FEW:
        return b"".join(map(varint, numbers.tolist()))
    values = numbers.view(np.uint64)
    chunks = range(0, len(values), _CHUNK_BYTES)
    return b"".join(_packed(values[at : at + _CHUNK_BYTES]) for at in chunks)


def _packed(values: _Unsigned) -> bytes:
    largest = int(values.max(initial=0))
    if largest < 0x80:
        return values.astype(np.uint8).tobytes()
    sizes = np.ones(len(values), dtype=np.int64)
    for place in range(1, (largest.bit_length() + 6) // 7):
        sizes += values >= np.uint64(1 << (7 * place))
    ends = np.cumsum(sizes)
    result = np.empty(int(ends[-1]), dtype=np.uint8)
    at = ends - sizes
    while len(at):
        more = values >= np.uint64(0x80)
        result[at] = (values & np.uint64(0x7F)).astype(np.uint8) | (more.astype(np.uint8) << np.uint8(7))
        values, at = values[more] >> np.uint64(7), at[more] + 1
    return result.tobytes()
