"""Reports that DLProf did not have: torch's table, CUDA calls, copies and sets, groups of kernels."""

from __future__ import annotations

from tb_dlprof_plugin.metrics.api_calls import api_calls
from tb_dlprof_plugin.metrics.averages import kernel_averages, operator_averages
from tb_dlprof_plugin.metrics.copies import copies
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.kernel_groups import kernel_groups
from tb_dlprof_plugin.names.kernel_groups import GROUPS
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.kernel import NO_GPU
from tb_dlprof_plugin.reports.table import Cell, Report
from tb_dlprof_plugin.store.run_ref import RunRef

AVERAGES_COLUMNS = (
    "Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "Self CUDA", "Self CUDA %",
    "CUDA total", "CUDA time avg", "# of Calls",
)  # fmt: skip
AVERAGES_KEYS = {
    "Self CPU": "self_cpu_ns", "CPU total": "cpu_total_ns", "CPU time avg": "cpu_time_avg_ns",
    "Self CUDA": "self_cuda_ns", "CUDA total": "cuda_total_ns", "CUDA time avg": "cuda_time_avg_ns",
}  # fmt: skip
_NO_CUDA = "The CUDA columns are empty: nothing ran on a GPU."


def averages_report(view: ProfileView, ref: RunRef, selection: Selection) -> Report:
    """The table of ``torch.profiler``, ``prof.key_averages().table()``: one row per name by falling self CPU time, then
    kernels by falling time, with torch's columns, times in ns.

    If all iterations are selected, the whole recording counts, including the time before and after them: so the figures
    are those of torch itself. A smaller range has the calls that began in it.

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
    return Report(AVERAGES_COLUMNS, rows, AVERAGES_KEYS, notes=() if view.profile.has_gpu else (_NO_CUDA,))


def _average(total_ns: int | None, calls: int) -> int | None:
    return None if total_ns is None else round(total_ns / calls)


API_COLUMNS = (
    "API Call", "Time (%)", "Total Time (ns)", "No. Calls", "Avg. Time (ns)", "Min Time (ns)", "Max Time (ns)",
    "Self Time (ns)", "No. Launched",
)  # fmt: skip
_NO_CALLS = "The report has no rows: no CUDA call was recorded; profile with ProfilerActivity.CUDA on a GPU."


def api_report(view: ProfileView, ref: RunRef, selection: Selection) -> Report:
    """Calls of the CUDA runtime and driver, in the columns of nvprof's "API calls": one row per name, by falling time.

    The percentage is of the time in all calls, nested ones once.
    """
    found = api_calls(view, selection)
    whole = int(found.self_ns.sum())
    rows = []
    for row, name in enumerate(found.names):
        total, average, low, high = found.time.of(row)
        own = int(found.self_ns[row])
        calls, launched = int(found.time.count[row]), int(found.launched[row])
        rows.append((name, percent(own, whole), total, calls, average, low, high, own, launched))
    return Report(API_COLUMNS, list(rows), notes=() if rows else (_NO_CALLS,))


COPIES_COLUMNS = (
    "Copy", "Size (bytes)", "No. Copies", "Total Size (bytes)", "Time (%)", "Total Time (ns)", "Avg. Time (ns)",
    "Min Time (ns)", "Max Time (ns)", "Avg. Bandwidth (GB/s)", "Min Bandwidth (GB/s)", "Max Bandwidth (GB/s)",
)  # fmt: skip
_NO_COPIES = "The report has no rows: nothing was copied or set on a GPU."
_NO_SIZES = "Sizes and bandwidths are empty: this version of PyTorch did not record the bytes of copies."
_GB = 1e9


def copies_report(view: ProfileView, ref: RunRef, selection: Selection) -> Report:
    """Copies and sets on the GPU: one row per kind and size, by falling time, bandwidths in 10^9 bytes per second."""
    moved = copies(view, selection)
    whole = int(moved.time.total.sum())
    rows = []
    for row, name in enumerate(moved.names):
        size, count = int(moved.bytes[row]), int(moved.time.count[row])
        total, *rest = moved.time.of(row)
        sizes = (size, count, size * count) if size >= 0 else (None, count, None)
        bandwidths = (None if value is None else value / _GB for value in moved.bandwidth(row))
        rows.append((name, *sizes, percent(total, whole), total, *rest, *bandwidths))
    notes = () if (moved.bytes >= 0).any() else (_NO_SIZES,) if rows else (_NO_COPIES,)
    return Report(COPIES_COLUMNS, list(rows), notes=notes)


KERNEL_GROUPS_COLUMNS = (
    "Kernel Group", "Group ID", "Time (%)", "Total GPU Time (ns)", "Avg. GPU Time (ns)", "Min GPU Time (ns)",
    "Max GPU Time (ns)", "No. Calls", "No. Kernels", "TC GPU Time (ns)", "Unknown GPU Time (ns)",
)  # fmt: skip


def kernel_groups_report(view: ProfileView, ref: RunRef, selection: Selection) -> Report:
    """GPU work by what it does and by which algorithm: one row per group that occurs, by falling GPU time.

    The percentage is of the time of all GPU work.
    """
    groups = kernel_groups(view, selection)
    whole = int(groups.gpu.total.sum())
    return Report(
        KERNEL_GROUPS_COLUMNS,
        [
            (
                GROUPS[name],
                name,
                percent(int(groups.gpu.total[row]), whole),
                *groups.gpu.of(row),
                int(groups.gpu.count[row]),
                int(groups.kernels[row]),
                int(groups.tensor_core_ns[row]),
                int(groups.unknown_ns[row]),
            )
            for row, name in enumerate(groups.names)
        ],
        notes=() if view.profile.has_gpu else (NO_GPU,),
    )
