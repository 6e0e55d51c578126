"""DLProf's Group Node Report (User Guide 1.8, section 10.8): every module, with all below it, per iteration.

GPU times are flattened: time in which several kernels of a module run counts once. DLProf's columns are followed by
those that PyTorch adds.
"""

from __future__ import annotations

from tb_dlprof_plugin.metrics.group_nodes import group_node_waits
from tb_dlprof_plugin.metrics.module_tree import module_tree
from tb_dlprof_plugin.metrics.modules import ModuleSpread, module_totals
from tb_dlprof_plugin.model.remedies import remedies_for, sentence
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.detail import TIMES
from tb_dlprof_plugin.reports.table import Cell, Report
from tb_dlprof_plugin.store.run_ref import RunRef

COLUMNS = (
    "Name", "No. Calls Aggregated", "No. TC Eligibility Ops", "No. Node Ops Using TC", *TIMES,
    "Depth", "Module Calls", "Accumulated GPU Time (ns)", "Own GPU Time (ns)", "Forward GPU Time (ns)",
    "Backward GPU Time (ns)", "Own CPU Time (ns)", "TC GPU Time (ns)", "Eligible GPU Time (ns)", "No. Kernel Calls",
)  # fmt: skip
_NO_MODULES = "The report has no rows: module paths were not recorded"
_NO_GPU = "GPU columns and CPU Overhead are empty: nothing ran on a GPU."


def group_node_report(view: ProfileView, ref: RunRef, selection: Selection) -> Report:
    """One row per module that ran in the selected iterations, each before those below it."""
    tree, totals, waits = module_tree(view), module_totals(view, selection), group_node_waits(view, selection)
    if tree is None or totals is None or waits is None:
        return Report(COLUMNS, [], notes=(sentence(_NO_MODULES, remedies_for(view.profile.source).modules),))
    has_gpu, inside = view.profile.has_gpu, totals.inside
    knows_gpu = has_gpu and view.compute_capability is not None
    rows: list[tuple[Cell, ...]] = []
    for node, path in enumerate(tree.path):
        if not (inside.cpu.total[node] or inside.gpu_sum_ns[node] or inside.op_calls[node]):
            continue
        spreads = [inside.cpu, *((inside.gpu, waits.overhead, waits.idle) if has_gpu else (None,) * 3)]
        gpu = (
            inside.gpu_sum_ns, totals.own_gpu_ns, totals.forward_gpu_ns, totals.backward_gpu_ns,
        )  # fmt: skip
        rows.append(
            (
                path or view.profile.facts.model or "whole model",
                int(inside.op_calls[node]),
                int(inside.eligible_ops[node]) if knows_gpu else None,
                int(inside.tensor_core_ops[node]) if has_gpu else None,
                *(cell for spread in spreads for cell in _cells(spread, node, selection.count)),
                int(tree.depth[node]),
                int(totals.calls[node]),
                *(int(column[node]) if has_gpu else None for column in gpu),
                int(totals.own_cpu_ns[node]),
                int(inside.tensor_core_ns[node]) if has_gpu else None,
                int(inside.eligible_ns[node]) if has_gpu else None,
                int(inside.kernel_calls[node]),
            )
        )
    return Report(COLUMNS, rows, notes=() if has_gpu else (_NO_GPU,))


def _cells(spread: ModuleSpread | None, node: int, iterations: int) -> tuple[Cell, ...]:
    """Total, average, least and most of an iteration."""
    if spread is None:
        return (None,) * 4
    total = int(spread.total[node])
    return total, round(total / iterations), int(spread.low[node]), int(spread.high[node])
