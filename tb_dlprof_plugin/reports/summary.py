"""DLProf's Summary Report (User Guide 1.8, section 10.2): system, utilization, iterations, all ops and all kernels.

Tables and rows are DLProf's, followed by additional rows.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tb_dlprof_plugin.metrics.iterations import percent, step_totals
from tb_dlprof_plugin.metrics.kernels import time_split
from tb_dlprof_plugin.metrics.op_kernels import op_kernels
from tb_dlprof_plugin.metrics.precision_mode import precision_mode
from tb_dlprof_plugin.metrics.tensor_cores import tensor_core_totals
from tb_dlprof_plugin.model.frameworks import framework_title
from tb_dlprof_plugin.model.profile import Bools, KernelKind, Source, Verdict
from tb_dlprof_plugin.pages.common import coverage_of
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.detail import COLUMNS as DETAIL_COLUMNS
from tb_dlprof_plugin.reports.detail import detail_report
from tb_dlprof_plugin.reports.table import Cell, NamedRows, TablesReport, report_of
from tb_dlprof_plugin.store.run_ref import RunRef

_DURATIONS = {
    "tensor_core": "Tensor Core Kernel Duration %",
    "other_kernels": "Non-Tensor Core Kernel Duration %",
    "memory": "Memory Duration %",
    "dataloader": "Dataloader Duration %",
    "io": "I/O Duration %",
    "cpu": "CPU Duration %",
    "other": "Other Duration %",
}
_NSYS = "NSys Version and DLProf Build are empty: the first is not kept, the second does not exist."
_IO = "I/O Duration % is empty: file I/O is not recorded; its time is in CPU and Other."
_UNKNOWN_KERNELS = (
    "Tensor Core Kernel Duration % and its counterpart are empty: for too much of the kernel time their use is unknown."
)
_NO_GPU = "GPU figures are empty: nothing ran on a GPU."


def summary_report(
    view: ProfileView, ref: RunRef, selection: Selection, profile_name: str | None = None
) -> TablesReport:
    """The tables over the selected iterations; ``profile_name`` is shown where the user gave one."""
    iterations = view.profile.iterations
    notes = [_NSYS] + ([_IO] if "io" in iterations.unrecorded_categories else [])
    notes += [] if view.profile.has_gpu else [_NO_GPU]
    notes += [] if time_split(view, selection).tensor_cores_known else [_UNKNOWN_KERNELS]
    if iterations.found_by == "none":
        notes.append("0 iterations were found: the whole recording counts as one.")
    return report_of(
        {
            "System config": _single(_system(view, profile_name)),
            "Summary Report": _single(_summary(view, selection)),
            "Iterations": _single(_iterations(view, selection)),
            "All Ops": _all_ops(view, ref, selection),
            "All Kernels": _all_kernels(view, selection),
            "Coverage of the recording": _single(_coverage(view)),
        },
        notes,
    )


def _single(values: dict[str, Cell]) -> NamedRows:
    return NamedRows((), {name: (value,) for name, value in values.items()})


def _framework(source: Source) -> str | None:
    """The framework of a recording that is not of PyTorch's profiler; its version is not kept."""
    return framework_title(source.framework) or None if source.format != "kineto" else None


def _system(view: ProfileView, profile_name: str | None) -> dict[str, Cell]:
    system, facts, source = view.profile.system, view.profile.facts, view.profile.source
    named: dict[str, Cell] = {"Profile Name": profile_name} if profile_name else {}
    return named | {
        "GPU Count": len(system.gpus) or len(view.profile.iterations.gpu_ids),
        "GPU Name(s)": ", ".join(gpu.name for gpu in system.gpus) or None,
        "CPU Model": system.cpu_model,
        "GPU Driver Version": system.driver_version,
        "Framework": f"PyTorch {system.torch_version}" if system.torch_version else _framework(source),
        "CUDA Version": system.cuda_version,
        "cuDNN Version": system.cudnn_version,
        "NSys Version": None,
        "DLProf Version": f"tb_dlprof_plugin {source.plugin_version}" if source.plugin_version else None,
        "DLProf Build": None,
        "Python Version": system.python_version,
        "Operating System": system.os,
        "Model": facts.model,
        "Precision": precision_mode(view).label or None,
        "Batch Size": facts.batch_size,
        "Trace File": source.trace_file or None,
    }


def _summary(view: ProfileView, selection: Selection) -> dict[str, Cell]:
    steps, facts = step_totals(view, selection), view.profile.facts
    tensor_cores = tensor_core_totals(view, selection)
    tensor_cores_known = time_split(view, selection).tensor_cores_known
    return {
        "Wall Clock Time (ns)": steps.wall_ns,
        "Tensor Core Kernel Utilization %": tensor_cores.utilization if view.profile.has_gpu else None,
        "GPU Utilization %": steps.gpu_utilization,
        **{label: percent(steps.category_ns[name], steps.wall_ns) for name, label in _DURATIONS.items()},
        **({} if tensor_cores_known else {_DURATIONS[name]: None for name in ("tensor_core", "other_kernels")}),
        "Samples per Second": steps.samples_per_second(facts.batch_size),
        "Recorded Wall Clock Time (ns)": steps.recorded_wall_ns,
        "Added by the Recorder (ns)": steps.recorder_ns,
        "Peak Memory Allocated (bytes)": facts.peak_memory_allocated_bytes,
    }


def _iterations(view: ProfileView, selection: Selection) -> dict[str, Cell]:
    iterations, steps = view.profile.iterations, step_totals(view, selection)
    marked = iterations.found_by != "none"
    return {
        "Total Iterations": len(iterations) if marked else 0,
        "Aggregated Iterations": selection.count,
        "Start Iteration": int(iterations.number[selection.first]),
        "Stop Iteration": int(iterations.number[selection.last]),
        "Average Iteration Time (ns)": steps.average_ns,
        "Iteration Time Standard Deviation (ns)": steps.deviation_ns,
        "Iterations Found By": iterations.found_by.replace("_", " ") if marked else None,
        "Average Iteration Time, Low (ns)": round(steps.estimate.low_ns),
        "Average Iteration Time, High (ns)": round(steps.estimate.high_ns),
        "Average Iteration Time Is": steps.estimate.words,
        "Recorded Average Iteration Time (ns)": steps.recorded_ns,
    }


def _all_ops(view: ProfileView, ref: RunRef, selection: Selection) -> NamedRows:
    """The rows of the Detailed Report, each op in one row below the first."""
    ops = [dict(zip(DETAIL_COLUMNS, row, strict=True)) for row in detail_report(view, ref, selection).rows]
    parts: dict[str, list[dict[str, Cell]]] = {"using": [], "idle": [], "other": [], "unknown": []}
    for op in ops:
        parts[_part(op["TC Eligibility"], op["Using TC"])].append(op)

    def row(of: list[dict[str, Cell]]) -> tuple[Cell, ...]:
        gpu = _sum(op["Total GPU Time (ns)"] for op in of) if view.profile.has_gpu else None
        return gpu, _sum(op["Total CPU Time (ns)"] for op in of), len(of)

    return NamedRows(
        ("GPU Time (ns)", "CPU Time (ns)", "# Ops"),
        {
            "All Op": row(ops),
            "Ops Using TC": row(parts["using"]),
            "Op eligible for TC but not using": row(parts["idle"]),
            "All other ops": row(parts["other"]),
            "Ops of which it is unknown": row(parts["unknown"]),
        },
    )


def _part(eligible: Cell, using: Cell) -> str:
    """The row of an op: unknown if missing data could move it to another."""
    if using is True:
        return "using"
    if eligible is False and using is False:
        return "other"
    return "idle" if eligible is True and using is False else "unknown"


def _sum(cells: Iterable[Cell]) -> int:
    return sum(cell for cell in cells if isinstance(cell, int))


def _all_kernels(view: ProfileView, selection: Selection) -> NamedRows:
    """The rows of the Kernel Report, each kernel in one row below the first."""
    kernels, launched, has_gpu = view.profile.kernels, op_kernels(view, selection), view.profile.has_gpu
    memory = kernels.kind[launched.kernel] != KernelKind.KERNEL
    verdict = kernels.tensor_core[launched.kernel]

    def row(chosen: Bools) -> tuple[Cell, ...]:
        if not has_gpu:
            return None, None, 0
        different = len(np.unique(launched.kernel[chosen]))
        return int(launched.gpu.total[chosen].sum()), int(launched.api.total[chosen].sum()), different

    return NamedRows(
        ("GPU Time (ns)", "CPU Time (ns)", "# Kernels"),
        {
            "All Kernels": row(memory | ~memory),
            "Kernels Using TC": row(~memory & (verdict == Verdict.YES)),
            "Memory": row(memory),
            "All other kernels": row(~memory & (verdict == Verdict.NO)),
            "Kernels of which it is unknown": row(~memory & (verdict == Verdict.UNKNOWN)),
        },
    )


def _coverage(view: ProfileView) -> dict[str, Cell]:
    """How much of all recorded GPU time is attributed to ops, for any selection."""
    if not view.profile.has_gpu:
        return {}
    time = coverage_of(view)
    return {
        "GPU Time (ns)": time.total_ns,
        "In Ops (ns)": time.linked_ns,
        "In Ops outside every Iteration (ns)": time.outside_ns,
        "Launched before the Recording (ns)": time.orphan_ns,
        "Outside every Op (ns)": time.unattributed_ns,
    }
