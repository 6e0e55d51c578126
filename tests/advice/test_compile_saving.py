"""What torch.compile would save: of a recorded eager run against the same model compiled, and where it is not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.recorded_runs import recorded_view
from support.trace_builder import TraceBuilder

from tb_dlprof_plugin.advice.compile_saving import compile_saving
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.estimate import step_estimate

HOOK = Path(__file__).parents[1] / "data" / "compiled" / "hook"
GEMM, ADD = (
    "sm90_xmma_gemm_bf16",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add>",
)


def _context(view: ProfileView) -> RuleContext:
    return RuleContext(view, view.selection())


def test_the_compiled_run_lies_in_the_interval_that_the_eager_run_states():
    eager, compiled = (_context(recorded_view(HOOK / name)) for name in ("gpt.eager", "gpt.default"))
    step = step_estimate(compiled.view, compiled.selection).ns
    before = step_estimate(eager.view, eager.selection).ns
    found = compile_saving(eager, graphs=False)
    assert not isinstance(found, str)
    assert before - found.high_ns <= step <= before - found.low_ns
    # Replays leave less of the launches than generated code does, and never make the step longer.
    replayed = compile_saving(eager, graphs=True)
    assert not isinstance(replayed, str)
    assert replayed.low_ns > 0 > found.low_ns
    assert replayed.expected_ns > found.expected_ns


def test_of_code_that_is_compiled_already_nothing_is_said():
    assert "run already" in str(compile_saving(_context(recorded_view(HOOK / "gpt.default")), graphs=True))


def _steps(folder: Path, launches: tuple[int, int], gpu: bool = True) -> RuleContext:
    trace: Any = TraceBuilder(folder)
    if gpu:
        trace.gpu()
    for step, number in enumerate(launches):
        at = 2000 * step
        trace.step(step, at, 1900)
        for launch in range(number):
            trace.op("aten::add", at + 20 + 50 * launch, 20)
            if gpu:
                trace.launch(ADD if launch % 2 else GEMM, at + 25 + 50 * launch, at + 60 + 50 * launch, 40)
    return _context(trace.view())


@pytest.mark.parametrize("graphs", [False, True])
def test_steps_that_launch_different_numbers_of_kernels_have_no_price(tmp_path, graphs):
    assert "different numbers" in str(compile_saving(_steps(tmp_path, (20, 24)), graphs))
    assert not isinstance(compile_saving(_steps(tmp_path, (20, 20)), graphs), str)


def test_without_a_gpu_nothing_is_said(tmp_path):
    assert compile_saving(_steps(tmp_path, (5, 5), gpu=False), graphs=False) == "The run used no GPU."
