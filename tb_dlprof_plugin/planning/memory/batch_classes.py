"""Says of each allocation of a step how it grows with the batch.

What the optimizer makes, the gradients of parameters and copies of parameters do not. In the forward pass only a cast
copies a parameter; in the backward pass what has the size of a parameter *of its own module* is a gradient of it. Else
the shapes of the op's inputs decide: an allocation of the size of one with a dimension that is a multiple of the batch
grows in proportion, one of the size of others does not. The buffer of a reduction has a formula of its own
(`reductions`). What nothing explains is a result that a pass keeps, which grows, or a library's workspace, whose size
depends on the algorithm: of those the class is a guess, and is marked as one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.names.ops import ACCUMULATE_GRAD
from tb_dlprof_plugin.planning.memory.allocator import SMALL, rounded
from tb_dlprof_plugin.planning.memory.holders import CASTS
from tb_dlprof_plugin.planning.memory.op_calls import OpCallShapes
from tb_dlprof_plugin.planning.memory.reductions import Reduction, reductions_of, threads_per_sm
from tb_dlprof_plugin.planning.memory.step_program import SlotKind, inside
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


@dataclass(frozen=True, slots=True)
class BatchClass:
    """How an allocation grows: ``share`` 1.0 in proportion, 0.0 not at all; ``known`` where that is no guess;
    ``reduction`` where a formula gives its bytes instead."""

    share: float
    known: bool = True
    reduction: Reduction | None = None


class BatchClasses:
    """The class of allocations of one view.

    Args:
        view: with the batch size among its facts, or without: then no class is known.
        gradients: module and bytes of the parameters' gradients that the step makes and leaves.
    """

    def __init__(self, view: ProfileView, gradients: Sequence[tuple[str, int]]) -> None:
        self._profile, self._parent = view.profile, view.call_parent
        self._shapes = OpCallShapes(view)
        self._batch = view.profile.facts.batch_size or 0
        facts = view.profile.facts
        held = [(row.module, size) for row in facts.storages if row.kind == "parameter" for size in row.bytes]
        itemsize = 2 if set(facts.parameter_dtypes) <= {"float16", "bfloat16"} and held else 4
        self._parameters: dict[str, set[int]] = defaultdict(set)
        for module, size in held or gradients:
            self._parameters[module] |= {rounded(size // itemsize * item) for item in (itemsize, 2)}
        self._gradients = {(module, rounded(size)) for module, size in gradients}
        self._threads = (view.gpu.sm_count or 0 if view.gpu is not None else 0) * threads_per_sm(
            view.compute_capability
        )

    def of(self, kind: SlotKind, call: int, module: str, size: int) -> BatchClass:
        """The class of an allocation.

        Args:
            kind: what it is.
            call: row in `Calls` of the innermost call around it, -1 for none.
            module: path of its module.
            size: bytes as asked for, or of its block where that is not known.
        """
        if kind in (SlotKind.GRADIENT, SlotKind.OPTIMIZER):
            return BatchClass(0.0)
        if call < 0:
            return BatchClass(1.0, known=False)
        op = int(self._profile.calls.op[call])
        role, names = int(self._profile.ops.role[op]), self._names(call)
        if role == Role.OPTIMIZER or ACCUMULATE_GRAD in names:
            return BatchClass(0.0)
        if names[0] in _REDUCTIONS:
            reduction = self._reduction(op, size)
            if reduction is not None:
                return BatchClass(0.0, reduction=reduction)
        if self._is_of_parameter(role, names, module, rounded(size)):
            return BatchClass(0.0)
        like = self._shapes.of_size(call, size)
        if like:
            return BatchClass(1.0 if any(map(self._has_batch, like)) else 0.0)
        if names[0] in _REDUCTIONS:
            return BatchClass(0.0, known=False)
        return BatchClass(1.0, known=kind != SlotKind.TEMPORARY)

    def _names(self, call: int) -> list[str]:
        """Names of a call and of those around it."""
        names = []
        while call >= 0:
            names.append(self._profile.call_name(call))
            call = int(self._parent[call])
        return names

    def _reduction(self, op: int, size: int) -> Reduction | None:
        """The reduction whose buffer an allocation is: the one that fits best, of those that fit its block."""
        fitting = [
            (size - rounded(reduction.bytes()), reduction)
            for shape in self._shapes.of_op(op)
            for reduction in reductions_of(shape, self._batch, self._threads)
            if reduction.bytes() and 0 <= size - rounded(reduction.bytes()) <= (SMALL if size > SMALL else 0)
        ]
        return min(fitting, key=lambda pair: pair[0])[1] if fitting else None

    def _is_of_parameter(self, role: int, names: Sequence[str], module: str, size: int) -> bool:
        """Whether it is a copy or a gradient of a parameter of its module or of one in it."""
        if role == Role.BACKWARD:
            # The gradient itself is there already, so this one is of an activation of the same size.
            if (module, size) in self._gradients:
                return False
        elif not any(name in CASTS for name in names):
            return False
        if not module:
            return size in self._parameters.get("", ())
        return any(size in sizes for path, sizes in self._parameters.items() if inside(path, module))

    def _has_batch(self, shape: tuple[int, ...]) -> bool:
        return bool(self._batch) and any(dimension and dimension % self._batch == 0 for dimension in shape)
