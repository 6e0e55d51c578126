"""Forecasts of runs of torch.compile: what generated kernels, library calls and converted weights take."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.trace_builder import TraceBuilder

from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.planning import Forecast, ForecastError, forecast
from tb_dlprof_plugin.planning.compiled import HALVED, SHORTEST_NS, compiled_code
from tb_dlprof_plugin.planning.dtype_flow import flow
from tb_dlprof_plugin.planning.kernel_times import KernelTimesOf, launched
from tb_dlprof_plugin.planning.op_times import measured
from tb_dlprof_plugin.planning.target import target_of
from tb_dlprof_plugin.planning.unmeasured import SPREAD
from tb_dlprof_plugin.profile_view import ProfileView

PAIRS = Path(__file__).resolve().parents[1] / "data" / "precision_pairs"
GEMM = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_ffma_execute_kernel__5x_cublas"
GELU, LAYOUT, RAGGED = "triton_poi_fused_gelu_0", "triton_poi_fused_1", "triton_per_fused_native_layer_norm_2"
BATCH, WIDTH = 2048, 1024
LARGE, WEIGHT = [BATCH, WIDTH], [WIDTH, WIDTH]
FLOATS = ["float"] * 8


def compiled_run(
    new_trace: Callable[..., TraceBuilder], *more: str, shapes: bool = True, **options: Any
) -> ProfileView:
    """Three steps of one compiled graph in FP32: a product of a weight, generated kernels, and what ``more`` names."""
    trace = new_trace()
    trace.gpu(name="NVIDIA H100 80GB HBM3")
    for number in range(3):
        at = 5000 * number
        trace.step(number, at, 5000)
        trace.event("Torch-Compiled Region: 0/0", "cpu_op", at + 10, 600)
        trace.event("## Call CompiledFxGraph fabc ##", "user_annotation", at + 20, 500)
        launches = [
            ("aten::addmm", GEMM, 400.0, [[WIDTH], LARGE, WEIGHT, [], [], LARGE]),
            (GELU, GELU, 101.5, [LARGE, LARGE, []] if shapes else None),
            (RAGGED, RAGGED, 51.5, [LARGE, [WIDTH], LARGE, []] if shapes else None),
            (LAYOUT, LAYOUT, 21.5, [WEIGHT, WEIGHT, []] if shapes else None),
            *((name, name, 40.0, [LARGE, LARGE, []]) for name in more),
        ]
        start = at + 100.0
        for place, (op, kernel, length, dims) in enumerate(launches):
            trace.op(op, at + 30 + 20 * place, 15, dims=dims, types=dims and [*FLOATS[: len(dims) - 1], "Scalar"])
            trace.launch(kernel, at + 35 + 20 * place, start, length)
            start += length
        parameter = "torch::autograd::AccumulateGrad"
        trace.op(f"autograd::engine::evaluate_function: {parameter}", at + 700, 6, tid=2)
        trace.op(parameter, at + 701, 4, tid=2, dims=[WEIGHT], types=["float"])
    view: ProfileView = trace.view(facts=RunFacts(batch_size=BATCH), **options)
    return view


def times(view: ProfileView, precision: Any = "bf16", **asked: Any) -> dict[str, tuple[float, float]]:
    """New kernel times of the second step (us) and their spreads, by kernel."""
    target, work = target_of(view, precision, **asked), launched(view)
    found = KernelTimesOf(view, flow(view, 1), precision, measured(), target).of(work)
    names = [view.profile.strings[view.profile.kernels.name[row]] for row in view.profile.launches.kernel[work.launch]]
    return {
        name: (time / 1000, spread)
        for name, time, spread, step in zip(names, found.gpu_ns, found.spread, work.iteration, strict=True)
        if step == 1
    }


def test_generated_kernels_follow_the_bytes_of_their_arguments(new_trace: Callable[..., TraceBuilder]) -> None:
    found = times(compiled_run(new_trace))
    assert SHORTEST_NS == 1500
    # All activations: in half precision up to half of the bytes are left. The shortest kernel stays.
    assert found[GELU][0] == pytest.approx(1.5 + 100 * (1 - 0.5 * HALVED))
    # The parameters of the norm stay in FP32, and are next to nothing.
    assert found[RAGGED][0] == pytest.approx(1.5 + 50 * (1 - 0.5 * HALVED), rel=1e-3)
    # A weight in another layout is read in FP32 and written in half precision.
    assert found[LAYOUT][0] == pytest.approx(1.5 + 20 * 0.75)
    assert found[GEMM][0] < 400 / 4


def test_kernels_without_arguments_have_a_wider_interval(new_trace: Callable[..., TraceBuilder]) -> None:
    known, unknown = (times(compiled_run(new_trace, shapes=shapes))[GELU] for shapes in (True, False))
    assert 51.5 < unknown[0] < 101.5
    assert unknown[1] > known[1] > 0


def test_tf32_changes_products_alone(new_trace: Callable[..., TraceBuilder]) -> None:
    found = times(compiled_run(new_trace), "tf32")
    assert found[GELU] == (101.5, 0)
    assert found[GEMM][0] < 400


def test_kernels_grow_with_the_batch_and_those_of_weights_do_not(new_trace: Callable[..., TraceBuilder]) -> None:
    found = times(compiled_run(new_trace), "fp32", batch_size=2 * BATCH)
    assert found[GELU][0] == pytest.approx(1.5 + 2 * 100)
    assert found[LAYOUT][0] == pytest.approx(21.5)
    assert 1.5 * 400 < found[GEMM][0] < 2.1 * 400


def test_generated_kernels_change_with_the_bandwidth_of_the_gpu(new_trace: Callable[..., TraceBuilder]) -> None:
    found = times(compiled_run(new_trace), "fp32", gpu="NVIDIA H200")
    # 3.35 and 4.8 TB/s; the product is bound by arithmetic, which both do as fast.
    assert found[GELU][0] == pytest.approx(1.5 + 100 * 3.35 / 4.8, rel=0.01)
    assert found[GEMM][0] == pytest.approx(400, rel=0.03)


def test_weights_and_biases_of_products_are_converted(new_trace: Callable[..., TraceBuilder]) -> None:
    found = forecast(compiled_run(new_trace), "bf16")
    # No backward pass: the weight and the bias.
    assert found.casts == 2
    assert 0 < found.cast_ns < 20_000
    assert forecast(compiled_run(new_trace), "tf32").casts == 0


def test_generated_products_were_never_measured(new_trace: Callable[..., TraceBuilder]) -> None:
    template = "triton_tem_fused_mm_3"
    assert times(compiled_run(new_trace, template))[template] == (40.0, SPREAD)
    with pytest.raises(ForecastError, match=r"cannot be said: .* never measured \(triton_tem_fused_mm"):
        forecast(compiled_run(new_trace, *(f"triton_tem_fused_mm_{number}" for number in range(4))), "bf16")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("compile_fx.<locals>.fw_compiler_base (dynamo_timed)", "code was compiled in the recorded steps"),
        ("cudaStreamBeginCapture", "CUDA graphs were captured in the recorded steps"),
    ],
)
def test_steps_that_compile_or_capture_tell_nothing(
    new_trace: Callable[..., TraceBuilder], name: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = TraceBuilder.step

    def step(trace: TraceBuilder, number: int, start: float, dur: float) -> None:
        event(trace, number, start, dur)
        if name.startswith("cuda"):
            trace.runtime(start + 500, 2, name=name)
        else:
            trace.annotation(name, start + 500, 5)

    monkeypatch.setattr(TraceBuilder, "step", step)
    with pytest.raises(ForecastError, match=f"cannot be said: {words}"):
        forecast(compiled_run(new_trace), "bf16")


def _stored(name: str, recorded: Callable[[str], ProfileView]) -> tuple[ProfileView, dict[str, float]]:
    runs = json.loads((PAIRS / "recording.json").read_text())["runs"]
    model = name.removesuffix("/compile-fp32")
    steps = {run["precision"]: run["unprofiled_step_ms"] for run in runs if run["subject"] == model}
    return recorded(name), steps


@pytest.mark.parametrize("model", ["transformers/bert", "torchvision/resnet18"])
def test_recorded_models_have_their_bf16_step_in_the_interval(
    model: str, recorded: Callable[[str], ProfileView]
) -> None:
    view, steps = _stored(f"{model}/compile-fp32", recorded)
    found: Forecast = forecast(view, "bf16")
    truth = steps["compile-amp-bf16"]
    assert found.low_ns / 1e6 < truth < found.high_ns / 1e6
    assert found.predicted_ns / 1e6 == pytest.approx(truth, rel=0.25)
    least, most = found.speedup_interval
    assert least < steps["compile-fp32"] / truth < most
    assert found.direction == "faster"


def test_the_kernels_of_a_recorded_bert_are_generated_or_of_its_libraries(
    recorded: Callable[[str], ProfileView],
) -> None:
    view, _ = _stored("transformers/bert/compile-fp32", recorded)
    code, work = compiled_code(view), launched(view)
    own = code.generated[work.call] >= 0
    names = view.profile.strings
    assert all(
        names[view.profile.kernels.name[row]].startswith("triton_")
        for row in view.profile.launches.kernel[work.launch[own]]
    )
    role = view.profile.ops.role[view.profile.calls.op[work.call]]
    assert set(role[own].tolist()) == {Role.FORWARD, Role.BACKWARD}
    assert code.launch_ns > 10_000
    ops = np.unique(view.profile.calls.op[code.generated[work.call[own]]])
    assert min(len(code.arguments(op)) for op in ops.tolist()) >= 1
