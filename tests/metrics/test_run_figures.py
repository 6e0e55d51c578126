"""The figures of one run, on a literal recording and on recorded ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.metrics.run_figures import RunFigures, run_figures
from tb_dlprof_plugin.metrics.run_setup import run_setup
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"


def _figures(view: ProfileView) -> RunFigures:
    return run_figures(view, view.selection())


def test_the_figures_are_per_iteration(training) -> None:
    figures = _figures(training("fp32").view(facts=RunFacts(model="Net", batch_size=8, unprofiled_step_ns=800_000)))
    # A step is 1000 µs: kernels take 740 of it, the copy 20; the last one launches 5 in no op.
    more = 5_000 / 3
    assert (figures.iterations, figures.iteration_ns, figures.deviation_ns) == (3, [1_000_000] * 3, 0)
    # Without the profiler it is 800: what the step is, and samples per second.
    assert (figures.step.ns, figures.step.recorded_ns, figures.samples_per_second) == (800_000, 1_000_000, 10_000.0)
    assert figures.gpu_ns == pytest.approx(760_000 + more)
    assert figures.group_ns == {
        "copy.host_to_device": 20_000,
        "convolution.implicit_gemm": 500_000,
        "gemm": 200_000,
        "elementwise": pytest.approx(10_000 + more),
        "optimizer": 30_000,
    }
    assert figures.group_share(["convolution.implicit_gemm"]) == pytest.approx(100 * 500_000 / (760_000 + more))
    assert figures.group_share(["convolution.winograd"]) == 0.0
    assert figures.op_share("conv2d", "backward") == pytest.approx(100 * 300_000 / (760_000 + more))
    assert figures.op_share("conv2d") == pytest.approx(100 * 500_000 / (760_000 + more))
    assert (figures.tensor_core_share, figures.tensor_core_utilization) == (0.0, 0.0)


def test_without_a_gpu_what_is_of_the_gpu_is_unknown(cpu_view: ProfileView) -> None:
    figures = _figures(cpu_view)
    unknown = (figures.gpu_utilization, figures.tensor_core_share, figures.gpu_ns, figures.launches)
    assert (*unknown, figures.group_share(["gemm"]), figures.op_share("linear")) == (None,) * 6
    assert (figures.samples_per_second, figures.peak_memory_bytes, figures.peak_memory_of) == (None, None, "")
    assert (figures.setup.model, figures.setup.batch_size, figures.setup.workers) == (None, None, None)


@pytest.mark.parametrize("run", sorted(RECORDED.glob("*/*/")), ids=lambda run: "/".join(run.parts[-2:]))
def test_groups_and_op_types_of_recorded_runs_account_for_the_gpu_time(run: Path) -> None:
    view = recorded_view(run)
    figures = _figures(view)
    assert figures.gpu_ns
    assert sum(figures.group_ns.values()) == pytest.approx(figures.gpu_ns)
    assert sum(op.gpu_ns for op in figures.op_types) <= figures.gpu_ns * (1 + 1e-9)
    assert figures.flops
    assert "convolution.other" not in figures.group_ns
    # The directory says how it was recorded; LeNet's products are too small for TF32 to pay.
    expected = {"lenet/tf32": "tf32-partly"}.get("/".join(run.parts[-2:]), run.name)
    assert figures.setup.precision == expected


def test_a_run_that_shows_compiled_code_is_compiled_whatever_the_hook_saw(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.op("Torch-Compiled Region: 0/0", 5, 50)
    profile = trace.profile(facts=RunFacts(compiled=False))
    assert run_setup(ProfileView(profile)).compiled is True
    plain = new_trace()
    plain.step(0, 0, 100)
    plain.op("aten::add", 5, 50)
    assert run_setup(plain.view()).compiled is None
    assert run_setup(ProfileView(replace(plain.profile(), facts=RunFacts(compiled=False)))).compiled is False
