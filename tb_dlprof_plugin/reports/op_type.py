"""DLProf's Op Type Summary Report (User Guide 1.8, section 10.7): every op type with its times and Tensor Core use."""

from __future__ import annotations

from collections.abc import Iterable

from tb_dlprof_plugin.metrics.op_types import op_types
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.detail import COLUMNS as DETAIL_COLUMNS
from tb_dlprof_plugin.reports.detail import TIMES, detail_report, ops_that_ran, times
from tb_dlprof_plugin.reports.table import Cell, Report
from tb_dlprof_plugin.store.run_ref import RunRef

COLUMNS = (
    "Op Name", "No. Nodes", "No. Calls", "TC Eligibility", "Using TC", *TIMES,
    "Flattened GPU Time (ns)", "Self CPU Time (ns)", "No. Kernel Calls", "FLOPs", "Copied or Set (bytes)",
)  # fmt: skip
_NO_GPU = "GPU Time, CPU Overhead and GPU Idle Time are empty: nothing ran on a GPU."


def op_type_report(view: ProfileView, ref: RunRef, selection: Selection) -> Report:
    """One row per op type of the selected iterations, by falling GPU time, without a GPU by CPU time."""
    found = op_types(view, selection)
    has_gpu = view.profile.has_gpu
    of_type: dict[str, list[dict[str, Cell]]] = {}
    for op in detail_report(view, ref, selection).rows:
        cells = dict(zip(DETAIL_COLUMNS, op, strict=True))
        of_type.setdefault(str(cells["Op Type"]), []).append(cells)
    rows: list[tuple[Cell, ...]] = []
    for row in ops_that_ran(found.statistics, has_gpu):
        name = found.names[row]
        ops = of_type[name]
        rows.append(
            (
                name,
                int(found.nodes[row]),
                int(found.statistics.instances[row]),
                _any(one["TC Eligibility"] for one in ops),
                _any(one["Using TC"] for one in ops),
                *times(found.statistics, row, has_gpu),
                int(found.flattened_gpu_ns[row]) if has_gpu else None,
                int(found.cpu_self_ns[row]),
                int(found.statistics.kernel_calls[row]),
                found.work.flops_of(row),
                int(found.work.copied_bytes[row]) or None,
            )
        )
    return Report(COLUMNS, rows, notes=() if has_gpu else (_NO_GPU,))


def _any(answers: Iterable[Cell]) -> bool | None:
    """Yes if any is yes, else unknown if any is unknown."""
    found = set(answers)
    return True if True in found else None if None in found else False
