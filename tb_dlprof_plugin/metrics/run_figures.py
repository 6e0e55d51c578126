"""The figures of one run, per iteration, for tables of many runs and sweeps."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.energy import step_energy
from tb_dlprof_plugin.metrics.flops import UNKNOWN, matrix_calls
from tb_dlprof_plugin.metrics.iterations import percent, step_totals
from tb_dlprof_plugin.metrics.kernels import kernel_totals, time_split
from tb_dlprof_plugin.metrics.memory import peak_allocated
from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.metrics.roofline import roofline
from tb_dlprof_plugin.metrics.run_setup import RunSetup, run_setup
from tb_dlprof_plugin.metrics.tensor_cores import tensor_core_totals
from tb_dlprof_plugin.model.direction import Direction, direction_of
from tb_dlprof_plugin.names.kernel_groups import kernel_group
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.estimate import StepEstimate, step_estimate


class OpTypeTime(msgspec.Struct, frozen=True):
    """GPU time per iteration (ns) of all ops of one type and direction."""

    op_type: str
    direction: Direction
    gpu_ns: float


class RunFigures(msgspec.Struct, frozen=True):
    """Figures per step, over the selected ones; None is unknown. Times in ns.

    Attributes:
        setup: the facts of the run.
        created_unix_ns: when it was recorded.
        iterations: how many were selected.
        step: the step without the profiler.
        iteration_ns: durations of the recorded iterations.
        deviation_ns: their sample standard deviation.
        samples_per_second: of this process, without the profiler.
        gpu_utilization: percent.
        tensor_core_utilization: Tensor Core Kernel Utilization, percent.
        tensor_core_share: percent of the time of all kernels, copies and sets that Tensor Core kernels take.
        gpu_ns: time of all kernels, copies and sets launched; what the shares of ops and kernel groups are of.
        launches: kernels, copies and sets.
        flops: of the matrix ops; None where those of any call are unknown.
        peak_memory_bytes: most memory allocated on the GPU.
        peak_memory_of: the selected iterations where memory was recorded, else the whole process until the recording.
        group_ns: time of each kernel group that occurs.
        op_types: by falling time.
        joules_per_step: of this process's GPUs, by their counter.
        joules_per_sample: the same over the batch size.
        watts: their mean power.
    """

    setup: RunSetup
    created_unix_ns: int
    iterations: int
    step: StepEstimate
    iteration_ns: list[int]
    deviation_ns: int | None
    samples_per_second: float | None
    gpu_utilization: float | None
    tensor_core_utilization: float | None
    tensor_core_share: float | None
    gpu_ns: float | None
    launches: float | None
    flops: float | None
    peak_memory_bytes: int | None
    peak_memory_of: Literal["iterations", "process", ""]
    group_ns: dict[str, float]
    op_types: list[OpTypeTime]
    joules_per_step: float | None = None
    joules_per_sample: float | None = None
    watts: float | None = None

    @property
    def flops_rate(self) -> float | None:
        """FLOP/s of the matrix ops over the step without the profiler; None where either is unknown."""
        return self.flops * 1e9 / self.step.ns if self.flops is not None and self.step.ns else None

    def group_share(self, groups: list[str]) -> float | None:
        """Percent of the GPU time that these kernel groups take; 0 where none occurs, None without a GPU."""
        return percent(sum(self.group_ns.get(group, 0.0) for group in groups), self.gpu_ns)

    def op_share(self, op_type: str, direction: Direction = "") -> float | None:
        """Percent of the GPU time that ops of this type take, in one direction or both; None without a GPU."""
        time = sum(op.gpu_ns for op in self.op_types if op.op_type == op_type and direction in ("", op.direction))
        return percent(time, self.gpu_ns)


def run_figures(view: ProfileView, selection: Selection) -> RunFigures:
    """The figures of a run over the selected iterations."""
    profile, count = view.profile, selection.count
    steps, step = step_totals(view, selection), step_estimate(view, selection)
    setup = run_setup(view)
    has_gpu = profile.has_gpu
    split = time_split(view, selection)
    gpu_ns = (split.kernel_ns + split.memory_ns) / count
    energy = step_energy(view, selection)
    peak, peak_of = peak_allocated(view, selection)
    return RunFigures(
        setup=setup,
        created_unix_ns=profile.source.created_unix_ns,
        iterations=count,
        step=step,
        iteration_ns=profile.iterations.duration_ns[selection.first : selection.last + 1].tolist(),
        deviation_ns=steps.deviation_ns,
        samples_per_second=steps.samples_per_second(setup.batch_size),
        gpu_utilization=steps.gpu_utilization,
        tensor_core_utilization=tensor_core_totals(view, selection).utilization,
        tensor_core_share=split.tensor_core_percent,
        gpu_ns=gpu_ns if has_gpu else None,
        launches=int(view.selected_launches(selection).sum()) / count if has_gpu else None,
        flops=step_flops(view, selection),
        peak_memory_bytes=peak,
        peak_memory_of=peak_of,
        joules_per_step=energy.joules if energy else None,
        joules_per_sample=energy.joules_per_sample if energy else None,
        watts=energy.watts if energy else None,
        group_ns=_groups(view, selection),
        op_types=_op_types(view, selection) if has_gpu else [],
    )


def _groups(view: ProfileView, selection: Selection) -> dict[str, float]:
    profile = view.profile
    total = kernel_totals(view, selection).total_ns
    result: dict[str, float] = {}
    for row in np.flatnonzero(total).tolist():
        name, family = profile.strings[profile.kernels.name[row]], profile.strings[profile.kernels.family[row]]
        group = kernel_group(name, family)
        result[group] = result.get(group, 0.0) + int(total[row]) / selection.count
    return result


def _op_types(view: ProfileView, selection: Selection) -> list[OpTypeTime]:
    groups, strings = view.groups, view.profile.strings
    gpu_ns = op_totals(view, selection).gpu_ns
    times: dict[tuple[int, int], int] = {}
    for row in np.flatnonzero(gpu_ns).tolist():
        key = (int(groups.op_type[row]), int(groups.role[row]))
        times[key] = times.get(key, 0) + int(gpu_ns[row])
    rows = [
        OpTypeTime(strings[op_type], direction_of(role), time / selection.count)
        for (op_type, role), time in times.items()
    ]
    return sorted(rows, key=lambda row: (-row.gpu_ns, row.op_type, row.direction))


def step_flops(view: ProfileView, selection: Selection) -> float | None:
    """FLOPs of the matrix ops per step; None where those of any call are unknown or not possible."""
    work = matrix_calls(view, selection)
    if not len(work) or (work.flops == UNKNOWN).any() or roofline(view, selection).impossible:
        return None
    return int(work.flops.sum()) / selection.count
