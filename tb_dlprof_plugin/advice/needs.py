"""What a rule cannot do without, with the sentence for a recording that lacks it. The engine checks it before the rule.

Each need is a whole sentence, the same for all rules; `unmet` adds how to record the missing part, where it is known.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from tb_dlprof_plugin.advice.finding import Silent
from tb_dlprof_plugin.advice.gpu_memory import capacity_bytes
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.step_detection import unmarked
from tb_dlprof_plugin.fleet.answers.scenarios import UNRELIABLE_PERCENT
from tb_dlprof_plugin.metrics.run_setup import run_setup
from tb_dlprof_plugin.model.profile import CallKind, Role
from tb_dlprof_plugin.model.remedies import remedies_for, sentence
from tb_dlprof_plugin.names.tensor_core_eligibility import tensor_core_precisions
from tb_dlprof_plugin.simulation.estimate import step_estimate


def no(what: str) -> str:
    """The sentence for a recording that lacks something, without its full stop."""
    return f"Not applicable: this recording has no {what}"


class Need(Enum):
    """Something that not every run or recording has. The value says that it is missing, as a sentence without its
    full stop."""

    CUDA_CALLS = no("calls of CUDA: when work was launched, and for what the CPU waited, does not show")
    SHAPES = no("shapes of ops' inputs")
    INPUT_PIPELINE = no("input pipeline of its own: what loads the batches does not show")
    MEMORY = no("events of the framework's allocator")
    PROCESS = no("facts of the training process, which the hook reads in it")
    FSDP = no("settings of FSDP")
    REPLAYED_JOB = no(
        "other rank whose collectives match those of this one, or the job's replay is more than "
        f"{UNRELIABLE_PERCENT:.0f} % off"
    )
    GPU = "The run used no GPU"
    TENSOR_CORES = "The GPU has no Tensor Cores, or its compute capability was not recorded"
    TF32 = "The GPU has no TF32, or its compute capability was not recorded"
    OTHER_RANKS = "No other rank was recorded"
    DISTRIBUTED_DATA_PARALLEL = "The model is not wrapped in DistributedDataParallel"
    PEAK_MEMORY = "The peak memory or the GPU's memory was not recorded"
    ITERATIONS = "No iterations were found"
    TIMED_STEPS = "No step without the profiler was timed: the schedule waited for too few"
    EAGER = "The model was compiled: its modules are merged in the code that runs"
    GRADIENTS_SEEN = "Whether all parameters get a gradient was not recorded"

    def missing(self) -> Silent:
        """The answer of a rule that needs this after it has looked at something else."""
        return Silent(f"{self.value}.", applicable=False)


_HAS: dict[Need, Callable[[RuleContext], object]] = {
    # Without a GPU there is nothing to launch, which `GPU` says.
    Need.CUDA_CALLS: lambda context: (
        not context.profile.has_gpu or (context.profile.ops.kind == CallKind.RUNTIME).any()
    ),
    Need.SHAPES: lambda context: (context.profile.ops.shapes > 0).any(),
    Need.INPUT_PIPELINE: lambda context: (context.profile.ops.role == Role.DATALOADER).any(),
    Need.MEMORY: lambda context: len(context.profile.memory) > 0,
    # Where PyTorch's profiler recorded without the hook, the rules say which fact they miss.
    Need.PROCESS: lambda context: context.profile.source.format == "kineto",
    Need.FSDP: lambda context: context.facts.fsdp is not None,
    Need.REPLAYED_JOB: lambda context: context.replay_holds,
    Need.GPU: lambda context: context.profile.has_gpu,
    Need.TENSOR_CORES: lambda context: tensor_core_precisions(context.compute_capability),
    Need.TF32: lambda context: "tf32" in tensor_core_precisions(context.compute_capability),
    Need.OTHER_RANKS: lambda context: context.job is not None and context.job.step is not None,
    Need.DISTRIBUTED_DATA_PARALLEL: lambda context: context.facts.parallel_wrapper == "DistributedDataParallel",
    Need.PEAK_MEMORY: lambda context: (
        bool(capacity_bytes(context)) and context.facts.peak_memory_allocated_bytes is not None
    ),
    Need.ITERATIONS: lambda context: not unmarked(context.view),
    Need.TIMED_STEPS: lambda context: step_estimate(context.view, context.selection).source in ("measured", "light"),
    Need.EAGER: lambda context: not run_setup(context.view).compiled,
    Need.GRADIENTS_SEEN: lambda context: context.facts.unused_parameters is not None,
}


def unmet(needs: tuple[Need, ...], context: RuleContext) -> str:
    """The reason why a rule does not apply to a run; "" where the run has all that the rule needs."""
    missing = next((need for need in needs if not _HAS[need](context)), None)
    if missing is None:
        return ""
    remedies = remedies_for(context.profile.source)
    remedy = {Need.SHAPES: remedies.shapes, Need.MEMORY: remedies.memory}.get(missing, "")
    return sentence(missing.value, remedy)
