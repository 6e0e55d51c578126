"""Input of every rule: a profile, the selected iterations and totals over them, each computed once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tb_dlprof_plugin.advice.frameworks import Words, words_of
from tb_dlprof_plugin.advice.text import NO_LAUNCHES
from tb_dlprof_plugin.fleet.answers.job_of import ReplayedJob, replayed_job
from tb_dlprof_plugin.fleet.answers.scenarios import UNRELIABLE_PERCENT
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.metrics.iterations import StepTotals, percent, step_totals
from tb_dlprof_plugin.metrics.kernels import time_split
from tb_dlprof_plugin.metrics.needs import Need, missing
from tb_dlprof_plugin.metrics.ops import OpTotals, op_totals
from tb_dlprof_plugin.metrics.parallel_settings import ParallelSettings, parallel_settings
from tb_dlprof_plugin.metrics.tensor_cores import eligible_launches
from tb_dlprof_plugin.model.frameworks import PYTORCH
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.precision import op_precisions
from tb_dlprof_plugin.model.profile import Bools, Ints, Profile, Role, Verdict
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.names.kernel_verdicts import cuda_core_precision
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.simulator import Simulation, simulation
from tb_dlprof_plugin.simulation.step_detection import each_step, unmarked

HALF_PRECISIONS = ("fp16", "bf16", "fp8", "mxfp8", "mxfp4", "nvfp4")
"""Half precision and narrower types."""


class RuleContext:
    """One profile under examination. Times "per step" are means over the selected iterations (ns).

    ``ranks`` are the profiles of all ranks of its session, this one among them; empty if there is only this one.
    """

    def __init__(self, view: ProfileView, selection: Selection, ranks: Sequence[ProfileView] = ()) -> None:
        self.view = view
        self.selection = selection
        self.ranks = tuple(ranks)

    @property
    def profile(self) -> Profile:
        """The profile."""
        return self.view.profile

    @property
    def facts(self) -> RunFacts:
        """What the hook read in the training process."""
        return self.view.profile.facts

    @property
    def parallel(self) -> ParallelSettings:
        """The parallel wrapper and its settings: as the hook read them, else as the ranges show them."""
        return parallel_settings(self.view)

    @property
    def of_pytorch(self) -> bool:
        """Whether PyTorch ran the program."""
        return self.profile.source.framework == PYTORCH

    @property
    def each_step(self) -> str:
        """ "each step", or "the recording" where no steps are known."""
        return each_step(self.view)

    @property
    def a_step(self) -> str:
        """The end of "3 ms ...": "a step", or "in the recording" where no steps are known."""
        return "in the recording" if unmarked(self.view) else "a step"

    @property
    def words(self) -> Words:
        """What the program's framework calls the parts of a program."""
        return words_of(self.profile.source.framework)

    @cached_property
    def steps(self) -> StepTotals:
        """Step times and categories."""
        return step_totals(self.view, self.selection)

    @cached_property
    def ops(self) -> OpTotals:
        """Per-op totals."""
        return op_totals(self.view, self.selection)

    @cached_property
    def simulation(self) -> Simulation:
        """What the step would be after changes."""
        return simulation(self.view, self.selection)

    @cached_property
    def replayed_job(self) -> ReplayedJob | None:
        """All ranks that are looked at together, with their replays; None where there is one rank."""
        if len(self.ranks) < 2:
            return None
        return replayed_job([facts_of_profile(view) for view in self.ranks])

    @property
    def replay_holds(self) -> bool:
        """Whether the job's replay is a basis for prices: its calls match those of other ranks, and it is not too far
        off (`UNRELIABLE_PERCENT`)."""
        replayed = self.replayed_job
        if replayed is None or replayed.job.step is None or not replayed.scenarios.calls.coupled.any():
            return False
        error = replayed.scenarios.error_percent
        return error is not None and abs(error) <= UNRELIABLE_PERCENT

    @property
    def job(self) -> Job | None:
        """The answers about all ranks that are looked at together; None where there is one rank."""
        return None if self.replayed_job is None else self.replayed_job.job

    @property
    def step_ns(self) -> int:
        """The step without the profiler."""
        return round(self.simulation.estimate.ns)

    @property
    def recorded_step_ns(self) -> int:
        """Wall time per step as recorded: the whole of which CPU times and gaps of the recording are parts."""
        return round(self.simulation.estimate.recorded_ns)

    @property
    def step_was_timed(self) -> bool:
        """Whether the step without the profiler was measured."""
        return self.simulation.estimate.source in ("measured", "light")

    @property
    def busy_ns(self) -> float:
        """GPU time per step in which a kernel, copy or set ran; 0 without a GPU."""
        return (self.steps.gpu_busy_ns or 0) / self.selection.count

    @property
    def idle_ns(self) -> int:
        """GPU idle time per step: the most that can be gained unless the GPU sets the pace."""
        return max(0, round(self.simulation.estimate.ns - self.busy_ns))

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """Compute capability of the run's GPU as far as Tensor Cores go."""
        return self.view.tensor_core_capability

    @cached_property
    def kernel_launches(self) -> Bools:
        """Which launches are kernels of the selected iterations that are attributed to an op."""
        view = self.view
        return view.launch_is_kernel & view.selected_launches(self.selection) & (view.launch_group >= 0)

    @cached_property
    def matrix_launches(self) -> Bools:
        """Which launches are kernels of the selected iterations that Tensor Cores could compute, by their op or, where
        none was recorded, by themselves."""
        return eligible_launches(self.view, self.selection)

    @cached_property
    def by_kernels(self) -> bool:
        """Whether no op was recorded around any of `matrix_launches`: what is said of them is by their kernels."""
        return bool(self.matrix_launches.any()) and not (self.matrix_launches & (self.view.launch_group >= 0)).any()

    @property
    def saving_unknown(self) -> str:
        """Why no change's effect on a step can be known; "" where it can."""
        if not self.launches_recorded:
            return NO_LAUNCHES
        return missing(self.view, self.selection, Need.ITERATIONS)

    @property
    def launches_recorded(self) -> bool:
        """Whether the calls that launch GPU work were recorded: without them no change of it can be replayed."""
        return bool((self.profile.launches.call >= 0).any())

    @property
    def eligible_words(self) -> str:
        """What `matrix_launches` are, as the subject of a sentence."""
        if self.by_kernels:
            return "No op was recorded around the kernels: by their names, those that Tensor Cores could compute"
        return "Ops that can use Tensor Cores"

    @cached_property
    def product_launches(self) -> Bools:
        """Which of `matrix_launches` compute a product.

        Kernels of the same ops that change a layout or add up parts are excluded: another precision changes only the
        bytes that they move.
        """
        return self.matrix_launches & self.view.launch_computes_product

    @cached_property
    def launch_precision(self) -> Ints:
        """Per launch the index into `PRECISIONS`: the kernel's own precision, else that of its op's inputs, else what
        the name of a kernel off the Tensor Cores says."""
        profile, strings = self.profile, self.profile.strings
        of_kernel = np.array([_index(strings[i]) for i in profile.kernels.precision.tolist()], dtype=np.int64)
        of_op = np.array([_index(precision) for precision in op_precisions(profile)], dtype=np.int64)
        own = of_kernel[profile.launches.kernel]
        op = self.view.launch_op
        inputs = take_or(of_op, op, 0)
        off = profile.kernels.tensor_core == Verdict.NO
        named = np.array(
            [
                _index(cuda_core_precision(strings[name])) if is_off else 0
                for name, is_off in zip(profile.kernels.name.tolist(), off.tolist(), strict=True)
            ],
            dtype=np.int64,
        )[profile.launches.kernel]
        return np.where(own > 0, own, np.where(inputs > 0, inputs, named))

    @cached_property
    def on_tensor_cores(self) -> Bools:
        """Which launches are Tensor Core kernels."""
        used: Bools = self.profile.kernels.tensor_core[self.profile.launches.kernel] == Verdict.YES
        return used

    @cached_property
    def off_tensor_cores(self) -> Bools:
        """Which launches are kernels that are known not to use Tensor Cores."""
        unused: Bools = self.profile.kernels.tensor_core[self.profile.launches.kernel] == Verdict.NO
        return unused

    def per_step(self, launches: Bools) -> int:
        """GPU time of the launches per step."""
        return int(self.profile.launches.duration_ns[launches].sum()) // self.selection.count

    def kernel_share(self, launches: Bools) -> float:
        """Of the time of all kernels, percent."""
        kernels_ns = time_split(self.view, self.selection).kernel_ns
        return percent(int(self.profile.launches.duration_ns[launches].sum()), kernels_ns) or 0.0

    def in_precision(self, *names: str) -> Bools:
        """Which launches compute in one of the precisions."""
        return np.isin(self.launch_precision, [_index(name) for name in names])

    def in_role(self, *roles: Role) -> Bools:
        """Which launches belong to ops of one of the roles."""
        role = self.view.groups.role
        group = self.view.launch_group
        return take_or(np.isin(role, roles), group, False)


PRECISIONS = ("", "fp32", "tf32", "3xtf32", *HALF_PRECISIONS, "fp64", "int8")


def _index(name: str) -> int:
    return PRECISIONS.index(name) if name in PRECISIONS else 0
