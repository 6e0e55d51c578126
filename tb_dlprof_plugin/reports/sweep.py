"""The points of a sweep as a table."""

from __future__ import annotations

from tb_dlprof_plugin.pages.sweep import SweepPage
from tb_dlprof_plugin.reports.table import Report


def sweep_report(page: SweepPage) -> Report:
    """One row per point: its line, its place, its run and the value, in the unit that the column names."""
    units = {
        "ns": "ns",
        "percent": "%",
        "bytes": "bytes",
        "flops": "FLOP",
        "flops_per_second": "FLOP/s",
        "joules": "J",
        "watts": "W",
    }
    unit = units.get(page.unit)
    value = f"{page.measure_label} ({unit})" if unit else page.measure_label
    return Report(
        ("Line", page.over_label, "Run", value),
        [
            (curve.label, page.positions[mark.position], mark.ref.run, mark.value)
            for curve in page.curves
            for mark in curve.marks
        ],
    )
