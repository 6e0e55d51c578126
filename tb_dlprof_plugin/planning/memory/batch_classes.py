"""Says of each allocation of a step whether it grows with the batch.

The gradients of parameters and what the optimizer makes do not. Else the shapes of the op's inputs decide: an
allocation of the size of one with a dimension that is a multiple of the batch grows in proportion, one of the size of a
parameter (a copy of it under autocast) does not. What no shape explains is a statistic or a saved result of forward and
backward pass, which grow, or a library's workspace: that of a reduction is bounded by the GPU's number of
multiprocessors, that of a convolution depends on the algorithm. Of workspaces the class is a guess, and is marked as
one.
"""

from __future__ import annotations

from collections.abc import Sequence

from tb_dlprof_plugin.planning.memory.allocator import rounded
from tb_dlprof_plugin.planning.memory.op_shapes import ITEM_SIZES, OpShapes, elements
from tb_dlprof_plugin.planning.memory.step_program import SlotKind
from tb_dlprof_plugin.profile_view import ProfileView

_REDUCTIONS = (
    "aten::sum",
    "aten::mean",
    "aten::norm",
    "aten::max",
    "aten::min",
    "aten::amax",
    "aten::var",
    "aten::std",
)
_MAKERS = ("aten::empty", "aten::resize_", "aten::new_empty", "aten::clone", "aten::zeros", "aten::full", "aten::copy_")
"""Ops that make what the op around them returns or saves."""


class BatchClasses:
    """The class of allocations of one view.

    Args:
        view: with the batch size among its facts, or without: then no class is known.
        gradients: bytes of the parameters' gradients.
    """

    def __init__(self, view: ProfileView, gradients: Sequence[int]) -> None:
        self._profile = view.profile
        self._shapes = OpShapes(view)
        self._batch = view.profile.facts.batch_size or 0
        held = [size for row in view.profile.facts.storages if row.kind == "parameter" for size in row.bytes]
        itemsize = 2 if set(view.profile.facts.parameter_dtypes) <= {"float16", "bfloat16"} and held else 4
        self._parameters = {rounded(size // itemsize * item) for size in (held or gradients) for item in ITEM_SIZES}

    def of(self, kind: SlotKind, call: int, size: int) -> tuple[float, bool]:
        """How an allocation grows (1.0 in proportion, 0.0 not at all) and whether that is known.

        Args:
            kind: what it is.
            call: row in `Calls` of the innermost call around it, -1 for none.
            size: bytes as asked for.
        """
        if kind in (SlotKind.GRADIENT, SlotKind.OPTIMIZER):
            return 0.0, True
        if call < 0:
            return 1.0, False
        like = [
            shape
            for shape in self._shapes.around(call)
            if any(rounded(elements(shape) * item) == rounded(size) for item in ITEM_SIZES)
        ]
        if any(self._has_batch(shape) for shape in like):
            weight = all(rounded(elements(shape) * 4) in self._parameters for shape in like)
            return (0.0, True) if weight and rounded(size) in self._parameters else (1.0, True)
        if like or rounded(size) in self._parameters:
            return 0.0, True
        name = self._profile.strings[int(self._profile.ops.name[self._profile.calls.op[call]])]
        if name.startswith(_MAKERS) or kind == SlotKind.ACTIVATION:
            return 1.0, True
        return (0.0, False) if name in _REDUCTIONS else (1.0, False)

    def _has_batch(self, shape: tuple[int, ...]) -> bool:
        return bool(self._batch) and any(dimension and dimension % self._batch == 0 for dimension in shape)
