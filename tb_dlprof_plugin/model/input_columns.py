"""How the inputs of ops are stored: the different lists of shapes and of data types, as columns.

Row 0 of a table of inputs stands for "not recorded" and is not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Annotated, Any, TypeVar

import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.model.column import SIGNED, Form
from tb_dlprof_plugin.model.dtypes import InputDtypes, dtype_named
from tb_dlprof_plugin.model.shapes import InputShape, InputShapes, Shape, TensorList
from tb_dlprof_plugin.model.string_table import StringTable

_Ints = npt.NDArray[np.int64]
_Input = TypeVar("_Input")


@dataclass(frozen=True, slots=True)
class ShapeColumns:
    """The lists of shapes, one after the other.

    Attributes:
        inputs: the number of inputs of each list.
        shape: of each input, an index into the different shapes.
        dimensions: of each different shape the number of its sizes, 0 for a tensor without dimensions and for what is
            no tensor; -1 for an input of an unknown form; -1 - n for a list of n tensors, whose numbers follow.
        sizes: of all different shapes.
    """

    inputs: _Ints
    shape: _Ints
    dimensions: Annotated[_Ints, SIGNED]
    sizes: _Ints


@dataclass(frozen=True, slots=True)
class DtypeColumns:
    """The lists of data types, one after the other.

    Attributes:
        inputs: the number of inputs of each list.
        names: in C++, such as "c10::Half", "Scalar" or "TensorList".
        name: of each input, an index into the names.
    """

    inputs: _Ints
    names: list[str]
    name: _Ints


def shape_columns(table: list[InputShapes]) -> ShapeColumns:
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
    return ShapeColumns(*map(_ints, ([len(shapes) for shapes in table[1:]], shape, dimensions, sizes)))


def table_of_shapes(columns: ShapeColumns, may_take: Callable[[int], bool] | None = None) -> list[InputShapes]:
    """The table of the columns.

    Raises:
        ValueError: the columns do not fit together.
        IndexError: an input has a shape that is not listed.
    """
    different = _different_shapes(columns.dimensions.tolist(), columns.sizes.tolist())
    return [(), *_lists(_listed(different, columns.shape), columns.inputs)]


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


def dtype_columns(table: list[InputDtypes]) -> DtypeColumns:
    """All rows but that of "not recorded"."""
    names = StringTable()
    name = [names.add(dtype.name) for dtypes in table[1:] for dtype in dtypes]
    return DtypeColumns(_ints([len(dtypes) for dtypes in table[1:]]), names.values, _ints(name))


def table_of_dtypes(columns: DtypeColumns, may_take: Callable[[int], bool] | None = None) -> list[InputDtypes]:
    """The table of the columns.

    Raises:
        ValueError: the columns do not fit together.
        IndexError: an input has a name that is not listed.
    """
    named = [dtype_named(name) for name in columns.names]
    return [(), *_lists(_listed(named, columns.name), columns.inputs)]


def _listed(different: list[_Input], rows: _Ints) -> list[_Input]:
    if rows.min(initial=0) < 0:
        raise ValueError("an input has a row below the first")
    return [different[row] for row in rows.tolist()]


def _lists(inputs: list[_Input], lengths: _Ints) -> Iterator[tuple[_Input, ...]]:
    """The inputs cut into lists."""
    ends = list(accumulate(lengths.tolist(), initial=0))
    if ends[-1] != len(inputs) or lengths.min(initial=0) < 0:
        raise ValueError("the lists of inputs do not fit together")
    return (tuple(inputs[begin:end]) for begin, end in pairwise(ends))


def _ints(values: list[int]) -> Any:
    return np.array(values, dtype=np.int64)


SHAPE_COLUMNS = Form(ShapeColumns, shape_columns, table_of_shapes)
DTYPE_COLUMNS = Form(DtypeColumns, dtype_columns, table_of_dtypes)
