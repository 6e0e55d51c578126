"""The tables of many runs as CSV: times in ns, memory in bytes, percentages 0 to 100."""

from __future__ import annotations

from tb_dlprof_plugin.pages.by_model import ByModelPage, ModelSide
from tb_dlprof_plugin.pages.runs import ManyRunsPage
from tb_dlprof_plugin.pages.sweep import SweepPage
from tb_dlprof_plugin.reports.table import Cell, Report

_RUN = (
    "Run", "Model", "Precision", "Batch Size", "Workers", "GPU", "GPUs", "Iterations", "Step Time (ns)", "Step Source",
    "Recorded Iteration Time (ns)", "Deviation of Recorded Iterations (ns)", "Samples per Second", "Base", "Changes",
    "Speedup", "Speedup Low", "Speedup High", "Change", "GPU Utilization (%)", "TC Utilization (%)",
    "Kernel Time on TC (%)", "Peak Memory (bytes)", "Energy per Step (J)", "Energy per Sample (J)", "Power (W)",
    "FLOPs per Step", "Launches per Step", "First Advice",
)  # fmt: skip
_SIDE = (
    "Run",
    "Precision",
    "GPU Utilization (%)",
    "TC Utilization (%)",
    "Step Time (ns)",
    "Step Source",
    "Samples per Second",
)


def runs_report(page: ManyRunsPage) -> Report:
    """One row per run."""
    return Report(
        _RUN,
        [
            (
                row.ref.run, row.model, row.precision, row.batch_size, row.workers, row.gpu, row.gpus, row.iterations,
                row.step_ns, row.step_source, row.recorded_ns, row.deviation_ns, row.samples_per_second, row.base,
                row.changes, row.speedup, row.low, row.high, row.change, row.gpu_utilization,
                row.tensor_core_utilization, row.tensor_core_share, row.peak_memory_bytes, row.joules_per_step,
                row.joules_per_sample, row.watts, row.flops, row.launches,
                row.advice.problem if row.advice else "",
            )
            for row in page.rows
        ],
    )  # fmt: skip


def by_model_report(page: ByModelPage) -> Report:
    """One row per model, before and after mixed precision."""
    columns = ("Model", "Batch Size", "GPU", *(f"{name} {when}" for when in ("Before", "After") for name in _SIDE))
    columns += ("Speedup", "Speedup Low", "Speedup High", "Change", "Changes", "Recommendation")
    return Report(
        columns,
        [
            (
                row.model,
                row.batch_size,
                row.gpu,
                *_side(row.before),
                *_side(row.after),
                row.speedup,
                row.low,
                row.high,
                row.change,
                row.changes,
                row.recommendation,
            )
            for row in page.rows
        ],
    )


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


def _side(side: ModelSide | None) -> tuple[Cell, ...]:
    if side is None:
        return (None,) * len(_SIDE)
    return (
        side.ref.run,
        side.precision,
        side.gpu_utilization,
        side.tensor_core_utilization,
        side.step_ns,
        side.step_source,
        side.samples_per_second,
    )
