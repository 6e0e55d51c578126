"""One sentence on each column of the reports, by its name in JSON; docs/reports.md has the definitions."""

from __future__ import annotations

import re

_STATISTICS = {
    "total": "Sum over all instances in the range",
    "avg": "Mean over the instances",
    "min": "Least of the instances",
    "max": "Most of the instances",
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
_MEANINGS = {
    "op_id": "A hash of module, type and direction: the same in every run, and in the page's links.",
    "op_name": "Path of the module and type of the op.",
    "op_type": "What it computes; a backward op has the type of its forward op.",
    "direction": "Forward (fprop) or backward (bprop); empty for optimizers and copies.",
    "number_of_calls": "How often it was called in the range; torch's table counts every call of the name.",
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
    "parameters": "PyTorch's profiler does not record them.",
    "output_shapes": "PyTorch's profiler does not record them.",
    "reason": "Why it does not use Tensor Cores.",
    "could_save_ns": "What Tensor Cores would save in the range.",
    "flattened_gpu_time_ns": "The union of the intervals on the GPU: what runs at once counts once.",
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
    "unknown_gpu_time_ns": "Time of kernels of which it is unknown.",
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


def meaning(key: str, heading: str) -> str:
    """The sentence on a column; its heading where that says all there is.

    Args:
        key: its name in JSON.
        heading: what stands above it.
    """
    if key in _MEANINGS:
        return _MEANINGS[key]
    found = _STATISTIC.match(key)
    if found and found[2] in _TIMES:
        return f"{_STATISTICS[found[1]]}: {_TIMES[found[2]]}."
    return f"{heading}."
