"""The Tensor Cores page: which eligible ops use them, at which precision, and which do not and why."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import numpy as np

from tb_dlprof_plugin.advice.finding import SavingItem
from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.ops import OpTotals, input_precisions, op_totals
from tb_dlprof_plugin.metrics.tensor_activity import MeasuredActivity, measured_activity
from tb_dlprof_plugin.metrics.tensor_cores import TensorCoreTotals, eligible_launches, tensor_core_totals
from tb_dlprof_plugin.model.direction import Direction
from tb_dlprof_plugin.model.formatting import short_kernel_name
from tb_dlprof_plugin.model.profile import Verdict as Verdicts
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.names.tensor_core_eligibility import possible_precisions, tensor_core_precisions
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.pages.common import (
    VERDICTS,
    KernelText,
    PossibleShare,
    SelectedRange,
    Slice,
    Verdict,
    possible_share,
    selected_range,
)
from tb_dlprof_plugin.pages.ops import op_rows, using_tensor_cores
from tb_dlprof_plugin.pages.quantities import TENSOR_CORE_UTILIZATION
from tb_dlprof_plugin.pages.sentences import measured_sentences
from tb_dlprof_plugin.pages.tensor_core_headline import headline
from tb_dlprof_plugin.pages.tensor_core_reasons import (
    IneligibleWork,
    OpReasons,
    ReasonTotal,
    TensorCoreReason,
    ineligible_work,
    reason_totals,
    reasons_by_group,
    step_saving,
)
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef

CouldSave = Literal["estimate", "at most", "estimate and at most", "nothing", "unknown"]


class TensorCoreOp(msgspec.Struct, frozen=True):
    """An eligible op: ``tc_ns + non_tc_ns + unknown_ns == gpu_ns``.

    ``reason`` is the main reason for time off the Tensor Cores; ``reasons`` lists all, by falling time, and with
    ``layout_ns`` and ``helpers_ns``, the kernels that serve a product on Tensor Cores, sums to ``non_tc_ns +
    unknown_ns``. ``saved_ns`` is an estimate of kernel time, None where no remedy has a known factor; ``at_most_ns``
    bounds what the others could save. ``could_save_ns`` is their sum, ``could_save`` names its parts.
    """

    id: str
    name: Annotated[str, Column("Op", "opName", width=280)]
    direction: Annotated[Direction, Column("Pass", "pass", "time tensor_cores shapes", missing="–")]
    gpu_ns: Annotated[int, Column("GPU time", "gpuTime", "time tensor_cores shapes", sums=True)]
    could_save_ns: Annotated[int | None, Column("Could save", "couldSave", "time tensor_cores", sums=True)]
    using_tc: Annotated[Verdict, Column("Using TC", "usingTc")]
    utilization_percent: Annotated[float | None, Column("TC utilization", "opUtilization", "time tensor_cores")]
    precision: Annotated[str, Column("Precision", "precision", choice=True)]
    reasons: Annotated[
        list[TensorCoreReason],
        Column(
            "Reason",
            "Kind of the reason of most time.",
            "tensor_cores",
            choice=True,
            missing="–",
            width=164,
            terminal=False,
        ),
    ]
    reason: Annotated[str, Column("Why not", "reason", missing="–", width=400)]
    possible_precisions: Annotated[
        list[str],
        Column(
            "Could run in",
            "Precisions in which this GPU's Tensor Cores could compute the op, as it is or after a switch to TF32 "
            "or mixed precision.",
            "shapes",
            width=130,
            terminal=False,
        ),
    ]
    could_save: Annotated[
        CouldSave,
        Column("Saving is", "What stands under Could save: an estimate, a bound (at most), or both.", terminal=False),
    ]
    tc_ns: Annotated[int, Column("On TC", "tcTime", "time", sums=True, terminal=False)]
    non_tc_ns: Annotated[int, Column("Off TC", "nonTcTime", "time", sums=True, terminal=False)]
    unknown_ns: Annotated[int, Column("Unknown", "unknownTime", "time", sums=True, terminal=False)]
    calls: Annotated[int, Column("Calls", "calls", "time", sums=True, terminal=False)]
    op_type: Annotated[str, Column("Op type", "opType", "time", width=180, terminal=False)]
    shapes: Annotated[str, Column("Shapes", "shapes", "shapes", width=220, terminal=False)]
    dtypes: Annotated[str, Column("Types", "dtypes", "shapes", width=130, terminal=False)]
    tc_kernels: Annotated[
        list[str],
        Column("TC kernels", "Kernels of the op that run on Tensor Cores.", missing="–", width=220, terminal=False),
    ]
    non_tc_kernels: Annotated[
        list[str],
        Column(
            "Other kernels",
            "Kernels of the op that do not run on Tensor Cores.",
            missing="–",
            width=220,
            terminal=False,
        ),
    ]
    unknown_kernels: Annotated[
        list[str],
        Column(
            "Unknown kernels",
            "Kernels of the op whose Tensor Core use is unknown.",
            missing="–",
            width=220,
            terminal=False,
        ),
    ]
    module: str
    layout_ns: int
    helpers_ns: int
    saved_ns: int | None
    at_most_ns: int | None


class TensorCoreKernel(msgspec.Struct, frozen=True):
    """A kernel that Tensor Cores could compute, by its op or by itself.

    ``rule`` decided its verdict, ``percent`` is of the eligible kernel time.
    ``measured_percent`` is how busy it kept the Tensor Cores by the GPU's counter, None where it was not sampled.
    """

    id: str
    name: Annotated[str, Column("Kernel", "kernelName", width=320)]
    total_ns: Annotated[int, Column("Time", "totalTime", sums=True)]
    percent: Annotated[float | None, Column("%", "Share of the kernel time of eligible ops.", terminal=False)]
    calls: Annotated[int, Column("Calls", "calls", sums=True, terminal=False)]
    tensor_core: Annotated[Verdict, Column("Tensor Cores", "kernelTc")]
    precision: Annotated[str, Column("Precision", "kernelPrecision", choice=True, missing="–", terminal=False)]
    family: Annotated[str, Column("Family", "kernelFamily", choice=True, width=120, terminal=False)]
    measured_percent: Annotated[
        float | None,
        Column("Busy, measured", missing="not sampled"),
        Definition(
            "measuredTensorActivity",
            "Mean of the GPU's counter Tensor Active, in percent of its peak. It is over the samples of all "
            "recorded iterations in which this kernel alone ran. Measured by Nsight Systems, not read out of the "
            "kernel's name.",
        ),
    ]
    rule: Annotated[str, Column("Rule", "kernelRule", choice=True, width=150, terminal=False)]


class TensorCoresPage(msgspec.Struct, frozen=True):
    """``by_precision`` splits the eligible kernel time, ``by_reason`` the part of it off the Tensor Cores.

    ``utilization_possible`` is where the utilization lies if too much is unknown to name it. ``without_op_percent`` is
    the part of the eligible time in kernels around which no op was recorded: they are in no row of ``ops``.

    ``ops`` are by the time that could be saved, a bound taken as if all of it could be; those where it is unknown
    follow, by the time off the Tensor Cores. ``kernels`` are by time. ``saving`` is what the known remedies together
    should save per step. ``measured`` are sentences on how busy the GPU's own counter says that the Tensor Cores were,
    the second where it contradicts verdicts; none where it was not sampled.
    """

    ref: RunRef
    headline: str
    range: SelectedRange
    has_gpu: bool
    supported_precisions: list[str]
    utilization_percent: Annotated[float | None, TENSOR_CORE_UTILIZATION]
    utilization_possible: PossibleShare | None
    eligible_ns: int | None
    without_op_percent: float | None
    using_ns: int | None
    not_using_ns: int | None
    unknown_ns: int | None
    by_precision: list[Slice]
    by_reason: list[ReasonTotal]
    saving: SavingItem | None
    measured: list[str]
    ops: list[TensorCoreOp]
    total_rows: int
    kernels: list[TensorCoreKernel]
    ineligible: list[IneligibleWork]


def tensor_cores_page(view: ProfileView, ref: RunRef, selection: Selection) -> TensorCoresPage:
    """Tensor Core use of the eligible ops of the selected iterations."""
    profile = view.profile
    totals = op_totals(view, selection)
    use = tensor_core_totals(view, selection)
    # Nothing of the page applies to GPUs of AMD's.
    applies = profile.has_gpu and not profile.of_amd
    by_group = reasons_by_group(view, selection) if applies else {}
    by_reason = reason_totals(view, by_group, use.eligible_ns)
    ops = [] if profile.of_amd else _ops(view, selection, totals, by_group)
    measured = measured_activity(view, selection)
    return struct_from(
        TensorCoresPage,
        use if applies else None,
        ref=ref,
        headline=headline(view, selection, use, {op.id: op.using_tc for op in ops}, by_reason),
        range=selected_range(view, selection),
        has_gpu=profile.has_gpu,
        supported_precisions=list(supported_precisions(view)),
        utilization_percent=use.utilization,
        without_op_percent=percent(use.without_op_ns, use.eligible_ns) if applies else None,
        utilization_possible=possible_share(use.possible),
        by_precision=_by_precision(view, selection, use) if applies else [],
        by_reason=by_reason,
        saving=step_saving(view, selection) if applies else None,
        measured=measured_sentences(view, selection, measured) if measured is not None else [],
        ops=ops,
        total_rows=len(ops),
        kernels=_kernels(view, selection, use.eligible_ns, measured) if applies else [],
        ineligible=ineligible_work(view, selection) if applies else [],
    )


def supported_precisions(view: ProfileView) -> tuple[str, ...]:
    """Precisions of the Tensor Cores of the run's GPU; empty if the GPU is unknown or has none."""
    return tensor_core_precisions(view.tensor_core_capability)


def _ops(
    view: ProfileView, selection: Selection, totals: OpTotals, by_group: dict[int, OpReasons]
) -> list[TensorCoreOp]:
    eligible_rows = {view.groups.ids[group]: group for group in np.flatnonzero(totals.eligible_ns > 0).tolist()}
    inputs = input_precisions(view, selection)
    kernel_names = eligible_kernel_names(view, selection)
    result = []
    for row in op_rows(view, selection):
        group = eligible_rows.get(row.id)
        if group is None:
            continue
        names = kernel_names[row.id]
        why = by_group.get(group, OpReasons())
        gpu = int(totals.eligible_ns[group])
        tc = int(totals.tensor_core_ns[group])
        unknown = int(totals.eligible_unknown_ns[group])
        result.append(
            struct_from(
                TensorCoreOp,
                row,
                why,
                using_tc=using_tensor_cores(totals, group),
                gpu_ns=gpu,
                tc_ns=tc,
                non_tc_ns=int(totals.eligible_non_tensor_core_ns[group]),
                unknown_ns=unknown,
                utilization_percent=None if unknown > tc else percent(tc, gpu),
                tc_kernels=_short(names["yes"]),
                non_tc_kernels=_short(names["no"]),
                unknown_kernels=_short(names["unknown"]),
                possible_precisions=list(possible_precisions(inputs[group], view.tensor_core_capability)),
                reason=why.reasons[0].text if why.reasons else "",
                could_save_ns=_together(why),
                could_save=_could_save(why),
            )
        )
    return sorted(result, key=_by_saving)


def _by_saving(op: TensorCoreOp) -> tuple[int, int, int]:
    """Sort key: largest possible saving first, then unknown savings, then none."""
    kind = 1 if op.could_save_ns is None else 0 if op.could_save_ns else 2
    return (kind, -(op.could_save_ns or 0), -(op.gpu_ns - op.tc_ns))


def _together(why: OpReasons) -> int | None:
    known = [value for value in (why.saved_ns, why.at_most_ns) if value is not None]
    return sum(known) if known else None


def _could_save(why: OpReasons) -> CouldSave:
    if why.at_most_ns is not None:
        return "estimate and at most" if why.saved_ns is not None else "at most"
    if why.saved_ns is None:
        return "unknown"
    return "estimate" if why.reasons else "nothing"


def eligible_kernel_names(view: ProfileView, selection: Selection) -> dict[str, dict[Verdict, list[str]]]:
    """By op id the different names, in full, of the kernels inside eligible ops, by their verdict."""
    profile, kernels = view.profile, view.profile.kernels
    rows = eligible_launches(view, selection) & (view.launch_group >= 0)
    pairs = np.unique(np.stack((view.launch_group[rows], profile.launches.kernel[rows])), axis=1)
    found: dict[str, dict[Verdict, list[str]]] = {}
    for group, kernel in pairs.T.tolist():
        by_verdict = found.setdefault(view.groups.ids[group], {"yes": [], "no": [], "unknown": []})
        names = by_verdict[VERDICTS[int(kernels.tensor_core[kernel])]]
        if (name := profile.strings[kernels.name[kernel]]) not in names:
            names.append(name)
    return found


def _short(names: list[str]) -> list[str]:
    return list(dict.fromkeys(short_kernel_name(name) for name in names))


def _kernels(
    view: ProfileView, selection: Selection, eligible_ns: int, measured: MeasuredActivity | None
) -> list[TensorCoreKernel]:
    busy = {one.kernel: one.active_percent for one in measured.kernels} if measured is not None else {}
    kernels, launches = view.profile.kernels, view.profile.launches
    rows = eligible_launches(view, selection)
    calls = np.bincount(launches.kernel[rows], minlength=len(kernels))
    time = sums(launches.kernel[rows], launches.duration_ns[rows], len(kernels))
    return [
        struct_from(
            TensorCoreKernel,
            text,
            name=text.short_name,
            calls=int(calls[kernel]),
            total_ns=int(time[kernel]),
            percent=percent(int(time[kernel]), eligible_ns),
            measured_percent=busy.get(kernel),
        )
        for kernel in np.argsort(-time, kind="stable").tolist()
        if calls[kernel]
        for text in (KernelText(view, kernel),)
    ]


def _by_precision(view: ProfileView, selection: Selection, totals: TensorCoreTotals) -> list[Slice]:
    profile, launches, kernels = view.profile, view.profile.launches, view.profile.kernels
    rows = eligible_launches(view, selection) & (kernels.tensor_core[launches.kernel] == Verdicts.YES)
    time = sums(kernels.precision[launches.kernel[rows]], launches.duration_ns[rows], len(profile.strings))
    parts = [
        (profile.strings[i] or "tensor_core", profile.strings[i].upper() or "precision unknown", int(time[i]))
        for i in np.argsort(-time, kind="stable").tolist()
        if time[i] > 0
    ]
    parts += [("none", "not on Tensor Cores", totals.not_using_ns), ("unknown", "unknown", totals.unknown_ns)]
    return [Slice(key, label, value, percent(value, totals.eligible_ns)) for key, label, value in parts if value]
