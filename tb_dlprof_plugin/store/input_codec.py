"""The inputs of ops in the protobuf message, and their form in schema 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np

from tb_dlprof_plugin.model.dtypes import InputDtypes, dtype_named
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.shapes import InputShape, InputShapes, InputTable, Shape, TensorList
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.readers.input_text import parse_dtypes, parse_shapes
from tb_dlprof_plugin.store import dlprof_pb2 as pb
from tb_dlprof_plugin.store.wire import Table

_Input = TypeVar("_Input")


def encode_shapes(table: list[InputShapes]) -> Any:
    """All rows but that of "not recorded"."""
    different: dict[InputShape, int] = {}
    shape = [different.setdefault(one, len(different)) for shapes in table[1:] for one in shapes]
    dimensions: list[int] = []
    sizes: list[int] = []
    for one in different:
        if one is None:
            dimensions.append(-1)
            continue
        if isinstance(one, TensorList):
            dimensions.append(-1 - len(one))
        for tensor in one if isinstance(one, TensorList) else (one,):
            dimensions.append(len(tensor))
            sizes += tensor
    return pb.InputShapes(inputs=[len(shapes) for shapes in table[1:]], shape=shape, dimensions=dimensions, sizes=sizes)


def decode_shapes(table: Table) -> list[InputShapes]:
    """The table of a message's columns.

    Raises:
        ValueError: the columns do not fit together.
        IndexError: an input has a shape that is not listed.
    """
    different = _different_shapes(table("dimensions").tolist(), table("sizes").tolist())
    return [(), *_lists(_listed(different, table("shape")), table("inputs"))]


def _different_shapes(dimensions: list[int], sizes: list[int]) -> list[InputShape]:
    begin = 0

    def tensor(count: int) -> Shape:
        nonlocal begin
        if count < 0:
            raise ValueError("a shape has fewer than no sizes")
        begin += count
        return tuple(sizes[begin - count : begin])

    found: list[InputShape] = []
    at = 0
    while at < len(dimensions):
        count = dimensions[at]
        at += 1
        if count >= 0:
            found.append(tensor(count))
        elif count == -1:
            found.append(None)
        else:
            found.append(TensorList(map(tensor, dimensions[at : at - 1 - count])))
            at += -1 - count
    if (at, begin) != (len(dimensions), len(sizes)):
        raise ValueError("the shapes of inputs do not fit together")
    return found


def encode_dtypes(table: list[InputDtypes]) -> Any:
    """All rows but that of "not recorded"."""
    names = StringTable()
    name = [names.add(dtype.name) for dtypes in table[1:] for dtype in dtypes]
    return pb.InputDtypes(inputs=[len(dtypes) for dtypes in table[1:]], names=names.values, name=name)


def decode_dtypes(message: Any, table: Table) -> list[InputDtypes]:
    """The table of a message and its columns.

    Raises:
        ValueError: the columns do not fit together.
        IndexError: an input has a name that is not listed.
    """
    named = [dtype_named(name) for name in message.names]
    return [(), *_lists(_listed(named, table("name")), table("inputs"))]


def _listed(different: list[_Input], rows: Ints) -> list[_Input]:
    if rows.min(initial=0) < 0:
        raise ValueError("an input has a row below the first")
    return [different[row] for row in rows.tolist()]


def _lists(inputs: list[_Input], lengths: Ints) -> Iterator[tuple[_Input, ...]]:
    """The inputs cut into lists."""
    ends = list(accumulate(lengths.tolist(), initial=0))
    if ends[-1] != len(inputs) or lengths.min(initial=0) < 0:
        raise ValueError("the lists of inputs do not fit together")
    return (tuple(inputs[begin:end]) for begin, end in pairwise(ends))


def shapes_of_schema_1(column: Ints, strings: list[str]) -> tuple[Ints, list[InputShapes]]:
    """Rows of a table of shapes for JSON texts.

    Raises:
        IndexError: a text is outside the strings.
    """
    table: InputTable[InputShapes] = InputTable(())
    return _rows(column, strings, lambda text: table.add(parse_shapes(text))), table.values


def dtypes_of_schema_1(column: Ints, strings: list[str]) -> tuple[Ints, list[InputDtypes]]:
    """Rows of a table of data types for JSON texts.

    Raises:
        IndexError: a text is outside the strings.
    """
    table: InputTable[InputDtypes] = InputTable(())
    return _rows(column, strings, lambda text: table.add(parse_dtypes(text))), table.values


def _rows(column: Ints, strings: list[str], row_of: Callable[[str], int]) -> Ints:
    """The row of each text; each different text is looked at once."""
    if column.min(initial=0) < 0:
        raise IndexError("an op has a text before the first")
    rows = np.zeros(len(strings), dtype=np.int64)
    for index in np.unique(column).tolist():
        rows[index] = row_of(strings[index])
    return rows[column]
