"""What is said of a field of a page's struct, declared there: the column of a table, the sentence on a figure.

Pages, commands and docs derive theirs from it.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from tb_dlprof_plugin.pages.shared_definitions import DEFINITIONS
from tb_dlprof_plugin.profile_view import ProfileView, Selection

Unit = Literal[
    "ns", "percent", "count", "count_per_step", "bytes", "ratio", "per_second", "flops", "flops_per_second",
    "bytes_per_second", "joules", "watts",
]  # fmt: skip
Task = Literal["time", "tensor_cores", "cpu", "shapes"]

_OF_NAME: tuple[tuple[str, Unit, float], ...] = (
    ("_ns", "ns", 1),
    ("_ms", "ns", 1e6),
    ("_s", "ns", 1e9),
    ("bytes", "bytes", 1),
    ("mb", "bytes", 1e6),
    ("percent", "percent", 1),
    ("joules", "joules", 1),
    ("watts", "watts", 1),
)
"""By the end of a field's name: the unit that its numbers are shown in, and the factor to it."""


@dataclass(frozen=True, slots=True)
class Definition:
    """The tooltip of a figure's label: ``idle_percent: Annotated[float | None, Definition("gpuIdle", "...")]``.

    ``key`` is its name in the frontend's `DEFINITIONS`. A sentence on several fields is in `pages.shared_definitions`.
    """

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Quantity(Definition):
    """What a field shows of the selected iterations of a run: ``idle_percent: Annotated[float | None, GPU_IDLE]``.

    `pages.quantities` has all. ``label`` is its name on pages, in commands and over columns, ``value`` its only source:
    in the unit of the field without its factor (ns, bytes, percent), None where it is unknown.
    """

    label: str
    value: Callable[[ProfileView, Selection], float | None]


@dataclass(frozen=True, slots=True)
class Column:
    """``gpu_ns: Annotated[int | None, Column("GPU time", "gpuTime", "time cpu", sums=True)]``, in the columns' order.

    Attributes:
        heading: on pages and in commands; files name a column after its field. A `Quantity` next to it gives its own.
        definition: one sentence, or the key of one in `shared_definitions`; "" where a `Definition` stands next to it.
        tasks: what the table is read for when the page shows it, `Task`s with spaces between.
        terminal: the command prints it, too; False for a column of the page alone.
        sums: it is a sum over the iterations, shown per step.
        bar: a share, with a bar behind it.
        signed: a difference, with its sign.
        gpu: left out where no GPU was used.
        choice: its filter offers the values that occur, as for a `Literal`; a number is then a name.
        missing: stands for what is None or "".
        absent: a field and its values for which "–" stands for that.
        unit: of numbers; None for the one that follows from the field's name and type.
        width: of texts, in pixels.
    """

    heading: str = ""
    definition: str = ""
    tasks: str = ""
    terminal: bool = True
    sums: bool = False
    bar: bool = False
    signed: bool = False
    gpu: bool = False
    choice: bool = False
    missing: str = "unknown"
    absent: tuple[str, ...] = ()
    unit: Unit | None = None
    width: int = 0


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A declared column with what follows from its field; ``unit`` is None for texts.

    ``definition`` has no key where only this column shows it; ``values`` are those of a `Literal`.
    """

    field: str
    declared: Column
    definition: Definition
    unit: Unit | None
    scale: float
    values: tuple[Any, ...]


@functools.cache
def columns_of(struct: type[msgspec.Struct]) -> tuple[TableColumn, ...]:
    """The declared columns of a row struct, in the order of its fields."""
    hints = typing.get_type_hints(struct, include_extras=True)
    return tuple(
        _column(name, hint.__origin__, declared, hint.__metadata__)
        for name, hint in hints.items()
        for declared in getattr(hint, "__metadata__", ())
        if isinstance(declared, Column)
    )


def _column(name: str, kind: Any, declared: Column, beside: tuple[Any, ...]) -> TableColumn:
    key = declared.definition
    definition = Definition(key, DEFINITIONS[key]) if key in DEFINITIONS else Definition("", key)
    definition = next((note for note in beside if isinstance(note, Definition)), definition)
    if isinstance(definition, Quantity):
        declared = replace(declared, heading=definition.label)
    kinds = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
    values = tuple(value for part in kinds if typing.get_origin(part) is Literal for value in typing.get_args(part))
    if declared.choice or not {int, float} & set(kinds):
        return TableColumn(name, declared, definition, None, 1, values)
    unit, scale = unit_of(name)
    return TableColumn(name, declared, definition, declared.unit or unit, scale, values)


def unit_of(field: str) -> tuple[Unit, float]:
    """The unit of a number by its field's name, and the factor from the field to it."""
    counted: tuple[Unit, float] = ("count", 1)
    return next(((unit, scale) for end, unit, scale in _OF_NAME if f"_{field}".endswith(end)), counted)


@functools.cache
def quantities_of(struct: type[msgspec.Struct]) -> dict[str, Quantity]:
    """The quantities that the fields of a struct show, by field."""
    hints = typing.get_type_hints(struct, include_extras=True)
    return {
        name: note
        for name, hint in hints.items()
        for note in getattr(hint, "__metadata__", ())
        if isinstance(note, Quantity)
    }
