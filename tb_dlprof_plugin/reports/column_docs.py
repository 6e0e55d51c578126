"""One sentence on each column of the reports, by its name in JSON; docs/reports.md has the definitions."""

from __future__ import annotations

import re

_STATISTICS = {
    "total": "Sum over all instances in the range",
    "avg": "Mean over the instances",
    "min": "Least of the instances",
    "max": "Most of the instances",
}
_BY_ITERATION = {
    "total": "Sum over the range",
    "avg": "Mean of the iterations",
    "min": "Least of the iterations",
    "max": "Most of the iterations",
}
_TIMES = {
    "cpu_time": "time of the calls on the CPU",
    "gpu_time": "time of the kernels, copies and sets on the GPU",
    "cpu_overhead_time": "time in the calls outside their CUDA calls",
    "gpu_idle_time": "time between the first and the last GPU work of a call in which nothing ran on that GPU",
    "api_time": "time of the CUDA calls that launched it",
    "time": "its time",
}
_STATISTIC = re.compile(r"(total|avg|min|max)_(\w+)_ns$")
_OF_MODULES = {
    "cpu_time": "time of the module's forward ranges and of all calls in it and below, the union",
    "gpu_time": "time in which anything that it and those below launched ran, the union",
    "cpu_overhead_time": "the CPU time outside CUDA calls",
    "gpu_idle_time": "time within its ops in which nothing ran on the GPU, the union",
}
_OF_REPORT = {
    ("averages", "name"): "Name of the op, annotation, CUDA call or kernel.",
    ("averages", "number_of_calls"): "Calls of this name, inside other ops, too.",
    ("group_node", "name"): "Path of the module; the whole model has its class.",
    ("tensor", "total_gpu_time_ns"): "Time of the kernels in the parts of the op that can use Tensor Cores.",
    ("tensor", "unknown_gpu_time_ns"): "Of it, time of kernels whose Tensor Core use is unknown.",
    ("tensor", "tc_gpu_time_ns"): "Of it, time of kernels that use Tensor Cores.",
}
"""Meanings that differ in a report, by report and name."""
_MEANINGS = {
    "table": "The table of the summary.",
    "row_name": "The figure, or the subject of the figures next to it.",
    "column_name": "Which figure, where a row has several.",
    "number_of_kernel_calls": "Kernels, copies and sets launched.",
    "number_of_input_shapes": "Different shapes that it was called with.",
    "device_id": "Number of the GPU.",
    "stream_id": "Number of the CUDA stream.",
    **{f"{what}_{axis}": f"Size of the {what} in {axis.upper()}." for what in ("grid", "block") for axis in "xyz"},
    "registers_per_thread": "Registers that each thread of the kernel holds.",
    "shared_memory_bytes": "Shared memory of each block.",
    "non_tc_gpu_time_ns": "Time of kernels that do not use Tensor Cores.",
    "tc_utilization_percent": "Share of the time that kernels on Tensor Cores have.",
    "total_kernel_count": "Different kernels in the parts that can use Tensor Cores.",
    "tc_kernel_count": "Of them, those that use Tensor Cores.",
    "tc_kernel_names": "Of them, those that use Tensor Cores.",
    "non_tc_kernel_count": "Of them, those that do not.",
    "non_tc_kernel_names": "Of them, those that do not.",
    "could_save_at_most_ns": "What Tensor Cores would save at most, where no estimate can be made.",
    "op_gpu_time_ns": "Time of all that the op launched, casts included.",
    "number_of_nodes": "Different ops of this type.",
    "number_of_calls_aggregated": "Calls of ops in the module and below.",
    "number_of_tc_eligibility_ops": "Different ops in it that can use Tensor Cores.",
    "number_of_node_ops_using_tc": "Different ops in it that use Tensor Cores.",
    "depth": "How far below the whole model it lies.",
    "module_calls": "How often its forward was called.",
    "accumulated_gpu_time_ns": "Sum over all GPU work; overlapping work counts several times.",
    "own_gpu_time_ns": "Without the modules below.",
    "own_cpu_time_ns": "Without the modules below.",
    "forward_gpu_time_ns": "Of the forward pass.",
    "backward_gpu_time_ns": "Of the backward pass.",
    "eligible_gpu_time_ns": "Time of kernels in the parts that can use Tensor Cores.",
    "saving_ns": "What the change should save in each step.",
    "saving_low_ns": "The least of it, by the interval.",
    "saving_high_ns": "The most of it, by the interval.",
    "saving_percent": "Share of the step that the change should save.",
    "severity": "High, medium or low, mostly by what it should save.",
    "confidence": "How sure the rule is.",
    "seen": "The numbers behind it.",
    "code": "The lines to change.",
    "confirm": "What a second run should show.",
    "rule": "The rule that found it; `tb-dlprof advise --rule` says what it looks for.",
    "number_of_copies": "How often it was copied or set.",
    "op_id": "A hash of module, type and direction: the same in every run, and in the page's links.",
    "op_name": "Path of the module and type of the op.",
    "op_type": "What it computes; a backward op has the type of its forward op.",
    "direction": "Forward (fprop) or backward (bprop); empty for optimizers and copies.",
    "number_of_calls": "How often it was called in the range.",
    "tc_eligibility": "Whether it can use Tensor Cores.",
    "using_tc": "Whether it uses Tensor Cores.",
    "uses_tc": "Whether it uses Tensor Cores.",
    "data_type": "Types of the input tensors.",
    "input_shapes": "One entry for each input tensor.",
    "stack_trace": "The function of yours that called it; needs with_stack=True.",
    "module": "Path of the module in the model.",
    "flops": "Floating-point operations of its matrix routines.",
    "precision": "What it computed in.",
    "copied_or_set_bytes": "Bytes that its copies and sets moved.",
    "kernel_name": "Its own name, without return type, namespaces and template arguments.",
    "long_kernel_name": "Its name in full.",
    "kind": "Kernel, copy or set.",
    "family": "What sort of kernel it is, by its name.",
    "occupancy_percent": "Share of the warps that the GPU could hold; Kineto's estimate.",
    "iteration": "Number of the iteration that launched it, as the training counts.",
    "gpu_start_time_ns": "When it began, from the profile's zero, which CPU and GPU share.",
    "gpu_time_ns": "How long it ran.",
    "api_call_start_ns": "When the CUDA call that launched it began.",
    "api_call_time_ns": "How long the CUDA call that launched it took.",
    "api_call": "Name of the call of the CUDA runtime or driver.",
    "parameters": "Recordings do not have them.",
    "output_shapes": "Recordings do not have them.",
    "reason": "Why it does not use Tensor Cores.",
    "could_save_ns": "What Tensor Cores would save in the range.",
    "flattened_gpu_time_ns": "The union of the intervals on the GPU: overlapping work counts once.",
    "self_cpu_time_ns": "Time outside the calls inside it.",
    "time_percent": "Share of the time of all rows.",
    "self_time_ns": "Time without that of the calls inside it.",
    "number_of_launched": "Kernels, copies and sets that these calls launched.",
    "size_bytes": "Bytes of each.",
    "total_size_bytes": "Bytes of all together.",
    "avg_bandwidth_gb_per_s": "Bytes over time of all together, in 10^9 bytes a second.",
    "min_bandwidth_gb_per_s": "Of the slowest, in 10^9 bytes a second.",
    "max_bandwidth_gb_per_s": "Of the fastest, in 10^9 bytes a second.",
    "copy": "From where to where, and whether that memory is pinned.",
    "kernel_group": "What its kernels do, and by which algorithm.",
    "group_id": "The name of the group in commands and links.",
    "number_of_kernels": "Different kernels.",
    "tc_gpu_time_ns": "Time of the kernels that use Tensor Cores.",
    "unknown_gpu_time_ns": "Time of kernels whose Tensor Core use is unknown.",
    "self_cpu_percent": "Share of the self CPU time of all rows.",
    "self_cpu_ns": "CPU time without that of the calls inside it.",
    "cpu_total_percent": "Its CPU time over the self CPU time of all rows.",
    "cpu_total_ns": "CPU time with that of the calls inside it.",
    "cpu_time_avg_ns": "CPU total of one call.",
    "self_cuda_ns": "Time of the kernels that it launched itself.",
    "self_cuda_percent": "Share of the time of all kernels, copies and sets.",
    "cuda_total_ns": "Time of the kernels that it and the calls inside it launched.",
    "cuda_time_avg_ns": "CUDA total of one call.",
    "problem": "What was found.",
    "recommendation": "What to change.",
    "value": "The figure, unrounded; empty where it is unknown.",
    "in_short": "The same figure, rounded and with its unit.",
}


def meaning(report: str, key: str) -> str:
    """The sentence on a column.

    Args:
        report: the report's name.
        key: the column's name in JSON.

    Raises:
        KeyError: no report has such a column.
    """
    known = _OF_REPORT.get((report, key)) or _MEANINGS.get(key)
    if known:
        return known
    found = _STATISTIC.match(key)
    if found is None:
        raise KeyError(key)
    statistics, times = (_BY_ITERATION, _OF_MODULES) if report == "group_node" else (_STATISTICS, _TIMES)
    return f"{statistics[found[1]]}: {times[found[2]]}."
