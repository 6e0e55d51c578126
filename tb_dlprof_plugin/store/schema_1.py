"""Profiles of the first schema: shapes and data types of ops' inputs are JSON texts among the strings.

The texts are as Kineto writes them ("Input Dims", "Input type").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated

import numpy as np

from tb_dlprof_plugin.model.column import FieldNumber, RowsOf
from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.profile import Ints, Ops, Profile
from tb_dlprof_plugin.model.shapes import InputShapes, InputTable
from tb_dlprof_plugin.readers.input_text import parse_dtypes, parse_shapes


@dataclass(frozen=True, slots=True)
class OpsOfSchema1(Ops):
    """``shapes`` and ``dtypes`` are JSON texts."""

    shapes: Annotated[Ints, RowsOf("strings"), FieldNumber(6)]
    dtypes: Annotated[Ints, RowsOf("strings"), FieldNumber(7)]


@dataclass(frozen=True, slots=True)
class ProfileOfSchema1(Profile):
    """Without tables of inputs."""

    ops: Annotated[OpsOfSchema1, FieldNumber(8)]


def of_today(old: ProfileOfSchema1) -> Profile:
    """The same profile with tables of inputs.

    Raises:
        IndexError: a text is outside the strings.
    """
    shapes: InputTable[InputShapes] = InputTable(())
    dtypes: InputTable[InputDtypes] = InputTable(())
    rows = {
        "shapes": _rows(old.ops.shapes, old.strings, lambda text: shapes.add(parse_shapes(text))),
        "dtypes": _rows(old.ops.dtypes, old.strings, lambda text: dtypes.add(parse_dtypes(text))),
    }
    ops = Ops(**{one.name: getattr(old.ops, one.name) for one in fields(Ops)} | rows)
    tables = {"ops": ops, "input_shapes": shapes.values, "input_dtypes": dtypes.values}
    return Profile(**{one.name: getattr(old, one.name) for one in fields(Profile)} | tables)


def _rows(column: Ints, strings: list[str], row_of: Callable[[str], int]) -> Ints:
    """The row of each text; each different text is looked at once."""
    if column.min(initial=0) < 0:
        raise IndexError("an op has a text before the first")
    rows = np.zeros(len(strings), dtype=np.int64)
    for index in np.unique(column).tolist():
        rows[index] = row_of(strings[index])
    return rows[column]
