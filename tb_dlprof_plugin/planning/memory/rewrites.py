"""What a plan is asked for, and the rewriting of a step that answers it."""

from __future__ import annotations

from tb_dlprof_plugin.model.formatting import byte_size
from tb_dlprof_plugin.model.frameworks import PYTORCH, recording_of
from tb_dlprof_plugin.model.plan_request import SHARES, TENSOR_PARALLEL, PlanRequest
from tb_dlprof_plugin.planning.memory.capacity import capacity
from tb_dlprof_plugin.planning.memory.change_batch import Bound
from tb_dlprof_plugin.planning.memory.change_checkpoints import with_checkpoints
from tb_dlprof_plugin.planning.memory.change_gradients import (
    with_accumulation,
    with_freed_gradients,
    with_kept_gradients,
)
from tb_dlprof_plugin.planning.memory.change_input import UnknownInput, input_size, with_input
from tb_dlprof_plugin.planning.memory.change_layers import with_layers
from tb_dlprof_plugin.planning.memory.change_offload import with_offload
from tb_dlprof_plugin.planning.memory.change_optimizer import OPTIMIZERS, with_optimizer
from tb_dlprof_plugin.planning.memory.change_precision import with_autocast
from tb_dlprof_plugin.planning.memory.change_relu import with_inplace_relu, with_relu_behind_pool
from tb_dlprof_plugin.planning.memory.change_sharding import with_sharding
from tb_dlprof_plugin.planning.memory.change_tensor_parallel import NoPairs, with_tensor_parallel
from tb_dlprof_plugin.planning.memory.frontier import units
from tb_dlprof_plugin.planning.memory.op_calls import OpCalls
from tb_dlprof_plugin.planning.memory.step_program import StepProgram
from tb_dlprof_plugin.planning.target import ForecastError, target_of
from tb_dlprof_plugin.profile_view import ProfileView


class PlanError(ValueError):
    """The question cannot be answered for this run; the message says why and what to do."""


def changes_of(view: ProfileView, request: PlanRequest) -> list[str]:
    """Kinds of change, as `uncertainty.SPREADS` names them."""
    asked = {
        "batch_size": request.batch_size not in (None, view.profile.facts.batch_size),
        "input": request.sequence_length is not None or request.image_size is not None,
        "precision": request.precision is not None,
        "optimizer": request.optimizer is not None,
        "checkpoint": bool(request.checkpoint),
        "layers": any(request.layers.values()),
        "gradients": request.set_to_none is not None or request.accumulate > 1,
        "offload": bool(request.offload),
        "relu": request.relu is not None,
        "sharding": request.shard is not None,
        "allocator": request.expandable_segments is not None,
    }
    return [name for name, wanted in asked.items() if wanted]


def check(view: ProfileView, request: PlanRequest) -> None:
    """Raises PlanError where the request is invalid or needs a fact that was not recorded."""
    if view.profile.source.framework != PYTORCH:
        raise PlanError(f"a plan replays the allocator of PyTorch, and {recording_of(view.profile.source.framework)}.")
    if request.batch_size is not None and request.batch_size < 1:
        raise PlanError("a batch has at least one sample.")
    if request.batch_size is not None and not view.profile.facts.batch_size:
        raise PlanError("the run's own batch size was not recorded; pass batch_size= to tb_dlprof_plugin.profile.")
    if request.precision is not None:
        try:
            target_of(view, "bf16" if request.precision == "fp8" else request.precision)
        except ForecastError as error:
            raise PlanError(str(error)) from None
    _check_input(view, request)
    if request.gpu is not None and request.memory_bytes is not None:
        raise PlanError("a GPU has the memory of its data sheet: name a GPU or a memory, not both.")
    if request.memory_bytes is not None:
        room = capacity(view, total=request.memory_bytes)
        if room is not None and room.least <= 0:
            raise PlanError(
                f"a GPU with {byte_size(request.memory_bytes)} has nothing left for tensors: a CUDA context and its "
                f"libraries take {byte_size(request.memory_bytes - room.least)}."
            )
    if request.gpus < 1:
        raise PlanError("there is at least one GPU.")
    if request.shard is not None and request.shard not in SHARES:
        raise PlanError(f"there is no way to shard {request.shard!r}; there is {', '.join(SHARES)}.")
    if request.shard is not None and request.gpus < 2:
        raise PlanError("the work is shared over two GPUs at least: pass gpus.")
    if request.gpus > 1 and request.shard is None:
        raise PlanError("several GPUs need a way to share the work: pass shard, such as fsdp2.")
    if request.accumulate < 1:
        raise PlanError("an optimizer step has at least one batch.")
    if request.optimizer is not None and request.optimizer not in OPTIMIZERS:
        raise PlanError(f"there is no optimizer {request.optimizer!r}; there is {', '.join(OPTIMIZERS)}.")
    for what, modules in (("checkpointed", request.checkpoint), ("offloaded", request.offload)):
        for one in modules:
            if any(other != one and f"{one}.".startswith(f"{other}.") for other in modules):
                raise PlanError(f"{one} lies within another module that is to be {what}.")


def _check_input(view: ProfileView, request: PlanRequest) -> None:
    for asked, what in ((request.sequence_length, "length"), (request.image_size, "side")):
        if asked is None:
            continue
        if asked < 1:
            raise PlanError("a sample has at least one position.")
        if getattr(input_size(view), what) is None:
            reader = "embedding" if what == "length" else "convolution"
            raise PlanError(f"the size of the recorded input is not known: no {reader} has the batch in its shapes.")


def input_ratio(view: ProfileView, request: PlanRequest) -> float:
    """The asked number of positions of a sample over the recorded one."""
    found = 1.0
    known = input_size(view) if request.sequence_length or request.image_size else None
    if known is not None and request.sequence_length and known.length:
        found *= request.sequence_length / known.length
    if known is not None and request.image_size and known.side:
        found *= (request.image_size / known.side) ** 2
    return found


def rewritten(
    view: ProfileView, program: StepProgram, request: PlanRequest, workspaces: Bound = "likely"
) -> StepProgram:
    """The step in another configuration, with the recorded batch.

    Args:
        view: of the recording.
        program: its step.
        request: the configuration, which `check` has passed.
        workspaces: of libraries in another precision; see `with_autocast`.

    Raises:
        PlanError: the parameters' sizes are not known, and the request needs them.
        UnknownModule: it names a module that made nothing.
    """
    result = program
    if request.precision is not None:
        result = with_autocast(view, program, request.precision == "fp8", workspaces)
    if request.relu is not None:
        result = (with_inplace_relu if request.relu == "inplace" else with_relu_behind_pool)(view, result)
    ratio = input_ratio(view, request)
    if ratio != 1:
        try:
            result = with_input(view, result, ratio)
        except UnknownInput as error:
            raise PlanError(str(error)) from None
    for module, count in request.layers.items():
        result = with_layers(result, module, count)
    if request.checkpoint:
        result = with_checkpoints(result, request.checkpoint, OpCalls(view))
    if (request.optimizer or request.shard) and not any(True for _ in result.parameters()):
        raise PlanError("the sizes of the parameters are not known; record with model= and optimizer=.")
    if request.optimizer is not None:
        result = with_optimizer(result, request.optimizer, _parameter_item(view))
    if request.set_to_none is not None:
        result = with_freed_gradients(result) if request.set_to_none else with_kept_gradients(result)
    if request.offload:
        result = with_offload(result, request.offload, OpCalls(view))
    if request.accumulate > 1:
        result = with_accumulation(result, request.accumulate)
    if request.shard == TENSOR_PARALLEL:
        try:
            result = with_tensor_parallel(view, result, request.gpus)
        except NoPairs as error:
            raise PlanError(str(error)) from None
    elif request.shard is not None:
        result = with_sharding(result, request.shard, request.gpus, [unit.module for unit in units(view, result)])
    return result


def _parameter_item(view: ProfileView) -> int:
    dtypes = set(view.profile.facts.parameter_dtypes)
    return 2 if dtypes and dtypes <= {"float16", "bfloat16"} else 4


def batch_ratio(view: ProfileView, request: PlanRequest) -> float:
    """The asked batch size over the recorded one."""
    recorded = view.profile.facts.batch_size
    return request.batch_size / recorded if request.batch_size is not None and recorded else 1.0
