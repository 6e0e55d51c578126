"""The Tensor Cores page: which eligible ops use them, at which precision, and which do not and why."""

from __future__ import annotations

import msgspec
import numpy as np

from tb_dlprof_plugin.kernels.eligibility import tensor_core_precisions
from tb_dlprof_plugin.measures import Frame, Selection
from tb_dlprof_plugin.measures.iterations import percent
from tb_dlprof_plugin.measures.ops import OpTotals, op_totals
from tb_dlprof_plugin.measures.tensor_cores import TensorCoreTotals, tensor_core_totals
from tb_dlprof_plugin.storage.model import KernelKind
from tb_dlprof_plugin.storage.model import Verdict as Verdicts
from tb_dlprof_plugin.views.common import Direction, RunRef, SelectedRange, Slice, Verdict, selected_range
from tb_dlprof_plugin.views.ops import op_rows, using_tensor_cores
from tb_dlprof_plugin.views.text import short_kernel_name


class TensorCoreOp(msgspec.Struct, frozen=True):
    """An eligible op: ``tc_ns + non_tc_ns + unknown_ns == gpu_ns``; ``reason`` says why it uses no Tensor Cores."""

    id: str
    name: str
    module: str
    op_type: str
    direction: Direction
    using_tc: Verdict
    precision: str
    calls: int
    gpu_ns: int
    tc_ns: int
    non_tc_ns: int
    unknown_ns: int
    utilization_percent: float | None
    tc_kernels: list[str]
    non_tc_kernels: list[str]
    dtypes: str
    shapes: str
    reason: str


class TensorCoresPage(msgspec.Struct, frozen=True):
    """``by_precision`` splits the kernel time of eligible ops; ``ops`` by falling time off the Tensor Cores."""

    ref: RunRef
    headline: str
    range: SelectedRange
    has_gpu: bool
    supported_precisions: list[str]
    utilization_percent: float | None
    eligible_ns: int | None
    using_ns: int | None
    not_using_ns: int | None
    unknown_ns: int | None
    by_precision: list[Slice]
    ops: list[TensorCoreOp]
    total_rows: int


_UNUSED = {
    "fp32": "Its inputs are FP32; Tensor Cores take FP32 only as TF32, or as FP16 or BF16 under autocast.",
    "fp64": "Its inputs are FP64, for which the library chose a kernel without Tensor Cores.",
}
_LIBRARY = "Its inputs are {precision}, yet the library chose a kernel without Tensor Cores."


def tensor_cores_page(frame: Frame, ref: RunRef, selection: Selection) -> TensorCoresPage:
    """Tensor Core use of the eligible ops of the selected iterations."""
    profile = frame.profile
    totals = op_totals(frame, selection)
    sums = tensor_core_totals(totals)
    ops = _ops(frame, selection, totals)
    has_gpu = profile.has_gpu
    return TensorCoresPage(
        ref=ref,
        headline=_headline(frame, sums, ops),
        range=selected_range(frame, selection),
        has_gpu=has_gpu,
        supported_precisions=list(supported_precisions(frame)),
        utilization_percent=sums.utilization,
        eligible_ns=sums.eligible_ns if has_gpu else None,
        using_ns=sums.using_ns if has_gpu else None,
        not_using_ns=sums.not_using_ns if has_gpu else None,
        unknown_ns=sums.unknown_ns if has_gpu else None,
        by_precision=_by_precision(frame, selection, sums) if has_gpu else [],
        ops=ops,
        total_rows=len(ops),
    )


def supported_precisions(frame: Frame) -> tuple[str, ...]:
    """What the Tensor Cores of the run's GPU can compute in; nothing for a GPU that is unknown or has none."""
    return tensor_core_precisions(frame.compute_capability)


def _ops(frame: Frame, selection: Selection, totals: OpTotals) -> list[TensorCoreOp]:
    eligible_rows = {frame.groups.ids[group]: group for group in np.flatnonzero(totals.eligible_ns > 0).tolist()}
    result = []
    for row in op_rows(frame, selection):
        group = eligible_rows.get(row.id)
        if group is None:
            continue
        used, unused = _kernel_names(frame, selection, group)
        gpu = int(totals.eligible_ns[group])
        tc = int(totals.tensor_core_ns[group])
        unknown = int(totals.eligible_unknown_ns[group])
        result.append(
            TensorCoreOp(
                id=row.id,
                name=row.name,
                module=row.module,
                op_type=row.op_type,
                direction=row.direction,
                using_tc=using_tensor_cores(totals, group),
                precision=row.precision,
                calls=row.calls,
                gpu_ns=gpu,
                tc_ns=tc,
                non_tc_ns=int(totals.eligible_non_tensor_core_ns[group]),
                unknown_ns=unknown,
                utilization_percent=None if unknown > tc else percent(tc, gpu),
                tc_kernels=used,
                non_tc_kernels=unused,
                dtypes=row.dtypes,
                shapes=row.shapes,
                reason=_reason(tc, unknown, row.precision),
            )
        )
    return sorted(result, key=lambda op: -(op.gpu_ns - op.tc_ns))


def _kernel_names(frame: Frame, selection: Selection, group: int) -> tuple[list[str], list[str]]:
    profile, kernels = frame.profile, frame.profile.kernels
    rows = (
        frame.selected_launches(selection)
        & (frame.launch_group == group)
        & frame.launch_in_matrix_op
        & (kernels.kind[profile.launches.kernel] == KernelKind.KERNEL)
    )
    used: list[str] = []
    unused: list[str] = []
    for kernel in np.unique(profile.launches.kernel[rows]).tolist():
        name = short_kernel_name(profile.strings[kernels.name[kernel]])
        (used if kernels.tensor_core[kernel] == Verdicts.YES else unused).append(name)
    return used, unused


def _reason(tensor_core_ns: int, unknown_ns: int, precision: str) -> str:
    if tensor_core_ns:
        return ""
    if unknown_ns:
        return "Neither the kernel's name nor its op tells whether it runs on Tensor Cores."
    return _UNUSED.get(precision, _LIBRARY.format(precision=precision or "of an unrecorded type"))


def _by_precision(frame: Frame, selection: Selection, sums: TensorCoreTotals) -> list[Slice]:
    profile, launches, kernels = frame.profile, frame.profile.launches, frame.profile.kernels
    rows = (
        frame.selected_launches(selection)
        & frame.launch_in_matrix_op
        & (frame.launch_group >= 0)
        & (kernels.tensor_core[launches.kernel] == Verdicts.YES)
    )
    time = np.bincount(
        kernels.precision[launches.kernel[rows]], weights=launches.duration_ns[rows], minlength=len(profile.strings)
    ).astype(np.int64)
    parts = [
        (profile.strings[i] or "tensor_core", profile.strings[i].upper() or "precision unknown", int(time[i]))
        for i in np.argsort(-time, kind="stable").tolist()
        if time[i] > 0
    ]
    parts += [("none", "not on Tensor Cores", sums.not_using_ns), ("unknown", "unknown", sums.unknown_ns)]
    return [Slice(key, label, value, percent(value, sums.eligible_ns)) for key, label, value in parts if value]


def _headline(frame: Frame, sums: TensorCoreTotals, ops: list[TensorCoreOp]) -> str:
    if not frame.profile.has_gpu:
        return "The run used no GPU, so there are no Tensor Cores to use."
    if not supported_precisions(frame):
        return "This GPU has no Tensor Cores, or its compute capability was not recorded."
    if not sums.eligible_ns:
        return "No op of the selected iterations could use Tensor Cores."
    idle = sum(1 for op in ops if op.using_tc == "no")
    if sums.utilization is None:
        return f"{len(ops)} ops could use Tensor Cores; too many of their kernels are unknown to say how far they do."
    if not sums.using_ns:
        return f"{len(ops)} ops could use Tensor Cores; none does."
    return f"Tensor Cores run for {sums.utilization:.1f} % of the kernel time that could use them" + (
        f"; {idle} of {len(ops)} ops do not use them at all." if idle else "; every eligible op uses them."
    )
