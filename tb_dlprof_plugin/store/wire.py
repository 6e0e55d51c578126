"""The columns of a stored message, read from its bytes without protobuf, and the message without them.

A column is a packed field: its bytes say how many numbers it holds before any of them is decoded. protobuf would keep
each number in an array of its own as well, and a Python object on the way to ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.store.allowance import ENTRY_BYTES, NUMBER_BYTES, Allowance

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
_CHUNK_BYTES = 1 << 18
_ENTRIES_AT_ONCE = 64
_DEEPEST = 20
"""Messages inside of each other: ours are 4 deep, those of an event 8."""


class _Field(NamedTuple):
    """A field in the bytes: its number, wire type, where its tag begins, and where its content begins and ends."""

    number: int
    wire_type: int
    begin: int
    content: int
    end: int


Table = Callable[[str], npt.NDArray[Any]]
"""The numbers of a table's column by the name of its field."""


@dataclass(slots=True)
class WireColumn:
    """A packed field, not decoded: its pieces and what is in them."""

    is_signed: bool
    is_flag: bool
    pieces: list[memoryview] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(_count(piece) for piece in self.pieces)

    def decode(self) -> npt.NDArray[Any]:
        """The numbers, as int64 or bool.

        Raises:
            ValueError: they are cut short or too long.
        """
        result = np.empty(len(self), dtype=np.int64)
        done = 0
        for piece in self.pieces:
            for values in _varints(piece):
                result[done : done + len(values)] = values.view(np.int64)
                done += len(values)
        if self.is_flag:
            return result.astype(np.bool_)
        if self.is_signed:
            # Zigzag: 0, -1, 1, -2 are stored as 0, 1, 2, 3.
            sign = -(result & 1)
            result = (result.view(np.uint64) >> np.uint64(1)).view(np.int64)
            result ^= sign
        return result


@dataclass(frozen=True, slots=True)
class WireMessage:
    """A message in two parts: its columns by their path, such as "ops.name", and the bytes of the rest."""

    columns: dict[str, WireColumn]
    rest: bytes

    def column(self, path: str) -> npt.NDArray[Any]:
        """The numbers of a column, none where the message lacks it.

        Raises:
            ValueError: they are cut short or too long.
        """
        return self.columns[path].decode() if path in self.columns else np.zeros(0, dtype=np.int64)

    def table(self, path: str) -> Table:
        """Gives the columns of a table by their names; of the message itself for ""."""
        return lambda name: self.column(f"{path}.{name}" if path else name)


def split_message(data: bytes, descriptor: Any, tables: frozenset[str], allowance: Allowance) -> WireMessage:
    """Parts a serialized message.

    Args:
        data: the bytes.
        descriptor: of the message.
        tables: paths of the messages in it whose repeated numbers are columns, such as "light_window.calls".
        allowance: of the blob, which takes what will be made of the fields: numbers of columns, and Python objects.

    Raises:
        ValueError: the bytes are no message, or more than the blob may have would be made of them.
    """
    return _Splitter(memoryview(data), tables, allowance).split(descriptor)


def count_entries(data: bytes, descriptor: Any, allowance: Allowance) -> None:
    """Counts the fields of a message that protobuf is to decode whole, arrays of numbers as one field each.

    Raises:
        ValueError: as `split_message`.
    """
    _Splitter(memoryview(data), None, allowance).count(descriptor)


class _Splitter:
    def __init__(self, data: memoryview, tables: frozenset[str] | None, allowance: Allowance) -> None:
        self._data = data
        self._tables = tables
        self._allowance = allowance
        self._entries_taken = 0
        self._columns: dict[str, WireColumn] = {}

    def split(self, descriptor: Any) -> WireMessage:
        rest = self._message(descriptor, "", 0, len(self._data))
        return WireMessage(self._columns, b"".join(rest))

    def count(self, descriptor: Any) -> None:
        self._message(descriptor, "", 0, len(self._data))

    def _message(self, descriptor: Any, path: str, begin: int, end: int, depth: int = 0) -> list[bytes | memoryview]:
        """Takes in the columns of a message; returns the pieces of the rest of it."""
        if depth > _DEEPEST:
            raise ValueError("messages lie too deep inside of each other")
        rest: list[bytes | memoryview] = []
        known = descriptor.fields_by_number
        for found in self._fields(begin, end):
            kind = known.get(found.number)
            if kind is None:  # of a later version
                continue
            inner = f"{path}.{kind.name}" if path else kind.name
            if kind.message_type is not None and found.wire_type == _BYTES:
                parts = self._message(kind.message_type, inner, found.content, found.end, depth + 1)
                size = sum(map(len, parts))
                if self._tables is not None:
                    rest += (_varint(found.number << 3 | _BYTES), _varint(size), *parts)
            elif self._tables is None:
                continue
            elif path in self._tables and is_column(kind):
                if found.wire_type != _BYTES:
                    raise ValueError(f"the column {inner} is not packed")
                column = self._columns.setdefault(
                    inner, WireColumn(kind.type in (kind.TYPE_SINT32, kind.TYPE_SINT64), kind.type == kind.TYPE_BOOL)
                )
                column.pieces.append(self._data[found.content : found.end])
                self._allowance.take(NUMBER_BYTES * _count(column.pieces[-1]))
            else:
                if found.wire_type == _BYTES and kind.cpp_type != kind.CPPTYPE_STRING:
                    self._count(_count(self._data[found.content : found.end]))
                rest.append(self._data[found.begin : found.end])
        return rest

    def _count(self, entries: int) -> None:
        if entries > self._entries_taken:
            # Some at a time: fields are many, and mostly few bytes long.
            self._entries_taken += entries + _ENTRIES_AT_ONCE
            self._allowance.take(ENTRY_BYTES * (entries + _ENTRIES_AT_ONCE))
        self._entries_taken -= entries

    def _fields(self, begin: int, end: int) -> Iterator[_Field]:
        at = begin
        while at < end:
            self._count(1)
            start = at
            tag, at = self._number(at, end)
            wire_type = tag & 7
            content = at
            if wire_type == _VARINT:
                _, at = self._number(at, end)
            elif wire_type == _BYTES:
                size, content = self._number(at, end)
                at = content + size
            elif wire_type in (_FIXED64, _FIXED32):
                at += 8 if wire_type == _FIXED64 else 4
            else:
                raise ValueError("a field has an unknown type")
            if at > end:
                raise ValueError("a field is longer than what is there")
            yield _Field(tag >> 3, wire_type, start, content, at)

    def _number(self, at: int, end: int) -> tuple[int, int]:
        """The number that begins here, and where it ends."""
        value = shift = 0
        while at < end and shift < 7 * _LONGEST_VARINT:
            byte = self._data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
        raise ValueError("a number is cut short or too long")


def is_column(kind: Any) -> bool:
    """Whether a field of a message holds any number of integers or flags."""
    integers = (kind.CPPTYPE_INT32, kind.CPPTYPE_INT64, kind.CPPTYPE_UINT32, kind.CPPTYPE_UINT64, kind.CPPTYPE_BOOL)
    return _is_repeated(kind) and kind.cpp_type in integers


def _is_repeated(kind: Any) -> bool:
    # `label` is deprecated since protobuf 6.30, which has `is_repeated` in its place.
    repeated = getattr(kind, "is_repeated", None)
    return bool(kind.label == kind.LABEL_REPEATED if repeated is None else repeated)


def _varint(value: int) -> bytes:
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def _count(piece: memoryview) -> int:
    """Numbers in a packed field: each ends with a byte below 128."""
    return sum(
        int(np.count_nonzero(np.frombuffer(piece[at : at + _CHUNK_BYTES], np.uint8) < 0x80))
        for at in range(0, len(piece), _CHUNK_BYTES)
    )


def _varints(piece: memoryview) -> Iterator[npt.NDArray[np.uint64]]:
    """The numbers of a packed field, some at a time: what is needed per number besides is needed for these alone."""
    at = 0
    while at < len(piece):
        chunk = np.frombuffer(piece[at : at + _CHUNK_BYTES], np.uint8)
        ends = np.flatnonzero(chunk < 0x80)
        if not len(ends):
            raise ValueError("a number is cut short or too long")
        at += int(ends[-1]) + 1
        yield _values(chunk, ends)


def _values(chunk: npt.NDArray[np.uint8], ends: npt.NDArray[np.intp]) -> npt.NDArray[np.uint64]:
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
