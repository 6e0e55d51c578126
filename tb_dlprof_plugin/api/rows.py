"""Converts rows of a page to a table: a column for each figure, named after its field, with the unit at its end.

Nested data becomes separate columns: the parts of a record, and lists and mappings whose entries the page names (time
by category, by cause, by bucket). Lists of records within a row are left out with a note.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.inspect import DictType, Field, ListType, NoneType, StructType, Type, UnionType, type_info

from tb_dlprof_plugin.reports.table import Cell, Report
from tb_dlprof_plugin.store.run_ref import RunRef

_Read = Callable[[Any], Cell]
_UNITS = ("_ns", "_bytes")


def rows_table(
    kind: type[msgspec.Struct],
    rows: Sequence[msgspec.Struct],
    places: Mapping[str, Sequence[str]] | None = None,
    notes: Sequence[str] = (),
) -> Report:
    """The table of a list of records.

    Args:
        kind: their type, of which there are columns without a row, too.
        rows: the records.
        places: for fields that are lists or mappings, the names of their entries, in order.
        notes: sentences about the rows.
    """
    columns: dict[str, _Read] = {}
    left_out: list[str] = []
    for field in _fields(kind):
        found = _columns(field, places or {})
        if found is None:
            left_out.append(field.name)
        columns.update(found or {})
    said = (f"{', '.join(left_out)}: a list in each row; JSON holds it.",) if left_out else ()
    names = tuple(columns)
    cells = [tuple(read(row) for read in columns.values()) for row in rows]
    return Report(names, cells, dict(zip(names, names, strict=True)), (*notes, *said))


def record_of(kind: Type) -> type[msgspec.Struct] | None:
    """The record that a field holds, or may hold; None where it holds something else."""
    if isinstance(kind, UnionType):
        kinds = [part for part in kind.types if not isinstance(part, NoneType)]
        return record_of(kinds[0]) if len(kinds) == 1 else None
    return kind.cls if isinstance(kind, StructType) else None


def listed_record_of(kind: Type) -> type[msgspec.Struct] | None:
    """The record that a field holds a list of; None where it holds something else."""
    return record_of(kind.item_type) if isinstance(kind, ListType) else None


def _fields(kind: type[msgspec.Struct]) -> tuple[Field, ...]:
    info = type_info(kind)
    assert isinstance(info, StructType)
    return info.fields


def _columns(field: Field, places: Mapping[str, Sequence[str]]) -> dict[str, _Read] | None:
    """The columns of a field and how a row's cell is read; None where it has none."""
    name = field.name
    if (record := record_of(field.type)) is not None:
        # The run's own parts have names that nothing else has.
        prefix = "" if record is RunRef else f"{name}_"
        inner = {part.name: _columns(part, {}) for part in _fields(record)}
        return {
            prefix + column: _inside(name, read) for found in inner.values() if found for column, read in found.items()
        }
    if listed_record_of(field.type) is not None:
        return None
    if isinstance(field.type, ListType | DictType) and name in places:
        at = _entry if isinstance(field.type, DictType) else _place
        return {_named_after(name, key): at(name, index, key) for index, key in enumerate(places[name])}
    return {name: _plain(name)}


def _plain(name: str) -> _Read:
    return lambda row: getattr(row, name)  # type: ignore[no-any-return]


def _inside(name: str, read: _Read) -> _Read:
    return lambda row: None if getattr(row, name) is None else read(getattr(row, name))


def _place(name: str, index: int, key: str) -> _Read:
    """An entry of a list that is empty where nothing is known."""
    return lambda row: getattr(row, name)[index] if getattr(row, name) else None


def _entry(name: str, index: int, key: str) -> _Read:
    """An entry of a mapping that names what is not 0."""
    return lambda row: getattr(row, name).get(key, 0)  # type: ignore[no-any-return]


def _named_after(name: str, key: str) -> str:
    """Such as "memory_ns" of "category_ns", "idle_python_ns" of "idle_by_cause_ns", "a_casts_ns" of "a_buckets"."""
    unit = next((unit for unit in _UNITS if name.endswith(unit)), "_ns")
    front = name.removesuffix(unit).replace("_by_", "_")
    front = front.removesuffix("category").removesuffix("cause").removesuffix("buckets")
    return f"{front}{key}{unit}"
