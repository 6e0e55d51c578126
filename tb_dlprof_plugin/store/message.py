"""Structs to protobuf's bytes and back, by the layout that is derived from their declarations.

`read_message` splits the bytes into the values of fields, columns not decoded, so that their lengths can be compared
before anything is made of them; `struct_of` makes the struct.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from typing import Any, TypeAlias, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.model.column import LARGEST
from tb_dlprof_plugin.store.allowance import NUMBER_BYTES, Allowance
from tb_dlprof_plugin.store.layout import Field, fields_of, kept_by_type
from tb_dlprof_plugin.store.possible_facts import is_possible
from tb_dlprof_plugin.store.wire import (
    BYTES,
    DEEPEST,
    FIXED64,
    VARINT,
    Entries,
    WireColumn,
    packed_numbers,
    signed,
    varint,
)

Values: TypeAlias = dict[int, Any]
"""The values of a message by field number: scalars, `WireColumn` where they are numbers, `Values` of a message."""
_S = TypeVar("_S")
_NO_NUMBERS = WireColumn()


def message_of(content: object) -> bytes:
    """The bytes of a struct."""
    parts: list[bytes] = []
    for field in sorted(fields_of(type(content)), key=lambda field: field.number):
        value = getattr(content, field.name)
        if value is not None and field.form is not None:
            value = field.form.write(value)
        if value is None:
            continue
        if field.has_numbers:
            parts += _column(field, np.asarray(value).astype(np.int64).ravel())
        elif field.many is not None:
            parts += [part for one in value for part in _one(field, one)]
        elif value or field.is_message or field.may_miss:
            parts += _one(field, value)
    return b"".join(parts)


def _one(field: Field, value: Any) -> tuple[bytes, ...]:
    """A field with one value."""
    if field.kind in (int, bool):
        return (varint(field.number << 3 | VARINT), varint(value))
    if field.kind is float:
        return (varint(field.number << 3 | FIXED64), struct.pack("<d", value))
    if field.is_message:
        return _sized(field.number, message_of(value))
    return _sized(field.number, value if isinstance(value, bytes) else value.encode())


def _sized(number: int, content: bytes) -> tuple[bytes, ...]:
    return (varint(number << 3 | BYTES), varint(len(content)), content)


def _column(field: Field, numbers: npt.NDArray[np.int64]) -> tuple[bytes, ...]:
    """A field with numbers, in runs also that of their lengths."""
    if not len(numbers):
        return ()
    packing = field.packing
    lengths: tuple[bytes, ...] = ()
    if packing.runs:
        starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
        lengths = _sized(field.number + 1, packed_numbers(np.diff(np.append(starts, len(numbers))), False))
        numbers = numbers[starts]
    if packing.plus_one:
        numbers = numbers + 1
    if packing.deltas:
        numbers = np.diff(numbers, prepend=0)
    return (*_sized(field.number, packed_numbers(numbers, packing.signed)), *lengths)


def read_message(data: bytes, kind: type, allowance: Allowance, begin: int = 0) -> Values:
    """The values of a message.

    Args:
        data: the bytes.
        kind: of its struct.
        allowance: of the blob, which takes what will be made of the fields: numbers of columns, and Python objects.
        begin: where the message begins in the bytes.

    Raises:
        ValueError: the bytes are no message, or more than the blob may have would be made of them.
    """
    values: Values = {}
    _read(Entries(data, allowance), _by_number(kind), values, begin, len(data), 0)
    return values


@kept_by_type
def _by_number(kind: type) -> dict[int, Field]:
    fields = fields_of(kind)
    return {one.number: one for one in fields} | {one.number + 1: one for one in fields if one.packing.runs}


def _read(entries: Entries, known: dict[int, Field], values: Values, begin: int, end: int, depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError("messages lie too deep inside of each other")
    for number, wire_type, content, stop in entries.fields(begin, end):
        field = known.get(number)
        if field is None:  # of a later version
            continue
        if field.has_numbers:
            if wire_type != BYTES:
                raise ValueError(f"the column {field.name} is not packed")
            added = values.setdefault(number, WireColumn()).add(entries.data[content:stop])
            if field.is_column:
                entries.allowance.take(NUMBER_BYTES * added)
            else:
                entries.count(added)
        elif field.is_message:
            if wire_type == BYTES:
                inner: Values = {} if field.many else values.setdefault(number, {})
                _read(entries, _by_number(field.kind), inner, content, stop, depth + 1)
                if field.many:
                    values.setdefault(number, []).append(inner)
        elif wire_type == _WIRE_TYPES[field.kind]:
            value = _scalar(field.kind, entries.data, content, stop)
            if field.many:
                values.setdefault(number, []).append(value)
            else:
                values[number] = value


_WIRE_TYPES = {int: VARINT, bool: VARINT, float: FIXED64, str: BYTES, bytes: BYTES}


def _scalar(kind: type, data: memoryview, content: int, stop: int) -> Any:
    """The value of a field: the content of a number is the number."""
    if kind is str:
        return str(data[content:stop], "utf-8")
    if kind is bytes:
        return bytes(data[content:stop])
    if kind is float:
        return struct.unpack_from("<d", data, content)[0]
    return bool(content) if kind is bool else signed(content)


def struct_of(kind: type[_S], values: Values, allowance: Allowance) -> _S:
    """The struct of a message whose columns have sound lengths (`tb_dlprof_plugin.store.validation`).

    What a fact cannot be is left out, and a row of a list of facts where its struct needs it.

    Raises:
        ValueError: the struct needs a field that cannot be what it is, or a column is damaged.
        IndexError: a number is outside of a list.
    """
    found: dict[str, Any] = {}
    for field in fields_of(kind):
        if field.number not in values and not field.is_required:
            continue
        value = _numbers(kind, field, values) if field.has_numbers else _value(kind, field, values, allowance)
        if value is None:
            if field.is_required:
                raise ValueError(f"{kind.__name__}.{field.name} is out of its range")
        elif field.form is not None:
            found[field.name] = field.form.read(value, allowance.may_take)
        else:
            found[field.name] = value
    return kind(**found)


def _value(kind: type, field: Field, values: Values, allowance: Allowance) -> Any:
    """What a field holds that is no numbers; None of a number that it cannot be."""
    value = values.get(field.number)
    if field.many is not None:
        return field.many(_rows(kind, field.kind, value or [], allowance) if field.is_message else value or [])
    if field.is_message:
        return struct_of(field.kind, value or {}, allowance)
    if value is None:
        return field.kind()
    return value if is_possible(field.name, value) else None


def _rows(of: type, kind: type, rows: list[Values], allowance: Allowance) -> Iterator[Any]:
    for row in rows:
        with contextlib.suppress(*((ValueError,) if _is_facts(of) else ())):
            yield struct_of(kind, row, allowance)


def _is_facts(kind: type) -> bool:
    """Whether each field of a struct stands alone, so that one that cannot be is as if it was not recorded."""
    return issubclass(kind, msgspec.Struct)


def _numbers(kind: type, field: Field, values: Values) -> Any:
    """The numbers of a field as its struct has them."""
    packing = field.packing
    if field.number not in values and field.in_old_files is not None:
        return np.full(rows_of(kind, values), field.in_old_files.number, bool if field.kind is bool else np.int64)
    numbers = values.get(field.number, _NO_NUMBERS).decode(packing.signed)
    if packing.deltas:
        numbers = _running(numbers)
    if packing.plus_one:
        numbers = numbers - 1
    if packing.runs:
        lengths = values.get(field.number + 1, _NO_NUMBERS).decode(False)
        # Before anything is repeated.
        if (lengths < 0).any() or int(lengths.sum(dtype=np.float64)) != rows_of(kind, values):
            raise ValueError(f"the runs of {kind.__name__}.{field.name} do not add up to its rows")
        numbers = np.repeat(numbers, lengths)
    if not field.is_column:
        facts = _is_facts(kind)
        entries = (one for one in numbers.tolist() if not facts or is_possible(field.name, one))
        return tuple(entries) if field.many is tuple else list(entries)
    if field.kind is bool:
        return numbers.astype(np.bool_)
    if field.per_row is not None:
        each = (entries_of(kind, field.per_row.each, values),) if field.per_row.each else ()
        return numbers.reshape(-1, *each, field.per_row.count)
    return numbers


def _running(deltas: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The numbers that have these differences.

    Raises:
        ValueError: they leave the range of `LARGEST`.
    """
    if np.abs(deltas.astype(np.float64)).sum() > LARGEST:
        raise ValueError("differences add up to more than a number holds")
    return np.cumsum(deltas)


def rows_of(kind: type, values: Values) -> int:
    """The rows of a table, by its first column with one number for each."""
    plain = (one for one in fields_of(kind) if one.is_column and not one.packing.runs and one.per_row is None)
    return len(values.get(next(plain).number, ()))


def entries_of(kind: type, name: str, values: Values) -> int:
    """The entries of a list that a column has numbers for in each row; 1 where there is none."""
    (number,) = (one.number for one in fields_of(kind) if one.name == name)
    return max(1, len(values.get(number, ())))
