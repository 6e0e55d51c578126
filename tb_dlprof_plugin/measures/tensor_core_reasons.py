"""Kernel time of matrix ops off the Tensor Cores, by reason.

The rules stand in `tb_dlprof_plugin.kernels.reasons`. Here each kernel finds the matrix op that launched it, and those
that only serve the product (they change the layout, or add up its parts) are told from those that compute it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.frame import Frame, Selection, per_selection
from tb_dlprof_plugin.kernels.eligibility import computes_product, is_matrix_op
from tb_dlprof_plugin.kernels.reasons import Product, Reason, Settings, reason_for
from tb_dlprof_plugin.storage.model import Bools, Ints, KernelKind, Verdict
from tb_dlprof_plugin.storage.precision import precision_of_dtypes
from tb_dlprof_plugin.storage.tree import nearest

HALF_SHARE = 0.5
"""With at least half of the matrix time in half precision, an FP32 op is the exception in the run."""

_HALF = ("fp16", "bf16", "fp8")
_CUDNN_FAMILIES = ("convolution", "rnn")


@dataclass(frozen=True, slots=True)
class OffTime:
    """Kernel time (ns) of one op group off the Tensor Cores, or of unknown kind, for one reason.

    ``shapes`` are those of the inputs of the matrix ops with most of it. ``eligible`` is False for matrix ops that the
    GPU's Tensor Cores could not compute at all. ``verdict`` is that of the kernels.
    """

    group: int
    reason: Reason
    time_ns: int
    shapes: str
    eligible: bool
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Served:
    """Kernel time (ns) of one op group that serves products on Tensor Cores; ``layout``: it transposes for them."""

    group: int
    layout: bool
    time_ns: int


@dataclass(frozen=True, slots=True)
class OffTensorCores:
    """``sum(off of eligible) + sum(served) == eligible time not using + unknown`` of `TensorCoreTotals`."""

    off: list[OffTime]
    served: list[Served]


@dataclass(frozen=True, slots=True)
class _Part:
    """Launches of one kernel by one matrix op in one group."""

    group: int
    op: int
    kernel: int
    time_ns: int
    eligible: bool


@per_selection
def off_tensor_cores(frame: Frame, selection: Selection) -> OffTensorCores:
    """Time off the Tensor Cores by op group and reason, each by falling time."""
    owner, eligible = _owners(frame)
    rows = frame.selected_launches(selection) & (frame.launch_group >= 0) & (owner >= 0)
    settings = run_settings(frame)
    off: dict[tuple[int, Reason, bool, Verdict], dict[str, int]] = {}
    served: dict[tuple[int, bool], int] = {}
    for parts in _by_matrix_op(frame, rows, owner, eligible):
        on_tensor_cores = any(_verdict(frame, part) == Verdict.YES for part in parts)
        products = [part for part in parts if _computes(frame, part)] or parts
        reasons: dict[int, Reason] = {}
        for part in sorted(parts, key=lambda part: (part not in products, -part.time_ns)):
            verdict = _verdict(frame, part)
            if verdict == Verdict.YES:
                continue
            if part not in products and verdict == Verdict.NO:
                if on_tensor_cores:
                    layout = _string(frame, frame.profile.kernels.family[part.kernel]) == "transpose"
                    served[part.group, layout] = served.get((part.group, layout), 0) + part.time_ns
                    continue
                # What serves a product off the Tensor Cores is there for the same reason as the product.
                reason = next(iter(reasons.values()))
            else:
                reason = reasons[part.kernel] = reason_for(_product(frame, part, verdict), settings)
            by_shapes = off.setdefault((part.group, reason, part.eligible, verdict), {})
            shapes = _string(frame, frame.profile.ops.shapes[part.op])
            by_shapes[shapes] = by_shapes.get(shapes, 0) + part.time_ns
    times = [
        OffTime(group, reason, sum(shapes.values()), max(shapes, key=lambda s: shapes[s]), may, verdict)
        for (group, reason, may, verdict), shapes in off.items()
    ]
    return OffTensorCores(
        off=sorted(times, key=lambda item: -item.time_ns),
        served=sorted((Served(*key, time) for key, time in served.items()), key=lambda item: -item.time_ns),
    )


def run_settings(frame: Frame) -> Settings:
    """The GPU, the TF32 switches and the usual precision of the run.

    A switch is on where a kernel of its kind ran in TF32, whatever was recorded of it: a program may change it between
    the steps and the moment at which the hook reads it.
    """
    profile, kernels, launches = frame.profile, frame.profile.kernels, frame.profile.launches
    owner, eligible = _owners(frame)
    rows = eligible & (owner >= 0)
    op, time = owner[rows], launches.duration_ns[rows]
    half = np.array([precision_of_dtypes(_string(frame, i)) in _HALF for i in profile.ops.dtypes], dtype=np.bool_)
    in_tf32 = np.array([_string(frame, i) == "tf32" for i in kernels.precision], dtype=np.bool_)[launches.kernel[rows]]
    of_cudnn = launch_of_cudnn(frame)[rows]
    facts = profile.facts
    return Settings(
        compute_capability=frame.compute_capability,
        matmul_tf32=True if (in_tf32 & ~of_cudnn).any() else facts.matmul_allow_tf32,
        cudnn_tf32=True if (in_tf32 & of_cudnn).any() else facts.cudnn_allow_tf32,
        half=bool(len(op)) and int(time[half[op]].sum()) >= HALF_SHARE * int(time.sum()) > 0,
    )


def launch_of_cudnn(frame: Frame) -> Bools:
    """Per launch whether cuDNN's TF32 switch decides about its kernel: convolutions and recurrent layers."""
    kernels = frame.profile.kernels
    of_cudnn = np.array([_string(frame, i) in _CUDNN_FAMILIES for i in kernels.family], dtype=np.bool_)
    decides: Bools = of_cudnn[frame.profile.launches.kernel]
    return decides


def _owners(frame: Frame) -> tuple[Ints, Bools]:
    """Per launch the row in `Profile.ops` of its matrix op, -1 for none, and whether that could use Tensor Cores.

    The innermost op that could; where none could, the innermost matrix op. Of a product without a matrix op, the op
    that launched it.
    """
    profile, launches = frame.profile, frame.profile.launches
    count = len(launches)
    if not len(profile.calls):
        return np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    can = (profile.ops.tensor_core_eligible != Verdict.NO)[profile.calls.op]
    matrix = np.array([is_matrix_op(_string(frame, i)) for i in profile.ops.name], dtype=np.bool_)[profile.calls.op]
    is_kernel = (profile.kernels.kind == KernelKind.KERNEL)[launches.kernel]
    call = np.maximum(launches.call, 0)

    def op_around(chosen: Bools) -> Ints:
        around = nearest(chosen, frame.call_parent)[call]
        known = is_kernel & (launches.call >= 0) & (around >= 0)
        return np.where(known, profile.calls.op[np.maximum(around, 0)], -1)

    by_kernel = frame.launch_by_kernel != Verdict.NO
    able, any_matrix = np.where(by_kernel, frame.launch_op, op_around(can)), op_around(matrix)
    return np.where(able >= 0, able, any_matrix), able >= 0


def _by_matrix_op(frame: Frame, rows: Bools, owner: Ints, eligible: Bools) -> list[list[_Part]]:
    """The parts of each matrix op of each group."""
    launches = frame.profile.launches
    keys = np.stack((frame.launch_group[rows], owner[rows], launches.kernel[rows], eligible[rows].astype(np.int64)))
    unique, inverse = np.unique(keys, axis=1, return_inverse=True)
    time = np.bincount(inverse.reshape(-1), weights=launches.duration_ns[rows], minlength=unique.shape[1])
    found: dict[tuple[int, int], list[_Part]] = {}
    for (group, op, kernel, may), total in zip(unique.T.tolist(), time.astype(np.int64).tolist(), strict=True):
        found.setdefault((group, op), []).append(_Part(group, op, kernel, total, bool(may)))
    return list(found.values())


def _product(frame: Frame, part: _Part, verdict: Verdict) -> Product:
    ops, kernels = frame.profile.ops, frame.profile.kernels
    return Product(
        op=_string(frame, ops.name[part.op]),
        shapes=_string(frame, ops.shapes[part.op]),
        dtypes=_string(frame, ops.dtypes[part.op]),
        kernel=_string(frame, kernels.name[part.kernel]),
        verdict=verdict,
    )


def _computes(frame: Frame, part: _Part) -> bool:
    """Whether the kernel computes the product, or may."""
    kernels = frame.profile.kernels
    if _verdict(frame, part) != Verdict.NO:
        return True
    family, rule = _string(frame, kernels.family[part.kernel]), _string(frame, kernels.rule[part.kernel])
    return computes_product(family, rule)


def _verdict(frame: Frame, part: _Part) -> Verdict:
    return Verdict(int(frame.profile.kernels.tensor_core[part.kernel]))


def _string(frame: Frame, index: int) -> str:
    return frame.profile.strings[index]
