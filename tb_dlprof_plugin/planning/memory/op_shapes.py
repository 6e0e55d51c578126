"""The tensors that a call and the calls around it were given, as numbers of elements: what explains an allocation's
size."""

from __future__ import annotations

from functools import cache

from tb_dlprof_plugin.model.shapes import InputShapes, TensorList
from tb_dlprof_plugin.profile_view import ProfileView

Dimensions = tuple[int, ...]
ITEM_SIZES = (4, 2, 8, 1)
"""Bytes of an element, the most frequent first."""
_MOST_CALLERS = 6
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")
"""Matrix products, which cuBLAS computes."""
CONVOLUTIONS = frozenset({
    "aten::cudnn_convolution", "aten::cudnn_convolution_transpose", "aten::cudnn_convolution_relu",
    "aten::cudnn_convolution_add_relu", "aten::convolution_backward",
})  # fmt: skip
"""Convolutions, which cuDNN computes."""


class OpShapes:
    """Shapes by call of a view."""

    def __init__(self, view: ProfileView) -> None:
        self._profile, self._parent = view.profile, view.call_parent
        self.of_op = cache(self._shapes_of_op)
        """Shapes of an op's own inputs."""

    def around(self, call: int) -> list[Dimensions]:
        """Shapes of the inputs of a call, then of those around it, the innermost first; empty without shapes."""
        found: list[Dimensions] = []
        for _ in range(_MOST_CALLERS):
            if call < 0:
                break
            found += self.of_op(int(self._profile.calls.op[call]))
            call = int(self._parent[call])
        return found

    def products(self, call: int) -> list[int]:
        """Bytes that the result of a matrix product takes, in each size of element; empty for another op."""
        if call < 0:
            return []
        op = int(self._profile.calls.op[call])
        if self._profile.strings[int(self._profile.ops.name[op])] not in PRODUCTS:
            return []
        matrices = [shape for shape in self.of_op(op) if len(shape) >= 2]
        if len(matrices) < 2 or matrices[-2][-1] != matrices[-1][-2]:
            return []
        return [elements(matrices[-2][:-1]) * matrices[-1][-1] * item for item in ITEM_SIZES]

    def all_sizes(self) -> list[int]:
        """Bytes of every tensor in any op's inputs, in each size of element; sorted."""
        numbers = {elements(shape) for shapes in self._profile.input_shapes for shape in flat(shapes)}
        return sorted({number * size for number in numbers for size in ITEM_SIZES})

    def _shapes_of_op(self, op: int) -> list[Dimensions]:
        return flat(self._profile.shapes_of(op))


def flat(shapes: InputShapes) -> list[Dimensions]:
    """The shapes of an op's inputs, those in lists of tensors too, without those of numbers."""
    found: list[Dimensions] = []
    for shape in shapes:
        if isinstance(shape, TensorList):
            found += [tuple(one) for one in shape if one]
        elif shape:
            found.append(shape)
    return found


def elements(shape: Dimensions) -> int:
    """Number of elements."""
    count = 1
    for dimension in shape:
        count *= dimension
    return count
