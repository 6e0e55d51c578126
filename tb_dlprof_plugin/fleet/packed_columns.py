"""Columns of integers as few bytes, and back, once for all ranks that have the same: `pack` and `unpack`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.model.profile import Ints

SAME_CALLS = ("iteration", "group", "operation", "sequence", "bytes", "dtype", "peer", "module", "stream")
SAME = frozenset((*SAME_CALLS, "number", "key", "count"))
"""Columns that are mostly equal on ranks of one program."""
_MOST_SHARED = 1000


class PackedColumn(msgspec.Struct, array_like=True):
    """``width`` bytes a number, those of least weight of all numbers first; zigzag coded."""

    width: int
    data: bytes


def packed(columns: dict[str, Ints]) -> dict[str, PackedColumn]:
    """The columns by name."""
    result = {}
    for name, values in columns.items():
        numbers = (values << 1) ^ (values >> 63)
        largest = int(numbers.view(np.uint64).max(initial=0))
        width = max(1, (largest.bit_length() + 7) // 8)
        planes = numbers.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]
        result[name] = PackedColumn(width, planes.T.tobytes())
    return result


def rows_of(columns: Iterable[PackedColumn]) -> int:
    """How many numbers the columns have, before any is made.

    Raises:
        ValueError: a column has no such width, or its last number is cut.
    """
    rows = 0
    for column in columns:
        width = column.width
        if not 1 <= width <= 8 or len(column.data) % width:
            raise ValueError("a column is cut short")
        rows += len(column.data) // width
    return rows


def numbers_of(columns: Sequence[PackedColumn]) -> list[Ints]:
    """The numbers of each column that `rows_of` has counted; those of equal width and length at once.

    A call of numpy takes longer than a short column.
    """
    alike: dict[tuple[int, int], list[int]] = {}
    for index, column in enumerate(columns):
        alike.setdefault((column.width, len(column.data)), []).append(index)
    result = [NO_NUMBERS] * len(columns)
    for (width, _), indices in alike.items():
        data = b"".join([columns[index].data for index in indices])
        planes = np.frombuffer(data, np.uint8).reshape(len(indices), width, -1)
        for index, numbers in zip(indices, _signed(planes), strict=True):
            result[index] = numbers
    return result


def _signed(planes: npt.NDArray[np.uint8]) -> Ints:
    """The numbers (columns x rows) of bytes (columns x weight x rows)."""
    width = planes.shape[1]
    if width == 1:
        narrow: Ints = _ZIGZAG[planes[:, 0]]
        return narrow
    if width <= 4:
        # Numbers of half the size take less time.
        small = planes[:, 0].astype(np.uint32)
        for weight in range(1, width):
            small |= planes[:, weight].astype(np.uint32) << np.uint32(8 * weight)
        signed = (small >> np.uint32(1)).view(np.int32) ^ -(small & np.uint32(1)).view(np.int32)
        wide: Ints = signed.astype(np.int64)
        return wide
    numbers = planes[:, 0].astype(np.uint64)
    for weight in range(1, width):
        numbers |= planes[:, weight].astype(np.uint64) << np.uint64(8 * weight)
    result: Ints = (numbers >> np.uint64(1)).astype(np.int64) ^ -(numbers & np.uint64(1)).astype(np.int64)
    return result


@dataclass(slots=True)
class SharedParts:
    """Columns and members of groups by what was stored, for equal ones of other ranks: they take room once."""

    columns: dict[Hashable, Ints] = field(default_factory=dict)
    members: dict[bytes, tuple[int, ...]] = field(default_factory=dict)

    def ids(self) -> set[int]:
        """Of the objects."""
        return {id(part) for part in (*self.columns.values(), *self.members.values())}

    def known(self, name: str, columns: Sequence[PackedColumn]) -> Ints | None:
        """What another rank has in this column, if that is equal."""
        return self.columns.get(_key(name, columns)) if name in SAME else None

    def kept(self, name: str, columns: Sequence[PackedColumn], numbers: Ints) -> Ints:
        """The numbers, from now on those of equal columns of other ranks."""
        if name not in SAME or len(self.columns) >= _MOST_SHARED:
            return numbers
        numbers.flags.writeable = False
        return self.columns.setdefault(_key(name, columns), numbers)

    def cut(self, columns: int, members: int) -> None:
        """Leaves as many as there were before."""
        for parts, count in ((self.columns, columns), (self.members, members)):
            while len(parts) > count:
                parts.popitem()


def _key(name: str, columns: Sequence[PackedColumn]) -> Hashable:
    return (name, *((column.width, column.data) for column in columns))


def unpacked(tables: Sequence[dict[str, PackedColumn]], shared: SharedParts) -> list[dict[str, Ints]]:
    """The columns of each table."""
    result = [{name: shared.known(name, [column]) for name, column in table.items()} for table in tables]
    unknown = [
        (own, name, table[name])
        for own, table in zip(result, tables, strict=True)
        for name, known in own.items()
        if known is None
    ]
    for (own, name, column), numbers in zip(unknown, numbers_of([column for *_, column in unknown]), strict=True):
        own[name] = shared.kept(name, [column], numbers)
    return [{name: numbers for name, numbers in own.items() if numbers is not None} for own in result]


NO_NUMBERS: Ints = np.zeros(0, dtype=np.int64)
_ZIGZAG = np.array([number >> 1 if number % 2 == 0 else -(number >> 1) - 1 for number in range(256)], dtype=np.int64)
