"""The ops of two runs matched by module path, op type and role.

Outermost ops are matched, because their names stay the same from FP32 to AMP where the ops inside them change
(``aten::cudnn_batch_norm`` becomes ``aten::native_batch_norm``, casts appear). Without module paths all ops of one
type and role form one pair.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from tb_dlprof_plugin.measures import Frame, Selection
from tb_dlprof_plugin.measures.iterations import percent
from tb_dlprof_plugin.measures.ops import OpTotals, group_precisions, input_precisions, op_totals
from tb_dlprof_plugin.storage.model import Profile


class OpSide(msgspec.Struct, frozen=True):
    """One op in one run; means per iteration (ns). ``kernels`` is None without a GPU."""

    id: str
    time_ns: int
    tensor_core_ns: int
    kernels: float | None
    precision: str
    eligible_unknown_ns: int


class OpPair(msgspec.Struct, frozen=True):
    """An op of both runs; a side is None where its run does not have the op."""

    module: str
    op_type: str
    role: int
    a: OpSide | None
    b: OpSide | None

    @property
    def difference_ns(self) -> int:
        """b - a, a missing side counting as no time."""
        return (self.b.time_ns if self.b else 0) - (self.a.time_ns if self.a else 0)


class Comparison(msgspec.Struct, frozen=True):
    """``basis`` is the time compared: "gpu" where both runs have a GPU, else "cpu".

    ``matched_percent`` is the share of run a's time in ops that run b has too; None where a has no time.
    """

    basis: Literal["gpu", "cpu"]
    pairs: list[OpPair]
    matched_percent: float | None


def compare(
    a: Profile | Frame, b: Profile | Frame, a_selection: Selection | None = None, b_selection: Selection | None = None
) -> Comparison:
    """The ops of two runs side by side, by falling absolute difference; all iterations where none are selected."""
    frame_a = a if isinstance(a, Frame) else Frame(a)
    frame_b = b if isinstance(b, Frame) else Frame(b)
    basis: Literal["gpu", "cpu"] = "gpu" if frame_a.profile.has_gpu and frame_b.profile.has_gpu else "cpu"
    sides_a = _sides(frame_a, a_selection or frame_a.selection(), basis)
    sides_b = _sides(frame_b, b_selection or frame_b.selection(), basis)
    pairs = [OpPair(*key, sides_a.get(key), sides_b.get(key)) for key in {**sides_a, **sides_b}]
    pairs.sort(key=lambda pair: -abs(pair.difference_ns))
    whole = sum(side.time_ns for side in sides_a.values())
    matched = sum(side.time_ns for key, side in sides_a.items() if key in sides_b)
    return Comparison(basis, pairs, percent(matched, whole))


def _sides(frame: Frame, selection: Selection, basis: str) -> dict[tuple[str, str, int], OpSide]:
    groups, strings = frame.groups, frame.profile.strings
    totals = op_totals(frame, selection)
    precisions = group_precisions(frame, selection)
    inputs = input_precisions(frame, selection)
    time = totals.gpu_ns if basis == "gpu" else totals.cpu_total_ns
    result: dict[tuple[str, str, int], OpSide] = {}
    for group in np.flatnonzero(_present(totals, basis)).tolist():
        key = (strings[groups.module[group]], strings[groups.op_type[group]], int(groups.role[group]))
        result[key] = OpSide(
            id=groups.ids[group],
            time_ns=int(time[group]) // selection.count,
            tensor_core_ns=int(totals.tensor_core_ns[group]) // selection.count,
            kernels=float(totals.kernel_calls[group]) / selection.count if frame.profile.has_gpu else None,
            precision=precisions[group] or inputs[group],
            eligible_unknown_ns=int(totals.eligible_unknown_ns[group]) // selection.count,
        )
    return result


def _present(totals: OpTotals, basis: str) -> np.ndarray:  # type: ignore[type-arg]
    return (totals.gpu_ns > 0) if basis == "gpu" else (totals.cpu_total_ns > 0)
