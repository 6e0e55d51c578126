"""What a claim cannot do without, asked in one place: rules, headlines, forecasts, plans and comparisons ask here.

Each need is a whole sentence, the same everywhere; `missing` adds how to record the missing part, where it is known.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from tb_dlprof_plugin.metrics.parallel_settings import DDP, parallel_settings
from tb_dlprof_plugin.metrics.run_setup import run_setup
from tb_dlprof_plugin.model.profile import CallKind, Role
from tb_dlprof_plugin.model.remedies import Remedies, remedies_for, sentence
from tb_dlprof_plugin.names.tensor_core_eligibility import tensor_core_precisions
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.estimate import step_estimate
from tb_dlprof_plugin.simulation.step_detection import unmarked


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
    GPU = "The run used no GPU"
    TENSOR_CORES = "The GPU has no Tensor Cores, or its compute capability was not recorded"
    TF32 = "The GPU has no TF32, or its compute capability was not recorded"
    DISTRIBUTED_DATA_PARALLEL = "The model is not wrapped in DistributedDataParallel"
    ITERATIONS = "No iterations were found: what a step takes does not show"
    TIMED_STEPS = "No step without the profiler was timed: the schedule waited for too few"
    EAGER = "The model was compiled: its modules are merged in the code that runs"
    COMPILATIONS = no("compilations by torch.compile, which the hook notes where it runs before them")
    GRADIENTS_SEEN = "Whether all parameters get a gradient was not recorded"


_HAS: dict[Need, Callable[[ProfileView, Selection], object]] = {
    # Without a GPU there is nothing to launch, which `GPU` says.
    Need.CUDA_CALLS: lambda view, _: not view.profile.has_gpu or (view.profile.ops.kind == CallKind.RUNTIME).any(),
    Need.SHAPES: lambda view, _: (view.profile.ops.shapes > 0).any(),
    Need.INPUT_PIPELINE: lambda view, _: (view.profile.ops.role == Role.DATALOADER).any(),
    Need.MEMORY: lambda view, _: len(view.profile.memory) > 0,
    # Where PyTorch's profiler recorded without the hook, the rules say which fact they miss.
    Need.PROCESS: lambda view, _: view.profile.source.format == "kineto",
    Need.FSDP: lambda view, _: parallel_settings(view).fsdp is not None,
    Need.GPU: lambda view, _: view.profile.has_gpu,
    Need.TENSOR_CORES: lambda view, _: tensor_core_precisions(view.compute_capability),
    Need.TF32: lambda view, _: "tf32" in tensor_core_precisions(view.compute_capability),
    Need.DISTRIBUTED_DATA_PARALLEL: lambda view, _: parallel_settings(view).wrapper == DDP,
    Need.ITERATIONS: lambda view, _: not unmarked(view),
    Need.TIMED_STEPS: lambda view, selection: step_estimate(view, selection).source in ("measured", "light"),
    Need.EAGER: lambda view, _: not run_setup(view).compiled,
    Need.COMPILATIONS: lambda view, _: view.profile.facts.compilations or view.profile.facts.graph_breaks,
    Need.GRADIENTS_SEEN: lambda view, _: view.profile.facts.unused_parameters is not None,
}
_REMEDY: dict[Need, Callable[[Remedies], str]] = {
    Need.SHAPES: lambda known: known.shapes,
    Need.MEMORY: lambda known: known.memory,
    Need.ITERATIONS: lambda known: known.steps,
}


def missing(view: ProfileView, selection: Selection, need: Need) -> str:
    """What a claim lacks, in a sentence with the remedy; "" where the recording has what it needs."""
    if _HAS[need](view, selection):
        return ""
    remedy = _REMEDY.get(need)
    return sentence(need.value, remedy(remedies_for(view.profile.source)) if remedy else "")
