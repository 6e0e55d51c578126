"""The calls behind the allocations of a step: the tensors that each was given, the modules and the op around it, and
the nodes of the backward pass with the saved tensors that they read. The tensors explain an allocation's size.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from tb_dlprof_plugin.model.profile import CallKind
from tb_dlprof_plugin.model.shapes import InputShapes, TensorList
from tb_dlprof_plugin.planning.memory.allocator import rounded
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


class OpCallShapes:
    """Shapes by call of a view."""

    def __init__(self, view: ProfileView) -> None:
        self._profile, self._parent = view.profile, view.call_parent
        self.of_op = cache(lambda op: flat(self._profile.shapes_of(op)))
        """Shapes of an op's own inputs."""

    def around(self, call: int) -> list[Dimensions]:
        """Shapes of the inputs of a call, then of those around it, the innermost first; empty without shapes."""
        shapes: list[Dimensions] = []
        for _ in range(_MOST_CALLERS):
            if call < 0:
                break
            shapes += self.of_op(int(self._profile.calls.op[call]))
            call = int(self._parent[call])
        return shapes

    def of_size(self, call: int, size: int) -> list[Dimensions]:
        """Of `around` those of tensors that take a block of this size."""
        block = rounded(size)
        return [
            shape for shape in self.around(call) if any(rounded(elements(shape) * item) == block for item in ITEM_SIZES)
        ]

    def products(self, call: int) -> list[int]:
        """Bytes that the result of a matrix product takes, in each size of element; empty for another op."""
        if self._profile.call_name(call) not in PRODUCTS:
            return []
        matrices = [shape for shape in self.of_op(int(self._profile.calls.op[call])) if len(shape) >= 2]
        if len(matrices) < 2 or matrices[-2][-1] != matrices[-1][-2]:
            return []
        return [elements(matrices[-2][:-1]) * matrices[-1][-1] * item for item in ITEM_SIZES]

    def all_sizes(self) -> list[int]:
        """Bytes of every tensor in any op's inputs, in each size of element; sorted."""
        numbers = {elements(shape) for shapes in self._profile.input_shapes for shape in flat(shapes)}
        return sorted({number * size for number in numbers for size in ITEM_SIZES})


def flat(shapes: InputShapes) -> list[Dimensions]:
    """The shapes of an op's inputs, those in lists of tensors too, without those of numbers."""
    dimensions: list[Dimensions] = []
    for shape in shapes:
        if isinstance(shape, TensorList):
            dimensions += [tuple(inner) for inner in shape if inner]
        elif shape:
            dimensions.append(shape)
    return dimensions


def elements(shape: Dimensions) -> int:
    """Number of elements."""
    count = 1
    for dimension in shape:
        count *= dimension
    return count


_NODE = "autograd::engine::evaluate_function"
_VIEWS = (
    "aten::t", "aten::transpose", "aten::view", "aten::_unsafe_view", "aten::reshape", "aten::expand",
    "aten::permute", "aten::as_strided", "aten::detach", "aten::alias", "aten::unsqueeze", "aten::squeeze",
    "aten::flatten", "aten::slice", "aten::select", "aten::narrow", "aten::split", "aten::chunk", "aten::unflatten",
    "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::zeros", "aten::zeros_like",
    "aten::new_empty_strided",
)  # fmt: skip
"""Ops that read no values of their input."""


class OpCalls:
    """The calls of a view; without one no call is known."""

    def __init__(self, view: ProfileView | None = None) -> None:
        self._view = view
        self.chain = cache(self._chain)
        """The calls around a call and itself, the outermost first; () for no call."""
        self.saved_reads = cache(self._saved_reads)
        """Of a node: per op of its function, its call and the bytes of the tensors that it reads and that are no
        gradient given to the node."""
        if view is not None:
            self._order = np.argsort(view.call_parent, kind="stable")
            self._parents = view.call_parent[self._order]

    def modules_and_op(self, call: int) -> tuple[int, ...]:
        """The modules around a call and the outermost op in them."""
        modules: list[int] = []
        for around in self.chain(call):
            profile = self._view.profile  # type: ignore[union-attr]
            kind = int(profile.ops.kind[profile.calls.op[around]])
            if kind == CallKind.MODULE:
                modules.append(around)
            elif kind == CallKind.OP:
                return (*modules, around)
        return tuple(modules)

    def node(self, call: int) -> int:
        """The call of the backward pass's node around a call, -1 outside of all."""
        return next((around for around in self.chain(call) if self._name(around).startswith(_NODE)), -1)

    def _chain(self, call: int) -> tuple[int, ...]:
        if call < 0 or self._view is None:
            return ()
        chain = []
        while call >= 0:
            chain.append(call)
            call = int(self._view.call_parent[call])
        return tuple(reversed(chain))

    def _saved_reads(self, node: int) -> list[tuple[int, list[int]]]:
        function = next((child for child in self._children(node) if "Backward" in self._name(child)), -1)
        if function < 0:
            return []
        gradients = [count for count, _ in self._tensors(function)]
        reads = []
        for op in self._children(function):
            if self._name(op) in _VIEWS:
                continue
            given, sizes = list(gradients), []
            for count, size in self._tensors(op):
                if count in given:
                    given.remove(count)
                else:
                    sizes.append(size)
            reads.append((op, sizes))
        return reads

    def _children(self, call: int) -> list[int]:
        first, last = np.searchsorted(self._parents, [call, call + 1])
        return sorted(self._order[first:last].tolist())

    def _name(self, call: int) -> str:
        return self._view.profile.call_name(call)  # type: ignore[union-attr]

    def _tensors(self, call: int) -> list[tuple[int, int]]:
        """Elements and bytes of the tensors that a call is given; of 4 bytes an element where its type is unknown."""
        profile = self._view.profile  # type: ignore[union-attr]
        op = int(profile.calls.op[call])
        dtypes, tensors = profile.dtypes_of(op), []
        for index, shape in enumerate(profile.shapes_of(op)):
            item = (dtypes[index].element_bytes if index < len(dtypes) else None) or 4
            each: Sequence[Dimensions] = [tuple(inner) for inner in shape] if isinstance(shape, TensorList) else [shape]
            tensors += [(elements(sizes), elements(sizes) * item) for sizes in each if sizes]
        return tensors
