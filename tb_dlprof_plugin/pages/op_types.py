"""The Op types page: the ops of the selected iterations by their type, with the time of each direction."""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.metrics.tensor_cores import utilization
from tb_dlprof_plugin.pages.columns import Column
from tb_dlprof_plugin.pages.common import Coverage, OpRow, SelectedRange, Slice, Verdict, coverage_of, selected_range
from tb_dlprof_plugin.pages.ops import op_rows, time_of, times_by_type
from tb_dlprof_plugin.pages.sentences import TextPart, named_shares, plain, text_of
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef


class OpTypeRow(msgspec.Struct, frozen=True):
    """All ops of one type; ``ops`` counts them by module and direction. Times in ns over the selected iterations.

    ``forward_ns + backward_ns + rest_ns`` is the GPU time, without a GPU the CPU time; ``percent`` is its share.
    ``utilization_percent`` is the share of Tensor Core kernels in the kernel time that could use them
    (``eligible_ns``), None where there is none or too much of it is unknown.
    """

    op_type: Annotated[str, Column("Op type", "opType", width=270)]
    gpu_ns: Annotated[int | None, Column("GPU time", "gpuTime", "time tensor_cores", sums=True, gpu=True)]
    percent: Annotated[float | None, Column("GPU %", "opTypeGpu", "time tensor_cores", bar=True)]
    forward_ns: Annotated[int, Column("Forward", "typeForward", "time", sums=True)]
    backward_ns: Annotated[int, Column("Backward", "typeBackward", "time", sums=True)]
    ops: Annotated[int, Column("Ops", "typeOps", "time tensor_cores cpu")]
    calls: Annotated[int, Column("Calls", "calls", "time cpu", sums=True)]
    tc_eligible: Annotated[Verdict, Column("TC eligible", "tcEligible", "tensor_cores", gpu=True, terminal=False)]
    eligible_ns: Annotated[
        int | None, Column("Eligible", "eligibleTime", "tensor_cores", sums=True, gpu=True, terminal=False)
    ]
    tc_ns: Annotated[int | None, Column("On TC", "tcTime", "tensor_cores", sums=True, gpu=True, terminal=False)]
    utilization_percent: Annotated[
        float | None,
        Column("TC utilization", "typeUtilization", "time tensor_cores", absent=("eligible_ns", "0"), gpu=True),
    ]
    kernel_calls: Annotated[int, Column("Kernel calls", "kernelCalls", "time cpu", sums=True, gpu=True, terminal=False)]
    cpu_self_ns: Annotated[int | None, Column("CPU self", "cpuSelf", "cpu", sums=True)]
    cpu_total_ns: Annotated[int | None, Column("CPU total", "cpuTotal", "time cpu", sums=True, terminal=False)]
    rest_ns: int


class OpTypesPage(msgspec.Struct, frozen=True):
    """``rows`` by falling GPU time (CPU time without a GPU).

    ``by_type`` is that time as parts of a whole, the types of least time together as "other types".
    """

    ref: RunRef
    headline: str
    headline_parts: list[TextPart]
    range: SelectedRange
    has_gpu: bool
    by_type: list[Slice]
    rows: list[OpTypeRow]
    total_rows: int
    coverage: Coverage


def op_types_page(view: ProfileView, ref: RunRef, selection: Selection) -> OpTypesPage:
    """The types of all ops that ran in the selected iterations."""
    has_gpu = view.profile.has_gpu
    rows = op_type_rows(view, selection)
    headline = _headline(rows, has_gpu)
    return OpTypesPage(
        ref=ref,
        headline=text_of(headline),
        headline_parts=headline,
        range=selected_range(view, selection),
        has_gpu=has_gpu,
        by_type=_by_type(rows),
        rows=rows,
        total_rows=len(rows),
        coverage=coverage_of(view),
    )


def op_type_rows(view: ProfileView, selection: Selection) -> list[OpTypeRow]:
    """A row for each type, by falling time."""
    has_gpu, totals = view.profile.has_gpu, op_totals(view, selection)
    place = {id: group for group, id in enumerate(view.groups.ids)}
    of_type: dict[str, list[OpRow]] = {}
    rows = op_rows(view, selection)
    for row in rows:
        of_type.setdefault(row.op_type, []).append(row)
    times = times_by_type(rows, has_gpu)
    whole = sum(times.values())
    result = []
    for op_type, time in times.items():
        ops = of_type[op_type]
        groups = np.array([place[op.id] for op in ops], dtype=np.int64)
        eligible, tensor_core = int(totals.eligible_ns[groups].sum()), int(totals.tensor_core_ns[groups].sum())
        unknown = int(totals.eligible_unknown_ns[groups].sum())
        forward, backward = (
            sum(time_of(op, has_gpu) for op in ops if op.direction == direction)
            for direction in ("forward", "backward")
        )
        result.append(
            OpTypeRow(
                op_type=op_type,
                ops=len(ops),
                calls=sum(op.calls for op in ops),
                kernel_calls=sum(op.kernel_calls for op in ops),
                gpu_ns=time if has_gpu else None,
                percent=percent(time, whole),
                forward_ns=forward,
                backward_ns=backward,
                rest_ns=time - forward - backward,
                tc_eligible=_any(ops),
                eligible_ns=eligible if has_gpu else None,
                tc_ns=tensor_core if has_gpu else None,
                utilization_percent=utilization(tensor_core, unknown, eligible) if has_gpu else None,
                cpu_total_ns=_known_sum([op.cpu_total_ns for op in ops]),
                cpu_self_ns=_known_sum([op.cpu_self_ns for op in ops]),
            )
        )
    return result


def _known_sum(times_ns: list[int | None]) -> int | None:
    """None where no time is known."""
    recorded = [time for time in times_ns if time is not None]
    return sum(recorded) if recorded else None


def _any(ops: list[OpRow]) -> Verdict:
    """Yes if any is yes, else unknown if any is unknown."""
    verdicts = {op.tc_eligible for op in ops}
    return "yes" if "yes" in verdicts else "unknown" if "unknown" in verdicts else "no"


_TYPES = 9
"""Op types in the chart, as many as are distinguishable; the others are combined."""


def _by_type(rows: list[OpTypeRow]) -> list[Slice]:
    times = {row.op_type: row.forward_ns + row.backward_ns + row.rest_ns for row in rows}
    whole = sum(times.values())
    first = [(name, time) for name, time in times.items() if time][:_TYPES]
    rest = whole - sum(time for _, time in first)
    named = [Slice(f"type:{name}", name, time, percent(time, whole)) for name, time in first]
    return named + ([Slice("other", "other types", rest, percent(rest, whole))] if rest else [])


_NAMED = 3
"""Types in the headline."""


def _headline(rows: list[OpTypeRow], has_gpu: bool) -> list[TextPart]:
    if not rows:
        return [plain("No op was called in the selected iterations.")]
    named = [row for row in rows[:_NAMED] if row.percent]
    count = "1 op type" if len(rows) == 1 else f"{len(rows)} op types"
    unit = "GPU" if has_gpu else "CPU"
    if not named:
        return [plain(f"{count} ran, in no {unit} time that was recorded.")]
    shares = named_shares([(row.op_type, row.op_type, row.percent) for row in named], "op_type", unit)
    return [*shares, plain(f"; {count} ran.")]
