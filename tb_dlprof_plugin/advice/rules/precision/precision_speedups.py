"""How many times as long the matrix ops of a run would take in another precision, from measured ops like them
(`planning.op_times`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.metrics.flops import matrix_calls
from tb_dlprof_plugin.metrics.roofline import gpu_name
from tb_dlprof_plugin.model.profile import Bools, Ints
from tb_dlprof_plugin.model.shapes import InputShape, InputShapes, TensorList, tensors_of
from tb_dlprof_plugin.names.gpu_peaks import ceilings_of
from tb_dlprof_plugin.planning.features import matrix_features, matrix_kind
from tb_dlprof_plugin.planning.op_times import Like, Ratio, measured

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


@dataclass(frozen=True)
class _Asked:
    """An op with the shapes that it has or would have, its least bytes and its time in FP32."""

    one: MatrixOp
    shapes: InputShapes
    moved: int
    time_ns: float
    precision: str


class OpRatios:
    """Ratios for the GPU of a run, of several ops at once; None where its rates are unknown or an op's kind was not
    measured."""

    def __init__(self, context: RuleContext) -> None:
        self._case = context
        self._ceilings = ceilings_of(gpu_name(context.view))

    def to_half(self, ops: Sequence[MatrixOp], precision: str = "bf16") -> list[Ratio | None]:
        """Time in half precision over that in FP32, of ops that ran in FP32."""
        # Half precision moves half the bytes; the measured ops are described by those of FP32.
        return self._ratios([_Asked(one, self._shapes(one), one.moved, one.time_ns, precision) for one in ops])

    def to_full(self, ops: Sequence[MatrixOp], precisions: Sequence[str], tf32: Sequence[bool]) -> list[Ratio | None]:
        """Time in FP32, or in TF32, over that in half precision, of ops that ran in half precision."""
        found = self._from_half([_ran(one, self._shapes(one), half) for one, half in zip(ops, precisions, strict=True)])
        full = iter(
            self._ratios(
                [
                    replace(ran, precision="tf32")
                    for (ran, half), is_tf32 in zip(found, tf32, strict=True)
                    if half is not None and is_tf32
                ]
            )
        )
        result: list[Ratio | None] = []
        for (_, half), is_tf32 in zip(found, tf32, strict=True):
            in_full = None if half is None else next(full) if is_tf32 else Ratio(1.0, 0.0)
            result.append(_over(in_full, half))
        return result

    def aligned(self, ops: Sequence[MatrixOp], multiple: int, precision: str) -> list[Ratio | None]:
        """Time with all sizes rounded up to a multiple over the time as it is, of ops in this precision.

        The rows of a product count as its columns where only they are odd: gradients of weights come transposed.
        """
        odd = self._from_half([_ran(one, _columns_odd(self._shapes(one), multiple), precision) for one in ops])
        even = self._ratios(
            [replace(ran, shapes=tuple(_rounded(shape, multiple) for shape in ran.shapes)) for ran, _ in odd]
        )
        return [_over(one, other) for one, (_, other) in zip(even, odd, strict=True)]

    def _shapes(self, one: MatrixOp) -> InputShapes:
        return self._case.profile.shapes_of(one.op)

    def _from_half(self, ran: Sequence[_Asked]) -> list[tuple[_Asked, Ratio | None]]:
        """The ratios of ops by what they take in their precision, and they with what they would take in FP32, which the
        ratio needs."""
        asked, ratios = list(ran), self._ratios(ran)
        for _ in range(1, _CLOSE_ENOUGH):
            asked = self._in_fp32(ran, ratios)
            ratios = self._ratios(asked)
        return list(zip(self._in_fp32(ran, ratios), ratios, strict=True))

    def _in_fp32(self, ran: Sequence[_Asked], ratios: Sequence[Ratio | None]) -> list[_Asked]:
        return [
            replace(one, time_ns=one.time_ns / ratio.value) if ratio is not None else one
            for one, ratio in zip(ran, ratios, strict=True)
        ]

    def _ratios(self, asked: Sequence[_Asked]) -> list[Ratio | None]:
        likes = [self._like(one) for one in asked]
        found = measured().ratios(like for like in likes if like is not None)
        return [found[like] if like is not None else None for like in likes]

    def _like(self, asked: _Asked) -> Like | None:
        if self._ceilings is None:
            return None
        one, shapes = asked.one, asked.shapes
        name = self._case.profile.strings[self._case.profile.ops.name[one.op]]
        kind = matrix_kind(name, shapes, one.flops) if shapes else ""
        if not kind:
            return None
        # Layers that are alike have hardly different times, and share an answer.
        time_ns = math.exp(round(math.log(asked.time_ns) / _SAME_TIME) * _SAME_TIME)
        features = matrix_features(name, shapes, one.flops, asked.moved, time_ns, self._ceilings, False)
        return Like(kind, asked.precision, features)


def _ran(one: MatrixOp, shapes: InputShapes, precision: str) -> _Asked:
    """An op that ran in this precision, as if it had taken that time in FP32."""
    return _Asked(one, shapes, one.moved if precision == "tf32" else 2 * one.moved, one.time_ns, precision)


def _over(one: Ratio | None, other: Ratio | None) -> Ratio | None:
    if one is None or other is None:
        return None
    return Ratio(one.value / other.value, math.hypot(one.spread, other.spread))


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
