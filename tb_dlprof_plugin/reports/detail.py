"""DLProf's Detailed Report (User Guide 1.8, section 10.3): every op with its times, calls and Tensor Core use.

The columns are DLProf's, followed by those that PyTorch adds. GPU work and CUDA calls outside every op are ops
named ``unassociated_...``, so that the GPU times sum to those of the other reports.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import Figure
from tb_dlprof_plugin.metrics.op_inputs import inputs_of_groups
from tb_dlprof_plugin.metrics.op_statistics import OpStatistics, op_statistics
from tb_dlprof_plugin.metrics.op_work import op_work
from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.metrics.unattributed_ops import all_ops, selected_activities
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.profile import Verdict as Verdicts
from tb_dlprof_plugin.model.remedies import remedies_for, sentence
from tb_dlprof_plugin.pages.common import Verdict
from tb_dlprof_plugin.pages.ops import op_rows
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.op_names import inputs_text, op_names
from tb_dlprof_plugin.reports.table import Cell, Report
from tb_dlprof_plugin.store.run_ref import RunRef

TIMES = tuple(
    f"{which} {what} (ns)"
    for what in ("CPU Time", "GPU Time", "CPU Overhead Time", "GPU Idle Time")
    for which in ("Total", "Avg.", "Min", "Max")
)
"""The sixteen columns of times that several reports have."""
COLUMNS = (
    "Op ID", "Op Name", "Direction", "Op Type", "No. Calls", "TC Eligibility", "Using TC", *TIMES, "Data Type",
    "Input Shapes", "Stack Trace",
    "Module", "Self CPU Time (ns)", "No. Kernel Calls", "Precision", "FLOPs", "Copied or Set (bytes)",
    "No. Input Shapes",
)  # fmt: skip
ANSWERS: dict[Verdict, bool | None] = {"yes": True, "no": False, "unknown": None}


def detail_report(view: ProfileView, ref: RunRef, selection: Selection) -> Report:
    """One row per op of the selected iterations, by falling GPU time, without a GPU by CPU time."""
    profile = view.profile
    every, names, found = all_ops(view), op_names(view), op_statistics(view, selection)
    totals, work = op_totals(view, selection), op_work(view, selection)
    of_id = {row.id: row for row in op_rows(view, selection)}
    usual, different = inputs_of_groups(view, selection)
    verdicts, places = _verdicts_outside(view, selection), _places(view, selection)
    rows: list[tuple[Cell, ...]] = []
    for row in ops_that_ran(found, profile.has_gpu):
        name = names[row]
        inside = row < every.groups
        page = of_id.get(name.id) if inside else None
        inputs = inputs_text(view, int(usual[row]) if inside else -1)
        rows.append(
            (
                name.id,
                name.name,
                name.direction,
                name.op_type,
                int(found.instances[row]),
                ANSWERS[page.tc_eligible] if page else False if not inside else None,
                ANSWERS[page.using_tc] if page else verdicts[row - every.groups] if not inside else None,
                *times(found, row, profile.has_gpu),
                inputs.data_type,
                inputs.shapes,
                places.get(row),
                name.module,
                int(totals.cpu_self_ns[row]) if inside else None,
                int(found.kernel_calls[row]),
                (page.precision or None) if page else None,
                work.flops_of(row),
                int(work.copied_bytes[row]) or None,
                int(different[row]) if inside and different[row] else None,
            )
        )
    return Report(COLUMNS, rows, notes=_notes(view, usual, bool(places)))


def ops_that_ran(found: OpStatistics, has_gpu: bool) -> list[int]:
    """Rows of `AllOps` with any call, time or GPU work, by falling GPU time, without a GPU by CPU time."""
    ran = (found.instances > 0) | (found.kernel_calls > 0) | (found.cpu.total > 0)
    rows = np.flatnonzero(ran)
    first, second = (found.gpu, found.cpu) if has_gpu else (found.cpu, found.gpu)
    order: list[int] = rows[np.lexsort((-second.total[rows], -first.total[rows]))].tolist()
    return order


def times(found: OpStatistics, row: int, has_gpu: bool) -> tuple[Cell, ...]:
    """The cells of `TIMES`; without a GPU there is CPU time alone: no CUDA call was made."""
    figures: list[Figure | None] = [found.cpu, *((found.gpu, found.overhead, found.idle) if has_gpu else (None,) * 3)]
    return tuple(cell for figure in figures for cell in (figure.of(row) if figure else (None,) * 4))


def _verdicts_outside(view: ProfileView, selection: Selection) -> list[bool | None]:
    """Per op outside `ProfileView.groups` whether its kernels ran on Tensor Cores."""
    every, profile = all_ops(view), view.profile
    rows = selected_activities(view, selection)
    rows = rows[every.of_launch[rows] >= every.groups]
    op = every.of_launch[rows] - every.groups
    verdict = profile.kernels.tensor_core[profile.launches.kernel[rows]]
    using: list[bool | None] = [False] * len(every.names)
    for value, answer in ((Verdicts.UNKNOWN, None), (Verdicts.YES, True)):
        for place in np.unique(op[verdict == value]).tolist():
            using[place] = answer
    return using


def _places(view: ProfileView, selection: Selection) -> dict[int, list[str]]:
    """Per row of `AllOps` the call sites in the user's files, if recorded."""
    profile, every = view.profile, all_ops(view)
    known = profile.call_places
    selected = view.selected_calls(selection)
    result: dict[int, list[str]] = {}
    for call, place in zip(known.call.tolist(), known.place.tolist(), strict=True):
        top = int(view.call_top[call])
        row = int(every.of_call[top if top >= 0 else call])
        if row >= 0 and selected[call] and profile.strings[place] not in result.setdefault(row, []):
            result[row].append(profile.strings[place])
    return result


def _notes(view: ProfileView, usual: Ints, has_places: bool) -> tuple[str, ...]:
    notes, remedies = [], remedies_for(view.profile.source)
    if not view.profile.has_gpu:
        notes.append("GPU Time, CPU Overhead and GPU Idle Time are empty: nothing ran on a GPU.")
    if not (usual >= 0).any():
        notes.append(sentence("Data Type and Input Shapes are empty: they were not recorded", remedies.shapes))
    if has_places:
        notes.append("Stack Trace has the function in your files; it is kept for ops that wait for the GPU or copy.")
    else:
        how = f"{remedies.stacks}, and is kept for ops that wait for the GPU or copy" if remedies.stacks else ""
        what = sentence("Stack Trace is empty", how)
        notes.append(f"{what} Module says where an op is in the model.")
    return tuple(notes)
