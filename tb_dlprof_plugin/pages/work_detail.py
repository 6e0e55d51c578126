"""One selected op, op type, kernel or module: kernels, shapes, Tensor Core use, launches, memory, time by iteration."""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.idle_gaps import idle_gaps
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.launches import launch_columns
from tb_dlprof_plugin.metrics.memory import CPU, DeviceMemory, recorded_devices
from tb_dlprof_plugin.metrics.roofline import RooflineRow, roofline
from tb_dlprof_plugin.metrics.tensor_cores import utilization
from tb_dlprof_plugin.model.formatting import short_kernel_name
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.profile import Verdict as Verdicts
from tb_dlprof_plugin.pages.columns import Definition
from tb_dlprof_plugin.pages.common import (
    VERDICTS,
    OpRow,
    SelectedRange,
    Verdict,
    selected_range,
)
from tb_dlprof_plugin.pages.iteration_bins import bars_note
from tb_dlprof_plugin.pages.ops import eligibility_reason, op_rows
from tb_dlprof_plugin.pages.related import IdOption, SubjectKind, SubjectOption, groups_of, kernel_row
from tb_dlprof_plugin.pages.roofline import Bound, precision_label
from tb_dlprof_plugin.pages.tensor_core_reasons import most_time_off
from tb_dlprof_plugin.pages.work_rows import (
    OpKernel,
    OpShapes,
    SelectedWork,
    WorkIteration,
    WorkOp,
    iterations_of,
    kernels_of,
    ops_of,
    shapes_of,
)
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.store.run_ref import RunRef

MOST_ROWS = 100
"""Kernels and sets of shapes in an answer, those of most time; an op has few, the whole model may have thousands."""
_MOST_OPS = 10


class WorkRate(msgspec.Struct, frozen=True):
    """Where the matrix routines are under the GPU's roofs; None is unknown.

    ``roof`` names the precision that they ran in, "" where it differs. ``percent_of_ceiling`` is weighted by time and
    may exceed 100: Winograd and FFT convolutions multiply less often than the FLOPs assume. ``bound`` is what sets most
    of the least time.
    """

    flops_per_second: float | None
    ceiling_flops_per_second: float | None
    percent_of_ceiling: float | None
    bound: Bound
    roof: str


class WorkTensorCores(msgspec.Struct, frozen=True):
    """Whether Tensor Cores could compute it and do, and why. Times (ns) are those of kernels in eligible ops.

    ``utilization_percent`` is None where nothing is eligible or too much of it is unknown.
    """

    eligible: Verdict
    using: Verdict
    eligible_ns: int | None
    tc_ns: int | None
    utilization_percent: float | None
    reason: str


class WorkLaunches(msgspec.Struct, frozen=True):
    """Kernels, copies and sets: how many, how many of known delay, and their delays (ns).

    ``waits`` of them ended a gap in which their GPU was idle, for ``waited_ns`` in all, as recorded.
    """

    launches: int
    timed: int
    mean_delay_ns: int | None
    max_delay_ns: int | None
    waits: int
    waited_ns: Annotated[
        int, Definition("waitedBefore", "Recorded time in which a GPU was idle right before work that this launched.")
    ]


class WorkMemory(msgspec.Struct, frozen=True):
    """Memory that its ops allocated and that is in use at the peak of the selected iterations: on ``device``, "cpu" or
    a GPU's number. ``percent`` is the share of all memory at that moment."""

    device: str
    bytes: Annotated[
        int, Definition("heldAtPeak", "Memory allocated in its ops and still in use when most memory was.")
    ]
    percent: float | None
    allocations: int


class WorkSpot(msgspec.Struct, frozen=True):
    """The longest launch on the GPU, without any the longest call: its event on the timeline of iteration ``index``."""

    index: int
    number: int
    event: str
    name: str
    duration_ns: int


class WorkDetail(msgspec.Struct, frozen=True):
    """What was selected, scoped to it. Times are over the selected iterations, ``iterations`` has all.

    ``row`` and ``eligibility_reason`` are an op's, None and "" for others. ``rate`` is None without matrix routines on
    the GPU and for a kernel, whose FLOPs are counted by op. ``memory`` is None where it was not recorded or not
    attributed. ``ops`` are those of most time, empty for an op. ``bars_note`` explains ``iterations`` if each covers
    several.
    """

    ref: RunRef
    range: SelectedRange
    kind: SubjectKind
    id: str
    name: str
    has_gpu: bool
    row: OpRow | None
    eligibility_reason: str
    tensor_cores: WorkTensorCores | None
    rate: WorkRate | None
    launches: WorkLaunches
    memory: WorkMemory | None
    longest: WorkSpot | None
    ops: list[WorkOp]
    total_ops: int
    shapes: list[OpShapes]
    total_shapes: int
    kernels: list[OpKernel]
    total_kernels: int
    iterations: list[WorkIteration]
    bars_note: str


def work_detail(view: ProfileView, ref: RunRef, selection: Selection, kind: SubjectOption, id: IdOption) -> WorkDetail:
    """One op or kernel (by id), op type (by name) or module (by key).

    Raises:
        KeyError: it did not run in the selected iterations.
    """
    work, name = _work_of(view, selection, kind, id)
    row = None
    if kind == "op":
        row = next((row for row in op_rows(view, selection) if row.id == id), None)
    launched = work.launched()
    if not len(launched) and not len(work.called()) and row is None:
        raise KeyError(id)
    has_gpu = view.profile.has_gpu
    reason = eligibility_reason(view, selection, int(work.groups.argmax()), row.tc_eligible) if row else ""
    kernels, shapes, ops = kernels_of(view, launched), shapes_of(work), ops_of(work)
    return WorkDetail(
        ref=ref,
        range=selected_range(view, selection),
        kind=kind,
        id=id,
        name=name,
        has_gpu=has_gpu,
        row=row,
        eligibility_reason=reason,
        tensor_cores=_tensor_cores(work, kind, launched, row, reason),
        rate=_rate(work) if kind != "kernel" and has_gpu else None,
        launches=_launches(work, launched),
        memory=_memory(work) if kind != "kernel" else None,
        longest=_longest(work, launched),
        ops=ops[:_MOST_OPS] if kind != "op" else [],
        total_ops=len(ops),
        shapes=shapes[:MOST_ROWS],
        total_shapes=len(shapes),
        kernels=kernels[:MOST_ROWS] if kind != "kernel" else [],
        total_kernels=len(kernels),
        iterations=iterations_of(work, kind),
        bars_note=bars_note(len(view.profile.iterations)),
    )


def _work_of(view: ProfileView, selection: Selection, kind: SubjectKind, subject: str) -> tuple[SelectedWork, str]:
    profile = view.profile
    if kind == "kernel":
        wanted = kernel_row(view, subject)
        launches = profile.launches.kernel == wanted
        groups = np.zeros(len(view.groups), dtype=np.bool_)
        by = view.launch_group[launches]
        groups[by[by >= 0]] = True
        name = short_kernel_name(profile.strings[profile.kernels.name[wanted]])
        return SelectedWork(view, selection, groups, np.zeros(len(profile.calls), dtype=np.bool_), launches), name
    groups, name = groups_of(view, kind, subject)
    # The last entry is what belongs to no op, at index -1.
    member = np.append(groups, False)
    calls = member[view.call_group] & profile.ops.top[profile.calls.op]
    return SelectedWork(view, selection, groups, calls, member[view.launch_group]), name


def _tensor_cores(
    work: SelectedWork, kind: SubjectKind, launched: Ints, row: OpRow | None, reason: str
) -> WorkTensorCores | None:
    """None without a GPU."""
    view = work.view
    if not view.profile.has_gpu:
        return None
    launches, kernels = view.profile.launches, view.profile.kernels
    rows = launched[(view.launch_is_kernel & view.launch_in_matrix_op)[launched]]
    verdict, time = kernels.tensor_core[launches.kernel[rows]], launches.duration_ns[rows]
    eligible_ns, using_ns, unknown_ns = (
        int(time.sum()),
        int(time[verdict == Verdicts.YES].sum()),
        int(time[verdict == Verdicts.UNKNOWN].sum()),
    )
    eligible: Verdict = "yes" if eligible_ns else "no"
    using: Verdict = "yes" if using_ns else "unknown" if unknown_ns else "no"
    if row is not None:
        eligible, using = row.tc_eligible, row.using_tc
    elif kind == "kernel":
        using = VERDICTS[int(kernels.tensor_core[launches.kernel[launched[0]]])] if len(launched) else "unknown"
    if row is None:
        reason = _reason(work, kind, launched, eligible_ns, using_ns)
    return WorkTensorCores(
        eligible=eligible,
        using=using,
        eligible_ns=eligible_ns,
        tc_ns=using_ns,
        utilization_percent=utilization(using_ns, unknown_ns, eligible_ns),
        reason=reason,
    )


def _reason(work: SelectedWork, kind: SubjectKind, launched: Ints, eligible_ns: int, using_ns: int) -> str:
    """Why a kernel, an op type or a module is on or off the Tensor Cores."""
    profile = work.view.profile
    decided = ""
    if kind == "kernel" and len(launched):
        rule = profile.strings[profile.kernels.rule[profile.launches.kernel[launched[0]]]]
        decided = f"Decided by the kernel's name: {rule or 'no rule fits it'}. "
    if not eligible_ns:
        return f"{decided}No kernel of it is in an op that Tensor Cores could compute."
    if using_ns == eligible_ns:
        return f"{decided}All kernel time that could use Tensor Cores does."
    reason = most_time_off(work.view, work.selection, work.groups)
    return f"{decided}Most time off them: {reason}" if reason else decided.strip()


def _rate(work: SelectedWork) -> WorkRate | None:
    rows = [row for row in roofline(work.view, work.selection).rows if work.groups[row.group]]
    if not rows:
        return None
    counted = [row for row in rows if row.flops is not None]
    labels = {precision_label(row.precision, bool(row.tensor_cores)) for row in rows if row.tensor_cores is not None}
    rated = [row for row in counted if row.percent is not None]
    time_ns, least_ns = sum(row.time_ns for row in rated), sum(map(_least_ns, rated))
    by_memory = sum(_least_ns(row) for row in rated if row.memory_bound)
    bound: Bound = "unknown" if not rated else "memory" if by_memory > least_ns - by_memory else "compute"
    counted_ns = sum(row.time_ns for row in counted)
    return WorkRate(
        flops_per_second=sum(row.flops or 0 for row in counted) * 1e9 / counted_ns if counted_ns else None,
        ceiling_flops_per_second=sum(row.flops or 0 for row in rated) * 1e9 / least_ns if least_ns else None,
        percent_of_ceiling=100 * least_ns / time_ns if time_ns else None,
        bound=bound,
        roof=labels.pop() if len(labels) == 1 else "",
    )


def _least_ns(row: RooflineRow) -> float:
    """The least time that the GPU could take for it; of a row whose share of the roof is known."""
    return (row.percent or 0.0) / 100 * row.time_ns


def _launches(work: SelectedWork, launched: Ints) -> WorkLaunches:
    delays = launch_columns(work.view, work.view.selection()).delay_ns[launched]
    delayed = delays[delays >= 0]
    waits = waited_ns = 0
    if work.view.profile.has_gpu:
        gaps = idle_gaps(work.view, work.selection)
        before = take_or(work.launches, gaps.next, False)
        waits, waited_ns = int(before.sum()), int(gaps.duration_ns[before].sum())
    return WorkLaunches(
        launches=len(launched),
        timed=len(delayed),
        mean_delay_ns=round(float(delayed.mean())) if len(delayed) else None,
        max_delay_ns=int(delayed.max()) if len(delayed) else None,
        waits=waits,
        waited_ns=waited_ns,
    )


@per_selection
def _memory_at_peak(view: ProfileView, selection: Selection) -> tuple[str, int, Ints, Ints] | None:
    """Device, bytes allocated at the peak, and per row of `ProfileView.groups` bytes and allocations alive there.

    Of the first GPU with memory, of the CPU where no GPU has any; None where what is alive is unknown.
    """
    devices = recorded_devices(view.profile)
    if not devices:
        return None
    memory = DeviceMemory(view, devices[0])
    if not memory.partners_known:
        return None
    peak = memory.peak(memory.window(selection.first, selection.last))
    alive = np.flatnonzero(memory.alive(peak.state))
    alive = alive[memory.call[alive] >= 0]
    group = view.call_group[memory.call[alive]]
    alive, group = alive[group >= 0], group[group >= 0]
    count = len(view.groups)
    held = sums(group, memory.bytes[alive], count)
    device = "cpu" if devices[0] == CPU else str(devices[0])
    return device, peak.allocated, held, np.bincount(group, minlength=count).astype(np.int64)


def _memory(work: SelectedWork) -> WorkMemory | None:
    at_peak = _memory_at_peak(work.view, work.selection)
    if at_peak is None:
        return None
    device, allocated, held, allocations = at_peak
    mine = int(held[work.groups].sum())
    return WorkMemory(device, mine, percent(mine, allocated), int(allocations[work.groups].sum()))


def _longest(work: SelectedWork, launched: Ints) -> WorkSpot | None:
    profile, strings = work.view.profile, work.view.profile.strings
    rows = launched if len(launched) else work.called()
    if not len(rows):
        return None
    table = profile.launches if len(launched) else profile.calls
    row = int(rows[table.duration_ns[rows].argmax()])
    if len(launched):
        index = int(work.view.launch_iteration[row])
        name = short_kernel_name(strings[profile.kernels.name[profile.launches.kernel[row]]])
    else:
        index = int(work.view.call_iteration[row])
        name = strings[profile.ops.name[profile.calls.op[row]]]
    return WorkSpot(
        index=index,
        number=int(profile.iterations.number[index]),
        event=f"{'g' if len(launched) else 'c'}{row}",
        name=name,
        duration_ns=int(table.duration_ns[row]),
    )
