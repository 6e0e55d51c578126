"""What a plan is asked for, and the rewriting of a step that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tb_dlprof_plugin.model.frameworks import PYTORCH, recording_of
from tb_dlprof_plugin.planning.memory.change_checkpoints import with_checkpoints
from tb_dlprof_plugin.planning.memory.change_gradients import (
    with_accumulation,
    with_freed_gradients,
    with_kept_gradients,
)
from tb_dlprof_plugin.planning.memory.change_layers import with_layers
from tb_dlprof_plugin.planning.memory.change_optimizer import OPTIMIZERS, with_optimizer
from tb_dlprof_plugin.planning.memory.change_precision import with_autocast
from tb_dlprof_plugin.planning.memory.step_program import StepProgram
from tb_dlprof_plugin.planning.target import ForecastError, target_of
from tb_dlprof_plugin.profile_view import ProfileView


class PlanError(ValueError):
    """The question cannot be answered for this run; the message says why and what to do."""


@dataclass(frozen=True)
class PlanRequest:
    """A configuration; what is not given is as recorded.

    Attributes:
        batch_size: samples of a forward pass.
        precision: "fp16" or "bf16", by autocast.
        optimizer: one of `change_optimizer.OPTIMIZERS`.
        checkpoint: paths of modules under activation checkpointing.
        layers: number of additional modules like one, by its path.
        set_to_none: of `zero_grad`.
        accumulate: forward and backward passes of an optimizer step.
        expandable_segments: of the allocator.
        gpu: in words of its name.
        memory_bytes: of a GPU that is not named.
    """

    batch_size: int | None = None
    precision: Literal["fp16", "bf16"] | None = None
    optimizer: str | None = None
    checkpoint: tuple[str, ...] = ()
    layers: Mapping[str, int] = field(default_factory=dict)
    set_to_none: bool | None = None
    accumulate: int = 1
    expandable_segments: bool | None = None
    gpu: str | None = None
    memory_bytes: int | None = None

    def changes(self, view: ProfileView) -> list[str]:
        """Kinds of change, as `uncertainty.SPREADS` names them."""
        asked = {
            "batch_size": self.batch_size not in (None, view.profile.facts.batch_size),
            "precision": self.precision is not None,
            "optimizer": self.optimizer is not None,
            "checkpoint": bool(self.checkpoint),
            "layers": any(self.layers.values()),
            "gradients": self.set_to_none is not None or self.accumulate > 1,
            "allocator": self.expandable_segments is not None,
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
            target_of(view, request.precision)
        except ForecastError as error:
            raise PlanError(str(error)) from None
    if request.accumulate < 1:
        raise PlanError("an optimizer step has at least one batch.")
    if request.optimizer is not None and request.optimizer not in OPTIMIZERS:
        raise PlanError(f"there is no optimizer {request.optimizer!r}; there is {', '.join(OPTIMIZERS)}.")
    for one in request.checkpoint:
        if any(other != one and f"{one}.".startswith(f"{other}.") for other in request.checkpoint):
            raise PlanError(f"{one} lies within another module that is to be checkpointed.")


def rewritten(view: ProfileView, program: StepProgram, request: PlanRequest) -> StepProgram:
    """The step in another configuration, with the recorded batch.

    Args:
        view: of the recording.
        program: its step.
        request: the configuration, which `check` has passed.

    Raises:
        PlanError: the parameters' sizes are not known, and the request needs them.
        UnknownModule: it names a module that made nothing.
    """
    result = with_autocast(view, program) if request.precision is not None else program
    for module, count in request.layers.items():
        result = with_layers(result, module, count)
    if request.checkpoint:
        result = with_checkpoints(result, request.checkpoint)
    if request.optimizer is not None:
        if not any(True for _ in result.parameters()):
            raise PlanError("the sizes of the parameters are not known; record with model= and optimizer=.")
        result = with_optimizer(result, request.optimizer)
    if request.set_to_none is not None:
        result = with_freed_gradients(result) if request.set_to_none else with_kept_gradients(result)
    if request.accumulate > 1:
        result = with_accumulation(result, request.accumulate)
    return result


def batch_ratio(view: ProfileView, request: PlanRequest) -> float:
    """The asked batch size over the recorded one."""
    recorded = view.profile.facts.batch_size
    return request.batch_size / recorded if request.batch_size is not None and recorded else 1.0
