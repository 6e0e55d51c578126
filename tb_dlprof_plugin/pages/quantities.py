"""The quantities that more than one page shows: each has one name, one sentence and one function.

A page's struct says which of them a field shows (`pages.columns.Quantity`); `tests/invariants/test_one_answer.py` asks
every such field of every recording for what the function says. What few pages show is imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tb_dlprof_plugin.metrics.iterations import step_totals
from tb_dlprof_plugin.metrics.kernels import time_split
from tb_dlprof_plugin.metrics.tensor_cores import tensor_core_totals
from tb_dlprof_plugin.pages.columns import Quantity
from tb_dlprof_plugin.profile_view import ProfileView, Selection

if TYPE_CHECKING:
    from tb_dlprof_plugin.metrics.energy import StepEnergy

Value = Callable[[ProfileView, Selection], float | None]


def _per_step(total: Value) -> Value:
    """Of a sum over the selection; None without a GPU."""

    def value(view: ProfileView, selection: Selection) -> float | None:
        found = total(view, selection) if view.profile.has_gpu else None
        return None if found is None else found / selection.count

    return value


def _of_energy(read: Callable[[StepEnergy], float | None]) -> Value:
    def value(view: ProfileView, selection: Selection) -> float | None:
        from tb_dlprof_plugin.metrics.energy import step_energy

        energy = step_energy(view, selection)
        return None if energy is None else read(energy)

    return value


def _tensor_core_utilization(view: ProfileView, selection: Selection) -> float | None:
    return tensor_core_totals(view, selection).utilization


def _samples_per_second(view: ProfileView, selection: Selection) -> float | None:
    return step_totals(view, selection).samples_per_second(view.profile.facts.batch_size)


def _allocator_memory(view: ProfileView, _: Selection) -> float | None:
    from tb_dlprof_plugin.planning.memory.capacity import capacity

    room = capacity(view)
    return room.least if room else None


def _step_flops(view: ProfileView, selection: Selection) -> float | None:
    from tb_dlprof_plugin.metrics.run_figures import step_flops

    return step_flops(view, selection)


def _peak_allocated(view: ProfileView, selection: Selection) -> float | None:
    from tb_dlprof_plugin.metrics.memory import peak_allocated

    return peak_allocated(view, selection)[0]


def _peak_reserved(view: ProfileView, selection: Selection) -> float | None:
    from tb_dlprof_plugin.metrics.memory import peak_reserved

    return peak_reserved(view, selection)


STEP = Quantity(
    "stepTime",
    "The step time without the profiler: timed before and after the recording, timed while GPU activities alone were "
    "recorded, or estimated from the recorded launches.",
    "Step time",
    lambda view, selection: step_totals(view, selection).average_ns,
)
RECORDED_STEP = Quantity(
    "recordedStep",
    "Mean wall-clock time of the selected iterations while they were recorded, with what the profiler added.",
    "Recorded step",
    lambda view, selection: step_totals(view, selection).recorded_ns,
)
DEVIATION = Quantity(
    "stepDeviation",
    "Standard deviation of the recorded iteration times in the selected range.",
    "Standard deviation",
    lambda view, selection: step_totals(view, selection).deviation_ns,
)
GPU_BUSY = Quantity(
    "gpuUtilization",
    "Share of the step without the profiler during which a kernel, copy or set runs, waiting in collectives "
    "included; a mean over the GPUs that the process used. DLProf calls it GPU utilization.",
    "GPU busy",
    lambda view, selection: step_totals(view, selection).gpu_utilization,
)
GPU_IDLE = Quantity(
    "gpuIdle",
    "Share of the step without the profiler in which nothing runs on the GPU: it waits for the CPU. Over several GPUs "
    "their mean.",
    "GPU idle",
    lambda view, selection: step_totals(view, selection).gpu_idle_percent,
)
TENSOR_CORE_UTILIZATION = Quantity(
    "tcUtilization",
    "Time of Tensor Core kernels over the time of all kernels in Tensor Core eligible ops. DLProf calls it Tensor Core "
    "Kernel Utilization.",
    "Tensor Core utilization",
    _tensor_core_utilization,
)
TENSOR_CORE_SHARE = Quantity(
    "tcShare",
    "Time of Tensor Core kernels over the time of all kernels, copies and sets.",
    "Tensor Core share",
    lambda view, selection: time_split(view, selection).tensor_core_percent,
)
SAMPLES = Quantity(
    "samples",
    "Samples processed per second: batch size over the step without the profiler, where it is known.",
    "Samples per second",
    _samples_per_second,
)
GPU_BUSY_TIME = Quantity(
    "gpuBusyTime",
    "Time of a step in which at least one kernel, copy or set ran.",
    "GPU busy per step",
    _per_step(lambda view, selection: step_totals(view, selection).gpu_busy_ns),
)
KERNEL_TIME = Quantity(
    "kernelTimeOfStep",
    "Summed time of all kernels, per step.",
    "Kernel time per step",
    _per_step(lambda view, selection: time_split(view, selection).kernel_ns),
)
TENSOR_CORE_TIME = Quantity(
    "tcTimeOfStep",
    "Summed time of kernels on Tensor Cores, per step.",
    "Tensor Core kernel time per step",
    _per_step(lambda view, selection: time_split(view, selection).tensor_core_ns),
)
MEMORY_TIME = Quantity(
    "memoryTimeOfStep",
    "Summed time of copies and sets, per step.",
    "Copies and sets per step",
    _per_step(lambda view, selection: time_split(view, selection).memory_ns),
)
LAUNCHES = Quantity(
    "launchesOfStep",
    "Kernels, copies and sets launched per step.",
    "GPU launches per step",
    _per_step(lambda view, selection: int(view.selected_launches(selection).sum())),
)
FLOPS = Quantity(
    "runFlops",
    "Floating-point operations of the matrix ops per step; unknown if the shapes of any are missing.",
    "FLOPs per step",
    _step_flops,
)
PEAK_ALLOCATED = Quantity(
    "memoryPeakAllocated",
    "Most bytes that tensors and workspace held on the GPU at one moment: of the selected iterations where memory "
    "was recorded. Else, marked with * in tables, of the process until the end of the recording.",
    "Peak memory allocated",
    _peak_allocated,
)
PEAK_RESERVED = Quantity(
    "memoryPeakReserved",
    "Most bytes that PyTorch's allocator had reserved on the GPU, in use or not: of the selected iterations where "
    "memory was recorded, else of the process until the end of the recording.",
    "Peak memory reserved",
    _peak_reserved,
)
GPU_MEMORY = Quantity(
    "gpuMemory",
    "Total memory of the GPU.",
    "Memory of the GPU",
    lambda view, _: view.gpu.memory_bytes if view.gpu is not None else None,
)
ALLOCATOR_MEMORY = Quantity(
    "planCapacity",
    "What PyTorch's allocator can have of the GPU: its memory less what the CUDA context and libraries hold.",
    "Memory for tensors",
    _allocator_memory,
)
JOULES = Quantity(
    "joulesPerStep",
    "Energy of this process's GPUs in a step without the profiler, by their own counter.",
    "Energy per step",
    _of_energy(lambda energy: energy.joules),
)
JOULES_PER_SAMPLE = Quantity(
    "joulesPerSample",
    "Energy of a step over the batch size of this process.",
    "Energy per sample",
    _of_energy(lambda energy: energy.joules_per_sample),
)
WATTS = Quantity(
    "gpuWatts",
    "Mean power of the GPUs over steps without the profiler, between ticks of the counter.",
    "Power",
    _of_energy(lambda energy: energy.watts),
)
