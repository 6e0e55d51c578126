"""One rank of two: against models in torch that are built as the rank has them, on the CPU."""

from __future__ import annotations

import functools

import pytest
import torch

from lab.memory_plan.compare_inputs_and_splits import planner_of
from lab.memory_plan.inputs_and_splits_subjects import halved
from lab.memory_plan.subjects import SUBJECTS, Subject
from tb_dlprof_plugin.model.plan_request import PlanError, PlanRequest
from tb_dlprof_plugin.planning.memory.replay import replay
from tb_dlprof_plugin.planning.memory.rewrite_batch import with_batch
from tb_dlprof_plugin.planning.memory.rewrite_gpus import exchanged, pairs, with_tensor_parallel
from tb_dlprof_plugin.planning.memory.step_program import HeldKind, SlotKind, StepProgram, places
from tests.support.recorded_runs import ROOT

known = functools.cache(
    lambda model: planner_of(ROOT / "tests" / "data" / "memory_plan" / "inputs_and_splits_recorded", model)
)


def kept_by_torch(subject: Subject, batch: int) -> tuple[int, int]:
    """Bytes that a forward pass keeps for the backward pass, of storages that are no parameter; and parameters."""
    model = subject.build(subject.layers).train()
    own = {one.untyped_storage().data_ptr() for one in (*model.parameters(), *model.buffers())}
    kept: dict[int, torch.Tensor] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.untyped_storage().data_ptr() not in own:
            kept.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = subject.loss(model, *subject.batch(batch))
    found = sum(one.untyped_storage().nbytes() for one in kept.values())
    assert loss.requires_grad
    return found, sum(4 * one.numel() for one in model.parameters())


def kept_by_plan(program: StepProgram) -> tuple[int, int]:
    where = places(program)
    kept = zip(program.slots, where.made, where.freed, strict=True)
    return (
        sum(one.bytes for one, made, freed in kept if 0 <= made < program.backward_at <= freed),
        program.held_bytes(HeldKind.PARAMETER),
    )


@pytest.mark.parametrize(("model", "batch"), [("gpt", 1), ("vit", 4), ("perceptron", 64)])
def test_a_rank_of_two_keeps_what_half_a_model_in_torch_keeps(model: str, batch: int) -> None:
    subject = next(one for one in SUBJECTS if one.name == model)
    rank = halved(subject)
    assert rank is not None
    program = with_batch(known(model).program, batch / subject.batch_size)
    found, truth = kept_by_plan(with_tensor_parallel(known(model).view, program, 2)), kept_by_torch(rank, batch)
    assert found[1] == truth[1]
    assert found[0] == pytest.approx(truth[0], rel=0.003)
    assert found[0] < 0.9 * kept_by_plan(program)[0]


def test_states_and_gradients_are_cut_with_their_parameters() -> None:
    view, program = known("gpt").view, known("gpt").program
    cut = with_tensor_parallel(view, program, 4)
    parameters, states = cut.held_bytes(HeldKind.PARAMETER), cut.held_bytes(HeldKind.OPTIMIZER_STATE)
    gradients = sum(one.bytes for one in cut.slots if one.kind == SlotKind.GRADIENT)
    assert gradients == parameters
    # AdamW has two of each parameter.
    assert states == pytest.approx(2 * parameters, rel=1e-4)


def test_more_ranks_take_less_and_one_takes_what_was_recorded() -> None:
    view, program = known("gpt").view, known("gpt").program
    peaks = [replay(with_tensor_parallel(view, program, ranks)).peak_allocated for ranks in (1, 2, 4, 8)]
    assert peaks[0] == replay(program).peak_allocated
    assert peaks == sorted(peaks, reverse=True)


def test_layers_that_read_one_tensor_are_cut_alike() -> None:
    attention, mlp = pairs(known("llama").view, known("llama").program)[:2]
    assert [one.module.rpartition(".")[2] for one in (*attention.columns, attention.row)] == ["q", "k", "v", "out"]
    assert [one.module.rpartition(".")[2] for one in (*mlp.columns, mlp.row)] == ["gate", "up", "down"]
    # Of 16 samples of 256 tokens, 512 wide in FP32: two for each of 12 pairs.
    assert exchanged(known("llama").view, known("llama").program) == [16 * 256 * 512 * 4] * 24


def test_a_model_without_pairs_is_refused() -> None:
    with pytest.raises(PlanError, match="no two linear layers"):
        known("resnet").plan(PlanRequest(shard="tp", gpus=2))


def test_the_plan_says_what_is_summed_over_gpus() -> None:
    found = known("gpt").plan(PlanRequest(shard="tp", gpus=2))
    assert any("16 pairs" in one and "32 all-reduces a step of 268 MB" in one for one in found.assumptions)
