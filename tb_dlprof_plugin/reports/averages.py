"""The table of ``torch.profiler``, ``prof.key_averages().table()``: a row for each op, annotation, call and kernel.

Columns are torch's, times in ns. If all iterations are selected, the whole recording counts, including the time before
and after them: so the figures are those of torch itself. A smaller range has the calls that began in it.
"""

from __future__ import annotations

from tb_dlprof_plugin.metrics.averages import kernel_averages, operator_averages
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.table import Cell, Report
from tb_dlprof_plugin.store.run_ref import RunRef

COLUMNS = (
    "Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "Self CUDA", "Self CUDA %",
    "CUDA total", "CUDA time avg", "# of Calls",
)  # fmt: skip
KEYS = {
    "Self CPU": "self_cpu_ns", "CPU total": "cpu_total_ns", "CPU time avg": "cpu_time_avg_ns",
    "Self CUDA": "self_cuda_ns", "CUDA total": "cuda_total_ns", "CUDA time avg": "cuda_time_avg_ns",
}  # fmt: skip
_NO_GPU = "The CUDA columns are empty: nothing ran on a GPU."


def averages_report(view: ProfileView, ref: RunRef, selection: Selection) -> Report:
    """One row per name by falling self CPU time, then kernels by falling time.

    Percentages are torch's: CPU times over the sum of all self CPU times, CUDA times over the time of all kernels,
    copies and sets.
    """
    chosen = None if selection == view.selection() else selection
    ops, kernels = operator_averages(view, chosen), kernel_averages(view, chosen)
    cpu_ns, cuda_ns = sum(op.cpu_self_ns for op in ops), sum(kernel.device_ns for kernel in kernels)
    rows: list[tuple[Cell, ...]] = [
        (
            op.name, percent(op.cpu_self_ns, cpu_ns), op.cpu_self_ns, percent(op.cpu_total_ns, cpu_ns), op.cpu_total_ns,
            _average(op.cpu_total_ns, op.calls), op.device_self_ns, percent(op.device_self_ns, cuda_ns),
            op.device_total_ns, _average(op.device_total_ns, op.calls), op.calls,
        )
        for op in ops
    ]  # fmt: skip
    rows += [
        (
            kernel.name, 0.0, 0, 0.0, 0, 0, kernel.device_ns, percent(kernel.device_ns, cuda_ns), kernel.device_ns,
            _average(kernel.device_ns, kernel.calls), kernel.calls,
        )
        for kernel in kernels
    ]  # fmt: skip
    return Report(COLUMNS, rows, KEYS, notes=() if view.profile.has_gpu else (_NO_GPU,))


def _average(total_ns: int | None, calls: int) -> int | None:
    return None if total_ns is None else round(total_ns / calls)
