"""What modules keep on the CPU: against what `torch.autograd.graph.save_on_cpu` around every block of four models was
measured to take on an H200 (`tests/data/memory_plan/inputs_and_splits_recorded`)."""

from __future__ import annotations

import functools
import json
from collections import Counter
from typing import Any

import pytest

from lab.memory_plan.compare import blocks_of
from lab.memory_plan.compare_inputs_and_splits import planner_of
from tb_dlprof_plugin.model.plan_request import PlanRequest
from tb_dlprof_plugin.planning.memory.op_calls import OpCalls
from tb_dlprof_plugin.planning.memory.plan import MemoryPlanner
from tb_dlprof_plugin.planning.memory.replay import replay
from tb_dlprof_plugin.planning.memory.rewrite_saved_tensors import with_offload
from tb_dlprof_plugin.planning.memory.step_program import StepProgram, places
from tests.planning.memory.test_changes import INNER, LAYERS, OUTPUT, WEIGHT, peak, three_layers
from tests.support.recorded_runs import ROOT

RECORDED = ROOT / "tests" / "data" / "memory_plan" / "inputs_and_splits_recorded"
MODELS = ("wave", "dense", "llama", "resnet")
known = functools.cache(lambda model: planner_of(RECORDED, model))


def measured(model: str) -> dict[str, Any]:
    rows = json.loads((RECORDED / "inputs_and_splits.json").read_text())["rows"]
    (row,) = (row for row in rows if row["model"] == model and row["plan"] == {"offload": "blocks"})
    return row


def offloaded(planner: MemoryPlanner, **more: Any) -> PlanRequest:
    return PlanRequest(offload=tuple(blocks_of(planner)), **more)


def left(program: StepProgram) -> int:
    """Bytes that a step asks for and the next one frees."""
    return sum(program.sizes[slot] for slot in places(program).carried)


@pytest.mark.parametrize("model", MODELS)
def test_offloaded_blocks_take_what_was_measured(model: str) -> None:
    truth, found = measured(model), known(model).plan(offloaded(known(model)))
    assert found.peak_allocated.value == pytest.approx(truth["peak_allocated"], rel=0.002)
    assert found.peak_reserved.value == pytest.approx(truth["peak_reserved"], rel=0.003)
    for figure in ("peak_allocated", "peak_reserved"):
        interval = getattr(found, figure)
        assert interval.low <= truth[figure] <= interval.high


@pytest.mark.parametrize("more", [{}, {"precision": "bf16"}, {"accumulate": 2}, {"layers": {"blocks.5": 2}}])
@pytest.mark.parametrize("model", ["llama", "resnet"])
def test_what_comes_back_goes_again(model: str, more: dict[str, Any]) -> None:
    """Also where tensors have another size or a module is there more than once."""
    changed = known(model).changed(offloaded(known(model), **more))
    assert set(Counter(changed.events).values()) == {1}
    assert {-event for event in changed.events if event < 0} <= {event for event in changed.events if event > 0}
    without = known(model).changed(PlanRequest(**more))
    assert left(changed) == left(without)
    assert replay(changed).peak_allocated < 0.8 * replay(without).peak_allocated


def test_one_offloaded_block_leaves_the_others_as_they_are() -> None:
    planner = known("resnet")
    own, all_of_them = (
        replay(with_offload(planner.program, blocks, OpCalls(planner.view))).peak_allocated
        for blocks in (["blocks.3"], blocks_of(planner))
    )
    assert all_of_them < own < planner.recorded.peak_allocated


def test_without_shapes_each_tensor_comes_back_where_it_is_freed() -> None:
    """And nothing else, such as parameters, whose shapes the recording does not have then."""
    changed = with_offload(three_layers(), ["layers.0", "layers.1"], OpCalls())
    assert sum(changed.sizes) == sum(three_layers().sizes) + 2 * INNER + OUTPUT
    # At the peak, in the backward pass of the second: its own, the gradients of its input and output, the last result.
    assert peak(changed) == INNER + 4 * OUTPUT + (2 * LAYERS + 2) * WEIGHT
