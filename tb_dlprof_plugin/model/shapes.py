"""Shapes of an op's inputs, as a profile holds them: typed, one entry for each input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

Shape = tuple[int, ...]
"""Sizes of a tensor. () is a tensor without dimensions or an input that is no tensor: traces do not tell which."""


class TensorList(tuple[Shape, ...]):
    """The shapes of an input that is a list of tensors; never empty."""

    __slots__ = ()


InputShape = Shape | TensorList | None
"""Of one input; None where it was recorded in a form that is neither."""
InputShapes = tuple[InputShape, ...]
"""Of the inputs of an op, one entry each; () where the op has none, or none were recorded."""
_Inputs = TypeVar("_Inputs")


class InputTable(Generic[_Inputs]):
    """Lists of inputs under construction: each is kept once. Row 0 stands for "not recorded"."""

    def __init__(self, nothing: _Inputs) -> None:
        self.values: list[_Inputs] = [nothing]
        self._rows: dict[_Inputs, int] = {}

    def add(self, inputs: _Inputs | None) -> int:
        """The row of these inputs, added if they are new; 0 for None."""
        if inputs is None:
            return 0
        row = self._rows.get(inputs)
        if row is None:
            row = self._rows[inputs] = len(self.values)
            self.values.append(inputs)
        return row


def shape_at(shapes: InputShapes | TensorList, at: int) -> Shape | None:
    """The shape of an input, None where there is no tensor or it has no dimensions."""
    shape = shapes[at] if at < len(shapes) else None
    if not shape or isinstance(shape, TensorList) or min(shape) < 0:
        return None
    return shape


def first_tensor(shapes: InputShapes) -> Shape | None:
    """The first input, of a list its first tensor; None where it was not recorded."""
    first = shapes[0] if shapes else None
    return first[0] if isinstance(first, TensorList) else first


def tensors_of(shapes: InputShapes) -> list[Shape]:
    """The inputs that are tensors with dimensions, in order; those of lists are not among them."""
    return [shape for at in range(len(shapes)) if (shape := shape_at(shapes, at)) is not None]


def every_tensor(shapes: InputShapes) -> Iterator[Shape]:
    """All tensors with dimensions in order, those of lists too."""
    for one in shapes:
        yield from (shape for shape in (one if isinstance(one, TensorList) else (one,)) if shape)


def shape_text(shape: InputShape) -> str:
    """ "[64, 3, 7, 7]", of a list of tensors "[[2, 3], [4]]"; "null" where it is unknown."""
    if isinstance(shape, TensorList):
        return str([list(one) for one in shape])
    return "null" if shape is None else str(list(shape))


def inputs_text(shapes: InputShapes) -> str:
    """As Kineto writes them: "[[64, 3, 224, 224], [64, 3, 7, 7], []]"; "" for none."""
    return f"[{', '.join(map(shape_text, shapes))}]" if shapes else ""


def has_sizes(shapes: InputShapes) -> bool:
    """Whether any input has dimensions."""
    return any(True for _ in every_tensor(shapes))
