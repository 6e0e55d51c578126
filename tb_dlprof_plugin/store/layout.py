"""The stored fields of a struct, derived from its declarations (`tb_dlprof_plugin.model.column`).

A field's number is the one after that of the field before it, or its `FieldNumber`. Integers, flags, floats, texts and
bytes are scalars; an array is a column; a dataclass or struct is a message inside the message.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.model.column import PLAIN, Edges, FieldNumber, Form, InOldFiles, Meaning, Packing, PerRow

_SCALARS = (int, bool, float, str, bytes)
_D = typing.TypeVar("_D")
_R = typing.TypeVar("_R")


@dataclass(frozen=True, slots=True)
class Field:
    """A stored field.

    Attributes:
        name: of the attribute.
        number: in the message. Of a packing in runs the next one has their lengths.
        kind: the type of the value, or of each of many.
        many: `list`, `tuple` or `numpy.ndarray`; None of one value.
        is_required: whether its struct cannot do without.
        may_miss: whether "not recorded" is stored as no field; otherwise that is 0 or "".
        packing, meaning, per_row, form, in_old_files: as declared.
        bounds_rows: whether it is a column of `Edges`.
    """

    name: str
    number: int
    kind: type
    many: type | None
    is_required: bool
    may_miss: bool
    packing: Packing
    meaning: Meaning | None
    per_row: PerRow | None
    form: Form | None
    in_old_files: InOldFiles | None
    bounds_rows: bool

    @property
    def is_message(self) -> bool:
        """Whether the value, or each of many, is a message."""
        return self.kind not in _SCALARS

    @property
    def is_column(self) -> bool:
        """Whether it is an array of numbers."""
        return self.many is np.ndarray

    @property
    def has_numbers(self) -> bool:
        """Whether it is packed numbers."""
        return self.many is not None and self.kind in (int, bool)


def kept_by_type(function: Callable[[type], _R]) -> Callable[[type], _R]:
    """`functools.cache`, whose annotation refuses types of dataclasses: mypy takes them for unhashable."""
    return functools.cache(function)


@kept_by_type
def fields_of(kind: type) -> tuple[Field, ...]:
    """The fields of a struct, in its order.

    Raises:
        TypeError: one has a type that cannot be stored.
    """
    if dataclasses.is_dataclass(kind):
        members = [
            (one.name, one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING)
            for one in dataclasses.fields(kind)
        ]
    elif issubclass(kind, msgspec.Struct):
        members = [(one.name, one.required) for one in msgspec.structs.fields(kind)]
    else:
        raise TypeError(f"{kind.__name__} is no struct")
    hints = typing.get_type_hints(kind, include_extras=True)
    found: list[Field] = []
    for name, is_required in members:
        following = found[-1].number + 1 + found[-1].packing.runs if found else 1
        found.append(_field(name, hints[name], following, is_required))
    if len({one.number for one in found}) != len(found):
        raise TypeError(f"{kind.__name__} has a field number twice")
    return tuple(found)


def _field(name: str, hint: Any, following: int, is_required: bool) -> Field:
    hint, declared = _parted(hint)
    form = _declared(declared, Form)
    if form is not None:
        hint, of_form = _parted(form.kind)
        declared += of_form
    hint, is_optional = _without_none(hint)
    many, kind = None, hint
    origin = typing.get_origin(hint)
    if hint is np.ndarray or origin in (np.ndarray, npt.NDArray):  # an alias of its own since numpy 2.5
        many, kind = np.ndarray, bool if "bool" in str(hint) else int
    elif origin in (list, tuple):
        many, kind = origin, typing.get_args(hint)[0]
    number = _declared(declared, FieldNumber)
    return Field(
        name=name,
        number=number.number if number is not None else following,
        kind=kind,
        many=many,
        is_required=is_required,
        may_miss=is_optional or not is_required,
        packing=_declared(declared, Packing) or PLAIN,
        meaning=next((one for one in declared if isinstance(one, Meaning)), None),
        per_row=_declared(declared, PerRow),
        form=form,
        in_old_files=_declared(declared, InOldFiles),
        bounds_rows=_declared(declared, Edges) is not None,
    )


def _parted(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type and what is declared with it."""
    declared = getattr(hint, "__metadata__", ())
    return (hint.__origin__, declared) if declared else (hint, ())


def _without_none(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) not in (types.UnionType, typing.Union):
        return hint, False
    (kind,) = (one for one in typing.get_args(hint) if one is not types.NoneType)
    return kind, True


def _declared(declared: tuple[Any, ...], kind: type[_D]) -> _D | None:
    return next((one for one in declared if isinstance(one, kind)), None)
