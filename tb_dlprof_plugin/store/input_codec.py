"""The inputs of ops in the protobuf message, and their form in schema 1."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from tb_dlprof_plugin.model.dtypes import InputDtypes, dtype_named
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.shapes import InputShape, InputShapes, InputTable, Shape, TensorList
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.readers.kineto.input_text import parse_dtypes, parse_shapes
from tb_dlprof_plugin.store import dlprof_pb2 as pb

_Row = TypeVar("_Row")


def encode_shapes(table: list[InputShapes]) -> Any:
    """All rows but that of "not recorded"."""
    dimensions: list[int] = []
    sizes: list[int] = []
    for shapes in table[1:]:
        for one in shapes:
            if one is None:
                dimensions.append(-1)
                continue
            if isinstance(one, TensorList):
                dimensions.append(-1 - len(one))
            for shape in one if isinstance(one, TensorList) else (one,):
                dimensions.append(len(shape))
                sizes += shape
    return pb.InputShapes(inputs=[len(shapes) for shapes in table[1:]], dimensions=dimensions, sizes=sizes)


def decode_shapes(message: Any) -> list[InputShapes]:
    """The table of a message.

    Raises:
        ValueError: the columns do not fit together.
    """
    dimensions, sizes = iter(message.dimensions), iter(message.sizes)

    def tensor(count: int) -> Shape:
        return tuple(_taken(sizes, count))

    def one() -> InputShape:
        count = next(dimensions, None)
        if count is None:
            raise ValueError("inputs without shapes")
        if count >= 0:
            return tensor(count)
        return TensorList(map(tensor, _taken(dimensions, -1 - count))) if count < -1 else None

    table: list[InputShapes] = [(), *(tuple(one() for _ in range(inputs)) for inputs in message.inputs)]
    if next(dimensions, None) is not None or next(sizes, None) is not None:
        raise ValueError("shapes without inputs")
    return table


def encode_dtypes(table: list[InputDtypes]) -> Any:
    """All rows but that of "not recorded"."""
    names = StringTable()
    name = [names.add(dtype.name) for dtypes in table[1:] for dtype in dtypes]
    return pb.InputDtypes(inputs=[len(dtypes) for dtypes in table[1:]], names=names.values, name=name)


def decode_dtypes(message: Any) -> list[InputDtypes]:
    """The table of a message.

    Raises:
        ValueError: the columns do not fit together.
        IndexError: an input has a name that is not listed.
    """
    named = [dtype_named(name) for name in message.names]
    found = (named[name] for name in message.name)
    table: list[InputDtypes] = [(), *(tuple(_taken(found, inputs)) for inputs in message.inputs)]
    if next(found, None) is not None:
        raise ValueError("data types without inputs")
    return table


def shapes_of_schema_1(column: Ints, strings: list[str]) -> tuple[Ints, list[InputShapes]]:
    """Rows of a table of shapes for JSON texts.

    Raises:
        IndexError: a text is outside the strings.
    """
    table: InputTable[InputShapes] = InputTable(())
    return _rows(column, {index: table.add(parse_shapes(strings[index])) for index in _texts(column)}), table.values


def dtypes_of_schema_1(column: Ints, strings: list[str]) -> tuple[Ints, list[InputDtypes]]:
    """Rows of a table of data types for JSON texts.

    Raises:
        IndexError: a text is outside the strings.
    """
    table: InputTable[InputDtypes] = InputTable(())
    return _rows(column, {index: table.add(parse_dtypes(strings[index])) for index in _texts(column)}), table.values


def _texts(column: Ints) -> list[int]:
    found: list[int] = np.unique(column).tolist()
    return found


def _rows(column: Ints, row_of: dict[int, int]) -> Ints:
    return np.array([row_of[index] for index in column.tolist()], dtype=np.int64)


def _taken(values: Iterator[_Row], count: int) -> list[_Row]:
    """The next values.

    Raises:
        ValueError: there are not so many.
    """
    found = list(islice(values, count))
    if len(found) < count:
        raise ValueError("inputs without their columns")
    return found
