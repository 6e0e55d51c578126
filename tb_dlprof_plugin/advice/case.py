"""What every rule looks at: a profile, the selected iterations and the totals over them, each computed once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tb_dlprof_plugin.frame import Frame, Selection
from tb_dlprof_plugin.measures.iterations import StepTotals, step_totals
from tb_dlprof_plugin.measures.ops import OpTotals, op_totals
from tb_dlprof_plugin.simulation.simulator import Simulation, simulation
from tb_dlprof_plugin.storage.facts import RunFacts
from tb_dlprof_plugin.storage.model import Bools, Ints, KernelKind, Profile, Role, Verdict
from tb_dlprof_plugin.storage.precision import precision_of_dtypes

HALF_PRECISIONS = ("fp16", "bf16", "fp8")


class Case:
    """One profile under examination. Times "per step" are means over the selected iterations (ns).

    ``ranks`` are the profiles of all ranks of its session, this one among them; empty where there is only this one.
    """

    def __init__(self, frame: Frame, selection: Selection, ranks: Sequence[Frame] = ()) -> None:
        self.frame = frame
        self.selection = selection
        self.ranks = tuple(ranks)

    @property
    def profile(self) -> Profile:
        """The profile."""
        return self.frame.profile

    @property
    def facts(self) -> RunFacts:
        """What the hook read in the training process."""
        return self.frame.profile.facts

    @cached_property
    def steps(self) -> StepTotals:
        """Step times and categories."""
        return step_totals(self.frame, self.selection)

    @cached_property
    def ops(self) -> OpTotals:
        """Per-op totals."""
        return op_totals(self.frame, self.selection)

    @cached_property
    def simulation(self) -> Simulation:
        """What the step would be after changes."""
        return simulation(self.frame, self.selection)

    @property
    def step_ns(self) -> int:
        """The step without the profiler."""
        return round(self.simulation.estimate.ns)

    @property
    def recorded_ns(self) -> int:
        """Wall time per recorded step: what recorded times of the CPU are a part of."""
        return round(self.simulation.estimate.recorded_ns)

    @property
    def busy_ns(self) -> float:
        """GPU time per step in which a kernel, copy or set ran; 0 without a GPU."""
        return (self.steps.gpu_busy_ns or 0) / self.selection.count

    @property
    def idle_ns(self) -> int:
        """GPU idle time per step: the most that can be gained where the GPU is not waited for."""
        return max(0, round(self.simulation.estimate.ns - self.busy_ns))

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """Of the GPU that the run used."""
        return self.frame.compute_capability

    @cached_property
    def kernel_launches(self) -> Bools:
        """Which launches are kernels of the selected iterations that an op explains."""
        profile = self.profile
        is_kernel = profile.kernels.kind[profile.launches.kernel] == KernelKind.KERNEL
        selected: Bools = is_kernel & self.frame.selected_launches(self.selection) & (self.frame.launch_group >= 0)
        return selected

    @cached_property
    def launch_precision(self) -> Ints:
        """Per launch the index into `PRECISIONS` of what it computes in: its own precision, else its op's inputs'."""
        profile, strings = self.profile, self.profile.strings
        of_kernel = np.array([_index(strings[i]) for i in profile.kernels.precision.tolist()], dtype=np.int64)
        of_op = np.array([_index(precision_of_dtypes(strings[i])) for i in profile.ops.dtypes.tolist()], dtype=np.int64)
        own = of_kernel[profile.launches.kernel]
        op = self.frame.launch_op
        inputs = np.where(op >= 0, of_op[np.maximum(op, 0)], 0) if len(of_op) else np.zeros_like(own)
        return np.where(own > 0, own, inputs)

    @cached_property
    def on_tensor_cores(self) -> Bools:
        """Which launches are Tensor Core kernels."""
        used: Bools = self.profile.kernels.tensor_core[self.profile.launches.kernel] == Verdict.YES
        return used

    def per_step(self, launches: Bools) -> int:
        """GPU time of the launches per step."""
        return int(self.profile.launches.duration_ns[launches].sum()) // self.selection.count

    def in_precision(self, *names: str) -> Bools:
        """Which launches compute in one of the precisions."""
        return np.isin(self.launch_precision, [_index(name) for name in names])

    def in_role(self, *roles: Role) -> Bools:
        """Which launches belong to ops of one of the roles."""
        role = self.frame.groups.role
        group = self.frame.launch_group
        return (
            (group >= 0) & np.isin(role[np.maximum(group, 0)], roles) if len(role) else np.zeros(len(group), np.bool_)
        )


PRECISIONS = ("", "fp32", "tf32", "3xtf32", "fp16", "bf16", "fp8", "fp64", "int8")


def _index(name: str) -> int:
    return PRECISIONS.index(name) if name in PRECISIONS else 0
