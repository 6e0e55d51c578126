"""Copies and sets on the GPU by kind and size, with the bandwidth that they reached."""

from __future__ import annotations

from tb_dlprof_plugin.metrics.copies import copies
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.table import Report
from tb_dlprof_plugin.store.run_ref import RunRef

COLUMNS = (
    "Copy", "Size (bytes)", "No. Copies", "Total Size (bytes)", "Time (%)", "Total Time (ns)", "Avg. Time (ns)",
    "Min Time (ns)", "Max Time (ns)", "Avg. Bandwidth (GB/s)", "Min Bandwidth (GB/s)", "Max Bandwidth (GB/s)",
)  # fmt: skip
_NO_COPIES = "The report has no rows: nothing was copied or set on a GPU."
_NO_SIZES = "Sizes and bandwidths are empty: this version of PyTorch did not record the bytes of copies."
_GB = 1e9


def copies_report(view: ProfileView, ref: RunRef, selection: Selection) -> Report:
    """One row per kind and size, by falling time; bandwidths are in 10^9 bytes per second."""
    found = copies(view, selection)
    whole = int(found.time.total.sum())
    rows = []
    for row, name in enumerate(found.names):
        size, count = int(found.bytes[row]), int(found.time.count[row])
        total, *rest = found.time.of(row)
        known = (size, count, size * count) if size >= 0 else (None, count, None)
        bandwidths = (None if value is None else value / _GB for value in found.bandwidth(row))
        rows.append((name, *known, percent(total, whole), total, *rest, *bandwidths))
    notes = () if (found.bytes >= 0).any() else (_NO_SIZES,) if rows else (_NO_COPIES,)
    return Report(COLUMNS, list(rows), notes=notes)
