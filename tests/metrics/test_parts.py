from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.metrics.iterations import step_totals
from tb_dlprof_plugin.metrics.step_phases import PARTS, parts_by_iteration, recorded_parts, step_parts
from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView

RECORDED = Path(__file__).parents[2] / "demo" / "recorded"


def _parts(view: ProfileView) -> dict[str, int]:
    return {part.name: ns // 1000 for part, ns in recorded_parts(view, view.selection()).items() if ns is not None}


def test_a_step_on_the_cpu_by_hand(new_trace) -> None:
    # GIVEN a step of 100 us: 10 loading, 20 forward, 30 backward on its own thread, 15 optimizer, 25 between them
    trace = new_trace()
    trace.step(1, 0, 100)
    trace.loader(0, 10)
    trace.op("aten::stack", 2, 5)
    trace.module("fc", 12, 20)
    trace.op("aten::linear", 12, 20, seq=1)
    trace.backward("AddmmBackward0", 40, 30, 1)
    trace.optimizer(80, 15)
    trace.op("aten::add_", 81, 5)
    assert _parts(trace.view()) == {"FORWARD": 20, "BACKWARD": 30, "OPTIMIZER": 15, "DATALOADER": 10, "OTHER": 25}


def test_the_gpu_goes_before_the_cpu(new_trace) -> None:
    # GIVEN a forward kernel that runs while the CPU is in the backward pass already
    trace = new_trace()
    trace.gpu()
    trace.step(1, 0, 100)
    trace.op("aten::linear", 0, 10, seq=1)
    trace.launch("forward kernel", 2, 20, 40)
    trace.backward("AddmmBackward0", 12, 18, 1)
    trace.launch("backward kernel", 15, 60, 30, tid=2)
    parts = _parts(trace.view())
    # THEN 20 to 60 is forward, 60 to 90 backward; before them the CPU decides: 0 to 10 and 12 to 20
    assert (parts["FORWARD"], parts["BACKWARD"]) == (10 + 40, 8 + 30)
    assert sum(parts.values()) == 100


def test_a_backward_pass_that_nothing_ties_to_its_forward_leaves_the_forward_unknown(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 100)
    trace.op("aten::linear", 0, 20)
    trace.op("autograd::engine::evaluate_function: AddmmBackward0", 40, 30, tid=2)
    view = trace.view()
    parts = step_parts(view, view.selection())
    assert parts[Role.FORWARD] is None
    assert (parts[Role.BACKWARD], parts[Role.OTHER]) == (30_000, 70_000)


@pytest.mark.parametrize("run", sorted(RECORDED.glob("*/*/")), ids=lambda run: "-".join(run.parts[-2:]))
def test_the_parts_of_a_recorded_run_sum_to_each_iteration(run: Path) -> None:
    view = recorded_view(run)
    times = parts_by_iteration(view)
    assert (times >= 0).all()
    durations = view.profile.iterations.duration_ns
    assert np.array_equal(times.sum(axis=2), np.repeat(durations[:, None], times.shape[1], axis=1))
    selection = view.selection()
    assert sum(value or 0 for value in recorded_parts(view, selection).values()) == int(durations.sum())
    assert sum(value or 0 for value in step_parts(view, selection).values()) == step_totals(view, selection).wall_ns
    # A training step is mostly forward and backward.
    assert times[:, :, [PARTS.index(Role.FORWARD), PARTS.index(Role.BACKWARD)]].sum() > 0.3 * durations.sum()


def test_the_recorder_is_in_no_part(training) -> None:
    # GIVEN steps that take 70 us less without the profiler, and a GPU that works for 760 of their 1000 us
    view = training().view(facts=RunFacts(unprofiled_before_ns=[930_000] * 4))
    before, after = recorded_parts(view, view.selection()), step_parts(view, view.selection())
    # THEN loading and what the GPU works on stay; half of what the CPU works on is the recorder's
    assert sum(value or 0 for value in before.values()) - sum(value or 0 for value in after.values()) == 3 * 70_000
    assert after[Role.DATALOADER] == before[Role.DATALOADER]
    assert all((after[part] or 0) <= (before[part] or 0) for part in PARTS)
