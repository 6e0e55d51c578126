"""Whole forecasts: of the demo's six models, held to what their runs in the other precisions took."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import tb_dlprof_plugin
from tb_dlprof_plugin.metrics.iterations import step_totals
from tb_dlprof_plugin.planning import PRECISIONS, Forecast, forecast
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.estimate import step_estimate
from tb_dlprof_plugin.store.logdir import read_profiles

MODELS = ("alexnet", "custom", "lenet", "mlp", "resnet50", "vgg16")
RUNS = {"fp32": "fp32", "tf32": "tf32", "fp16": "amp-fp16", "bf16": "amp-bf16"}
SEVERAL_STREAMS = ("resnet50", "vgg16", "alexnet")
A100 = "NVIDIA A100-SXM4-80GB"
PACED_BY_THE_CPU = ("lenet", "mlp")
FFMA_GEMM = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_ffma_execute_kernel__5x_cublas"
Predict = Callable[..., Forecast]


@pytest.fixture(scope="module")
def predict(recorded: Callable[[str], ProfileView]) -> Predict:
    """Forecasts of the demo's FP32 runs, each made once."""
    known: dict[tuple[Any, ...], Forecast] = {}

    def of(model: str, precision: str, **asked: Any) -> Forecast:
        key = (model, precision, *asked.items())
        if key not in known:
            known[key] = forecast(recorded(f"{model}/fp32"), precision, **asked)
        return known[key]

    return of


@pytest.fixture(scope="module")
def unprofiled_ms(request: pytest.FixtureRequest) -> dict[tuple[str, str], float]:
    """Step times without the profiler: of the demo's runs as the hook or the script timed them, and of the pairs."""
    root = request.config.rootpath
    demo = json.loads((root / "demo" / "recorded" / "recording.json").read_text())["runs"]
    timed = {(run["model"], run["precision"]): run["result"]["unprofiled_step_ms"] for run in demo}
    for model, precision in timed:
        (stored,) = read_profiles(root / "demo" / "recorded" / model / precision)
        if stored.profile.facts.unprofiled_after_ns:
            # Within a second of what was recorded; what the script timed earlier differs where the CPU sets the pace.
            view = ProfileView(stored.profile)
            timed[model, precision] = step_estimate(view, view.selection()).ns / 1e6
    pairs = json.loads((root / "tests" / "data" / "precision_pairs" / "recording.json").read_text())["runs"]
    return timed | {(run["subject"], run["precision"]): run["unprofiled_step_ms"] for run in pairs}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("model", MODELS)
def test_the_forecast_lies_in_its_interval(predict: Predict, model: str, precision: str) -> None:
    found = predict(model, precision)
    assert 0 < found.low_ns <= found.predicted_ns <= found.high_ns
    assert found.speedup == found.base_ns / found.predicted_ns
    if precision != "fp32":
        assert found.low_ns < found.high_ns


@pytest.mark.parametrize("model", MODELS)
def test_in_fp32_it_is_the_run_itself(
    predict: Predict, unprofiled_ms: dict[tuple[str, str], float], model: str
) -> None:
    found = predict(model, "fp32")
    assert found.predicted_ns == pytest.approx(found.base_ns, rel=1e-3)
    assert found.gpu_ns == pytest.approx(found.base_gpu_ns, rel=1e-6)
    assert found.base_ns / 1e6 == pytest.approx(unprofiled_ms[model, "fp32"], rel=0.1)
    assert (found.casts, found.cast_ns, found.scaler_ns) == (0, 0, 0)
    assert {op.precision for op in found.ops} == {""}


@pytest.mark.parametrize("precision", ["tf32", "fp16", "bf16"])
@pytest.mark.parametrize("model", MODELS)
def test_it_comes_near_to_what_the_run_in_that_precision_took(
    predict: Predict, unprofiled_ms: dict[tuple[str, str], float], model: str, precision: str
) -> None:
    found, truth = predict(model, precision), unprofiled_ms[model, RUNS[precision]]
    if model == "alexnet" and precision != "tf32":
        # The workers of its DataLoader could not keep up with such a step, which a run in FP32 does not tell.
        assert found.low_ns <= 1e6 * truth
        return
    # Steps of a millisecond or two that the CPU paces differ by a fifth from one second to the next.
    assert abs(found.predicted_ns / 1e6 / truth - 1) < (0.35 if model in PACED_BY_THE_CPU else 0.2)
    # Right about faster or slower, where they differ by more than such runs do.
    before = unprofiled_ms[model, "fp32"]
    if abs(before / truth - 1) > (0.3 if model in PACED_BY_THE_CPU else 0.1):
        assert (found.speedup > 1) == (before > truth)


def test_most_intervals_hold_the_truth(predict: Predict, unprofiled_ms: dict[tuple[str, str], float]) -> None:
    held = [
        found.low_ns <= 1e6 * unprofiled_ms[model, RUNS[precision]] <= found.high_ns
        for model in MODELS
        for precision in ("tf32", "fp16", "bf16")
        for found in [predict(model, precision)]
    ]
    assert sum(held) >= 0.9 * len(held)


@pytest.mark.parametrize("model", PACED_BY_THE_CPU)
def test_small_models_get_slower_by_the_casts(predict: Predict, model: str) -> None:
    for precision in ("fp16", "bf16"):
        found = predict(model, precision)
        assert found.limited_by == "cpu"
        assert found.speedup < 0.95
        # Their kernels do not: the CPU has more to launch.
        assert found.host_ns > 1.2 * predict(model, "fp32").host_ns
    assert predict(model, "tf32").speedup == pytest.approx(1, abs=0.01)


def test_resnet50_is_slower_in_bf16_than_in_fp16(predict: Predict) -> None:
    # cuDNN's BF16 convolutions of images with channels first convert the layout more often.
    assert predict("resnet50", "bf16").predicted_ns > 1.1 * predict("resnet50", "fp16").predicted_ns


@pytest.mark.parametrize("model", [model for model in MODELS if model not in PACED_BY_THE_CPU])
def test_large_models_get_faster_and_the_gpu_sets_their_pace(predict: Predict, model: str) -> None:
    for precision in ("tf32", "fp16", "bf16"):
        found = predict(model, precision)
        assert found.speedup > 1.9
        if model != "alexnet":
            # AlexNet's step is so short then that loading takes a part of it.
            assert found.limited_by == "gpu"
            assert found.gpu_ns >= 0.85 * found.predicted_ns


@pytest.mark.parametrize(
    ("model", "precision"), [("lenet", "fp32"), ("lenet", "bf16"), ("custom", "bf16"), ("vgg16", "fp16")]
)
def test_a_larger_batch_takes_longer(
    predict: Predict, recorded: Callable[[str], ProfileView], model: str, precision: str
) -> None:
    size = recorded(f"{model}/fp32").profile.facts.batch_size
    assert size
    same, twice, half = (predict(model, precision, batch_size=n) for n in (size, 2 * size, size // 2))
    assert same.predicted_ns == predict(model, precision).predicted_ns
    assert half.gpu_ns < same.gpu_ns < twice.gpu_ns <= 2 * same.gpu_ns
    assert half.predicted_ns <= same.predicted_ns <= twice.predicted_ns
    if model not in PACED_BY_THE_CPU:
        assert twice.predicted_ns > 1.7 * same.predicted_ns


def test_the_further_the_batch_size_the_wider_the_interval(
    predict: Predict, recorded: Callable[[str], ProfileView]
) -> None:
    size = recorded("vgg16/fp32").profile.facts.batch_size
    assert size
    for larger in (True, False):
        found = [predict("vgg16", "fp32", batch_size=size * 2**n if larger else size // 2**n) for n in (1, 2, 3)]
        widths = [one.high_ns / one.low_ns for one in found]
        assert 1.05 < widths[0] < widths[1] < widths[2] < 1.5


def test_a_slower_gpu_takes_longer_with_a_wider_interval(predict: Predict) -> None:
    for precision in ("fp32", "bf16"):
        here, there = predict("resnet50", precision), predict("resnet50", precision, gpu=A100)
        assert there.predicted_ns > 1.5 * here.predicted_ns
        assert there.high_ns / there.low_ns > 1.2 * here.high_ns / here.low_ns
        assert there.base_ns == here.base_ns


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("model", MODELS)
def test_ops_casts_and_scaler_sum_to_the_gpus_work(predict: Predict, model: str, precision: str) -> None:
    found = predict(model, precision)
    ops, casts = sum(op.predicted_ns for op in found.ops), sum(op.casts_ns for op in found.ops)
    assert casts == pytest.approx(found.cast_ns)
    before, after = sum(op.measured_ns for op in found.ops), ops + casts + found.scaler_ns
    # cuDNN's FP32 convolutions of large images run on several streams side by side.
    beside = 0.9 if model in SEVERAL_STREAMS else 0.995
    assert beside * before < found.base_gpu_ns < 1.005 * before
    assert beside * after < found.gpu_ns < 1.005 * after
    assert (found.scaler_ns > 0) == (precision == "fp16")
    assert (found.casts > 0) == (precision in ("fp16", "bf16"))


def test_ops_come_by_time_and_say_whether_they_change(predict: Predict, recorded: Callable[[str], ProfileView]) -> None:
    found = predict("custom", "bf16")
    view = recorded("custom/fp32")
    times = [op.measured_ns + op.casts_ns for op in found.ops]
    assert times == sorted(times, reverse=True)
    assert {op.precision for op in found.ops} == {"", "bf16"}
    for op in found.ops:
        if not op.precision:
            assert op.predicted_ns == op.measured_ns
    strings, groups = view.profile.strings, view.groups
    by_type = {strings[groups.op_type[op.group]]: op.precision for op in found.ops}
    assert (by_type["linear"], by_type["conv2d"], by_type["layer_norm"]) == ("bf16", "bf16", "")


def test_what_was_recorded_stays_beside_it(predict: Predict, recorded: Callable[[str], ProfileView]) -> None:
    view = recorded("lenet/fp32")
    found = predict("lenet", "fp16")
    assert found.measured_ns == step_totals(view, view.selection()).recorded_ns
    # The profiler made the step longer.
    assert found.base_ns < 0.75 * found.measured_ns


def test_it_is_public_and_repeats_itself(recorded: Callable[[str], ProfileView], predict: Predict) -> None:
    assert tb_dlprof_plugin.predict is forecast
    assert tb_dlprof_plugin.predict(recorded("mlp/fp32"), "fp16") == predict("mlp", "fp16")


@pytest.mark.parametrize(
    ("loader_us", "kernel_us", "limit"), [(900, 50, "dataloader"), (100, 50, "cpu"), (100, 5000, "gpu")]
)
def test_what_takes_nearly_all_of_a_step_limits_it(
    new_trace: Callable[..., Any], loader_us: float, kernel_us: float, limit: str
) -> None:
    trace = new_trace()
    trace.gpu()
    for step in range(3):
        at = 1000 * step
        trace.step(step, at, 1000)
        trace.loader(at, loader_us)
        trace.op("aten::mm", at + 910, 20, dims=[[64, 64], [64, 64]], types=["float"] * 2)
        trace.launch(FFMA_GEMM, at + 915, at + 920 + max(kernel_us - 1000, 0) * step, kernel_us)
    assert forecast(trace.view(), "fp32").limited_by == limit


def test_cpu_and_gpu_that_take_turns_limit_both(training: Callable[..., Any]) -> None:
    # The loss is read in each step: 760 of 1000 µs are kernels, and the CPU waits for most of them.
    assert forecast(training("fp32").view(), "fp32").limited_by == "both"


@pytest.mark.parametrize(
    ("run", "error"),
    [
        ("vgg16", 0.1), ("resnet50", 0.1), ("custom", 0.1), ("torchvision/resnet18", 0.1),
        ("torchvision/vit_b_16", 0.1),
        # The CPU sets its pace, in TF32 already.
        ("torchvision/mobilenet_v3_large", 0.2),
    ],
)  # fmt: skip
def test_from_a_run_in_tf32_half_precision_gains_what_it_gained(
    recorded: Callable[[str], ProfileView], unprofiled_ms: dict[tuple[str, str], float], run: str, error: float
) -> None:
    for precision in ("fp16", "bf16"):
        found = forecast(recorded(f"{run}/tf32"), precision)
        gained = unprofiled_ms[run, "tf32"] / unprofiled_ms[run, RUNS[precision]]
        assert found.speedup == pytest.approx(gained, rel=error)
