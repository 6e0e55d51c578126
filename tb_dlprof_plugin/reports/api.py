"""Calls of the CUDA runtime and driver by name, in the columns of nvprof's "API calls"."""

from __future__ import annotations

from tb_dlprof_plugin.metrics.api_calls import api_calls
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.table import Report
from tb_dlprof_plugin.store.run_ref import RunRef

COLUMNS = (
    "API Call", "Time (%)", "Total Time (ns)", "No. Calls", "Avg. Time (ns)", "Min Time (ns)", "Max Time (ns)",
    "Self Time (ns)", "No. Launched",
)  # fmt: skip
_NO_CALLS = "The report has no rows: no CUDA call was recorded; profile with ProfilerActivity.CUDA on a GPU."


def api_report(view: ProfileView, ref: RunRef, selection: Selection) -> Report:
    """One row per name of call, by falling time; the percentage is of the time in all calls, nested ones once."""
    found = api_calls(view, selection)
    whole = int(found.self_ns.sum())
    rows = []
    for row, name in enumerate(found.names):
        total, average, low, high = found.time.of(row)
        own = int(found.self_ns[row])
        calls, launched = int(found.time.count[row]), int(found.launched[row])
        rows.append((name, percent(own, whole), total, calls, average, low, high, own, launched))
    return Report(COLUMNS, list(rows), notes=() if rows else (_NO_CALLS,))
