"""Kernel time of matrix ops off the Tensor Cores, by reason.

The rules are in `tb_dlprof_plugin.names.tensor_core_reasons`. Here each kernel finds the matrix op that launched
it, and those
that only serve the product (they change the layout, or add up its parts) are separated from those that compute it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.model.grouping import group_rows
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.precision import op_precisions
from tb_dlprof_plugin.model.profile import Bools, Ints, Verdict
from tb_dlprof_plugin.model.shapes import InputShapes
from tb_dlprof_plugin.model.tree import nearest
from tb_dlprof_plugin.names.tensor_core_eligibility import computes_product, is_matrix_op
from tb_dlprof_plugin.names.tensor_core_reasons import Product, Reason, Settings, reason_for
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection, per_view

HALF_SHARE = 0.5
"""With at least half of the matrix time in half precision, an FP32 op is the exception in the run."""

_HALF = ("fp16", "bf16", "fp8")
_CUDNN_FAMILIES = ("convolution", "rnn")


@dataclass(frozen=True, slots=True)
class OffTime:
    """Kernel time (ns) of one op group off the Tensor Cores, or of unknown kind, for one reason; ``group`` is -1 for
    kernels around which no op was recorded.

    ``shapes`` are those of the inputs of the matrix ops with most of it. ``eligible`` is False for matrix ops that the
    GPU's Tensor Cores could not compute at all. ``verdict`` is that of the kernels.
    """

    group: int
    reason: Reason
    time_ns: int
    shapes: InputShapes
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
class _OpPart:
    """Launches of one kernel by one matrix op in one group; ``op`` and ``group`` are -1 where none was recorded."""

    group: int
    op: int
    kernel: int
    time_ns: int
    eligible: bool


@per_selection
def off_tensor_cores(view: ProfileView, selection: Selection) -> OffTensorCores:
    """Time off the Tensor Cores by op group and reason, each by falling time."""
    owner, eligible = _owners(view)
    rows = view.selected_activities(selection) & (((view.launch_group >= 0) & (owner >= 0)) | eligible)
    settings = run_settings(view)
    off: dict[tuple[int, Reason, bool, Verdict], dict[InputShapes, int]] = {}
    served: dict[tuple[int, bool], int] = {}
    for parts in _by_matrix_op(view, rows, owner, eligible):
        on_tensor_cores = any(_verdict(view, part) == Verdict.YES for part in parts)
        products = {part for part in parts if _computes(view, part)} or set(parts)
        reasons: dict[int, Reason] = {}
        for part in sorted(parts, key=lambda part: (part not in products, -part.time_ns)):
            verdict = _verdict(view, part)
            if verdict == Verdict.YES:
                continue
            if part not in products and verdict == Verdict.NO:
                if on_tensor_cores:
                    layout = _string(view, view.profile.kernels.family[part.kernel]) == "transpose"
                    served[part.group, layout] = served.get((part.group, layout), 0) + part.time_ns
                    continue
                # What serves a product off the Tensor Cores is there for the same reason as the product.
                reason = next(iter(reasons.values()))
            else:
                reason = reasons[part.kernel] = reason_for(_product(view, part, verdict), settings)
            by_shapes = off.setdefault((part.group, reason, part.eligible, verdict), {})
            shapes = view.profile.shapes_of(part.op) if part.op >= 0 else ()
            by_shapes[shapes] = by_shapes.get(shapes, 0) + part.time_ns
    times = [
        OffTime(group, reason, sum(shapes.values()), max(shapes, key=lambda s: shapes[s]), may, verdict)
        for (group, reason, may, verdict), shapes in off.items()
    ]
    return OffTensorCores(
        off=sorted(times, key=lambda item: -item.time_ns),
        served=sorted((Served(*key, time) for key, time in served.items()), key=lambda item: -item.time_ns),
    )


@per_view
def run_settings(view: ProfileView) -> Settings:
    """The GPU, the TF32 switches and the usual precision of the run.

    A switch is on where a kernel of its kind ran in TF32, for any recorded setting: a program may change it between
    the steps and the moment at which the hook reads it.
    """
    profile, launches = view.profile, view.profile.launches
    owner, rows = _owners(view)
    time = launches.duration_ns[rows]
    half_op = np.array([precision in _HALF for precision in op_precisions(profile)], dtype=np.bool_)
    half_kernel = profile.named(profile.kernels.precision, _HALF.__contains__)[launches.kernel[rows]]
    half = take_or(half_op, owner[rows], half_kernel)
    in_tf32 = profile.kernels_where(precision="tf32")[launches.kernel[rows]]
    of_cudnn = launch_of_cudnn(view)[rows]
    facts = profile.facts
    return Settings(
        compute_capability=view.tensor_core_capability,
        matmul_tf32=True if (in_tf32 & ~of_cudnn).any() else facts.matmul_allow_tf32,
        cudnn_tf32=True if (in_tf32 & of_cudnn).any() else facts.cudnn_allow_tf32,
        half=int(time[half].sum()) >= HALF_SHARE * int(time.sum()) > 0,
    )


def launch_of_cudnn(view: ProfileView) -> Bools:
    """Per launch whether cuDNN's TF32 switch decides about its kernel: convolutions and recurrent layers."""
    profile = view.profile
    return profile.named(profile.kernels.family, _CUDNN_FAMILIES.__contains__)[profile.launches.kernel]


@per_view
def _owners(view: ProfileView) -> tuple[Ints, Bools]:
    """Per launch the row in `Profile.ops` of its matrix op, -1 for none, and whether Tensor Cores could compute it.

    The innermost op that could; where none could, the innermost matrix op. Of a product without a matrix op, the op
    that launched it, if any.
    """
    profile, launches = view.profile, view.profile.launches
    by_kernel = view.launch_is_kernel & (view.launch_by_kernel != Verdict.NO)
    if not len(profile.calls):
        return np.full(len(launches), -1, dtype=np.int64), by_kernel
    can = (profile.ops.tensor_core_eligible != Verdict.NO)[profile.calls.op]
    matrix = np.array([is_matrix_op(_string(view, i)) for i in profile.ops.name], dtype=np.bool_)[profile.calls.op]
    call = np.maximum(launches.call, 0)

    def op_around(chosen: Bools) -> Ints:
        around = nearest(chosen, view.call_parent)[call]
        known = view.launch_is_kernel & (launches.call >= 0) & (around >= 0)
        return np.where(known, profile.calls.op[np.maximum(around, 0)], -1)

    able, any_matrix = np.where(by_kernel, view.launch_op, op_around(can)), op_around(matrix)
    return np.where(able >= 0, able, np.where(by_kernel, -1, any_matrix)), (able >= 0) | by_kernel


def _by_matrix_op(view: ProfileView, rows: Bools, owner: Ints, eligible: Bools) -> list[list[_OpPart]]:
    """The parts of each matrix op of each group."""
    launches = view.profile.launches
    unique, inverse = group_rows(
        view.launch_group[rows], owner[rows], launches.kernel[rows], eligible[rows].astype(np.int64)
    )
    time = sums(inverse, launches.duration_ns[rows], len(unique[0]))
    found: dict[tuple[int, int], list[_OpPart]] = {}
    for (group, op, kernel, may), total in zip(
        zip(*(column.tolist() for column in unique), strict=True), time.tolist(), strict=True
    ):
        found.setdefault((group, op), []).append(_OpPart(group, op, kernel, total, bool(may)))
    return list(found.values())


def _product(view: ProfileView, part: _OpPart, verdict: Verdict) -> Product:
    ops, kernels = view.profile.ops, view.profile.kernels
    kernel = _string(view, kernels.name[part.kernel])
    if part.op < 0:
        of_cudnn = _string(view, kernels.family[part.kernel]) in _CUDNN_FAMILIES
        return Product(op="", shapes=(), dtypes=(), kernel=kernel, verdict=verdict, of_cudnn=of_cudnn)
    return Product(
        op=_string(view, ops.name[part.op]),
        shapes=view.profile.shapes_of(part.op),
        dtypes=view.profile.dtypes_of(part.op),
        kernel=kernel,
        verdict=verdict,
    )


def _computes(view: ProfileView, part: _OpPart) -> bool:
    """Whether the kernel computes the product, or may."""
    kernels = view.profile.kernels
    if _verdict(view, part) != Verdict.NO:
        return True
    family, rule = _string(view, kernels.family[part.kernel]), _string(view, kernels.rule[part.kernel])
    return computes_product(family, rule)


def _verdict(view: ProfileView, part: _OpPart) -> Verdict:
    return Verdict(int(view.profile.kernels.tensor_core[part.kernel]))


def _string(view: ProfileView, index: int) -> str:
    return view.profile.strings[index]
