"""How many times as long the matrix ops of a run would take in another precision, from measured ops like them
(`planning.op_times`)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.metrics.flops import matrix_calls
from tb_dlprof_plugin.metrics.roofline import gpu_name
from tb_dlprof_plugin.model.profile import Bools, Ints
from tb_dlprof_plugin.model.shapes import InputShape, InputShapes, TensorList, tensors_of
from tb_dlprof_plugin.names.gpu_peaks import Ceilings, ceilings_of
from tb_dlprof_plugin.planning.features import Features, matrix_features, matrix_kind
from tb_dlprof_plugin.planning.op_times import Ratio, measured

_CLOSE_ENOUGH = 3
"""Times that the FP32 time of an op in half precision is corrected: ratios change little with it."""
_SAME_TIME = 0.1
"""Logarithms of times are rounded to this."""


@dataclass(frozen=True)
class MatrixOp:
    """Matrix calls of one op (row of `Profile.ops`): number and kernel time per call (ns), FLOPs and least bytes."""

    op: int
    calls: int
    time_ns: float
    flops: int
    moved: int


def matrix_ops(context: RuleContext, launches: Bools) -> list[MatrixOp]:
    """The matrix ops that launched these in the selected iterations, where their FLOPs are known."""
    found = matrix_calls(context.view, context.selection)
    if not len(found):
        return []
    rows, times = np.flatnonzero(launches & (context.profile.launches.call >= 0)), context.profile.launches.duration_ns
    at = found.of_call[context.profile.launches.call[rows]]
    spent = np.bincount(at[at >= 0], weights=times[rows[at >= 0]], minlength=len(found))
    op: Ints = context.profile.calls.op[found.call]
    result = []
    for row in np.unique(op[spent > 0]).tolist():
        mine = np.flatnonzero((op == row) & (spent > 0) & (found.flops > 0) & (found.bytes > 0))
        if len(mine):
            result.append(
                MatrixOp(
                    op=row,
                    calls=len(mine),
                    time_ns=float(spent[mine].mean()),
                    flops=int(found.flops[mine].mean()),
                    moved=int(found.bytes[mine].mean()),
                )
            )
    return result


class OpRatios:
    """Ratios for the GPU of a run; None where its rates are unknown or an op's kind was not measured."""

    def __init__(self, context: RuleContext) -> None:
        self._case = context
        self._ceilings = ceilings_of(gpu_name(context.view))
        self._known: dict[tuple[str, str, Features], Ratio | None] = {}

    def to_half(self, one: MatrixOp, precision: str = "bf16") -> Ratio | None:
        """Time in half precision over that in FP32, of an op that ran in FP32."""
        if self._ceilings is None:
            return None
        # Half precision moves half the bytes; the measured ops are described by those of FP32.
        return self._ratio(self._ceilings, one, self._case.profile.shapes_of(one.op), one.moved, one.time_ns, precision)

    def to_full(self, one: MatrixOp, precision: str, tf32: bool) -> Ratio | None:
        """Time in FP32, or in TF32, over that in half precision, of an op that ran in half precision."""
        shapes = self._case.profile.shapes_of(one.op)
        found = self._from_half(one, shapes, precision)
        if self._ceilings is None or found is None:
            return None
        half, fp32_ns = found
        in_tf32 = self._ratio(self._ceilings, one, shapes, 2 * one.moved, fp32_ns, "tf32") if tf32 else Ratio(1.0, 0.0)
        if in_tf32 is None:
            return None
        return Ratio(in_tf32.value / half.value, float(np.hypot(half.spread, in_tf32.spread)))

    def aligned(self, one: MatrixOp, multiple: int, precision: str) -> Ratio | None:
        """Time with all sizes rounded up to a multiple over the time as it is, of an op in this precision.

        The rows of a product count as its columns where only they are odd: gradients of weights come transposed.
        """
        shapes = self._case.profile.shapes_of(one.op)
        if self._ceilings is None:
            return None
        shapes = _columns_odd(shapes, multiple)
        found = self._from_half(one, shapes, precision)
        if found is None:
            return None
        odd, fp32_ns = found
        moved = one.moved if precision == "tf32" else 2 * one.moved
        padded = tuple(_rounded(shape, multiple) for shape in shapes)
        even = self._ratio(self._ceilings, one, padded, moved, fp32_ns, precision)
        return Ratio(even.value / odd.value, float(np.hypot(even.spread, odd.spread))) if even is not None else None

    def _from_half(self, one: MatrixOp, shapes: InputShapes, precision: str) -> tuple[Ratio, float] | None:
        """The ratio of an op that ran in this precision, and what it would take in FP32 (ns), which the ratio needs."""
        if self._ceilings is None:
            return None
        moved = one.moved if precision == "tf32" else 2 * one.moved
        fp32_ns, ratio = one.time_ns, None
        for _ in range(_CLOSE_ENOUGH):
            ratio = self._ratio(self._ceilings, one, shapes, moved, fp32_ns, precision)
            if ratio is None:
                return None
            fp32_ns = one.time_ns / ratio.value
        return (ratio, fp32_ns) if ratio is not None else None

    def _ratio(
        self, ceilings: Ceilings, one: MatrixOp, shapes: InputShapes, moved: int, time_ns: float, precision: str
    ) -> Ratio | None:
        name = self._case.profile.strings[self._case.profile.ops.name[one.op]]
        kind = matrix_kind(name, shapes, one.flops) if shapes else ""
        if not kind:
            return None
        # Layers that are alike have hardly different times, and share an answer.
        time_ns = math.exp(round(math.log(time_ns) / _SAME_TIME) * _SAME_TIME)
        key = (kind, precision, matrix_features(name, shapes, one.flops, moved, time_ns, ceilings, False))
        if key not in self._known:
            self._known[key] = measured().ratio(*key)
        return self._known[key]


def _columns_odd(shapes: InputShapes, multiple: int) -> InputShapes:
    matrices = [shape for shape in tensors_of(shapes) if len(shape) == 2]
    if len(matrices) != 2:
        return shapes
    (rows, inner), (_, columns) = matrices
    if rows % multiple and not columns % multiple and not inner % multiple:
        return ((columns, inner), (inner, rows))
    return shapes


def _rounded(shape: InputShape, multiple: int) -> InputShape:
    if shape is None or isinstance(shape, TensorList):
        return shape
    return tuple(-(-size // multiple) * multiple for size in shape)
