"""New times of a literal training's kernels, with measured ops that all have one ratio."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tb_dlprof_plugin.metrics.flops import matrix_calls
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.planning.dtype_flow import flow
from tb_dlprof_plugin.planning.features import other_features
from tb_dlprof_plugin.planning.kernel_times import (
    SHORTEST_KERNEL_NS,
    ForecastKernelTimes,
    KernelTimesOf,
    launched,
    recorded_ns,
)
from tb_dlprof_plugin.planning.op_times import GaussianProcess, OpTimes, RatioTable, measured
from tb_dlprof_plugin.planning.target import target_of
from tb_dlprof_plugin.planning.units import units_of
from tb_dlprof_plugin.planning.unmeasured import SPREAD
from tb_dlprof_plugin.profile_view import ProfileView

SHORTEST_US = SHORTEST_KERNEL_NS / 1000
A100 = "NVIDIA A100-SXM4-80GB"
NHWC = "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize128x64x8_stage3_ffma_kernel__5x_cudnn"
KINDS = {
    "convolution first fprop": 11, "convolution first bprop of weights": 11, "product": 9, "mul fprop": 3,
    "mul bprop": 3,
}  # fmt: skip
"""Numbers of features of the ops that the training has."""
STEP = ["copy", "conv", "fc", "loss", "fc backward", "conv backward", "optimizer"]
RECORDED_US = [20, 200, 100, 10, 100, 300, 30]


def op_times(ratio: float, spread: float = 0.0, without: str = "") -> OpTimes:
    """Measured ops that all take ``ratio`` of their FP32 time, and the next one by so much more or less."""
    tables = {
        (kind, precision): table(ratio, size, spread)
        for kind, size in KINDS.items()
        if kind != without
        for precision in ("tf32", "fp16", "bf16")
    }
    return OpTimes(defaultdict(lambda: frozenset({"NVIDIA H200"})), tables)


def table(ratio: float, features: int, spread: float = 0.0) -> RatioTable:
    """All variance is that of the single op: none tells anything of another."""
    noise = GaussianProcess((1.0,) * features, 0.0, 0.0, max(spread, 1e-9) ** 2)
    return RatioTable(np.zeros((8, features)), np.log(np.full(8, ratio)), noise)


def times(view: ProfileView, precision: Any, known: OpTimes, **asked: Any) -> ForecastKernelTimes:
    work = launched(view)
    types = flow(view, len(view.profile.iterations) - 1)
    return KernelTimesOf(view, types, precision, known, target_of(view, precision, **asked)).of(work)


def first_step(found: ForecastKernelTimes) -> dict[str, float]:
    """New times (µs) by what the training's kernels are; the wait at the end is none of them."""
    return {name: round(float(ns) / 1000, 6) for name, ns in zip(STEP, found.gpu_ns[:7], strict=True)}


RECORDED = dict(zip(STEP, RECORDED_US, strict=True))


@pytest.fixture(scope="module")
def view(trained: Callable[..., ProfileView]) -> ProfileView:
    return trained(facts=RunFacts(batch_size=8))


def test_in_fp32_nothing_changes(view: ProfileView) -> None:
    found = times(view, "fp32", op_times(0.5))
    assert first_step(found) == RECORDED
    assert not found.changed.any()
    assert not found.spread.any()


@pytest.mark.parametrize("precision", ["tf32", "fp16", "bf16"])
def test_matrix_routines_take_the_factor_of_the_measured_ones(view: ProfileView, precision: str) -> None:
    found = times(view, precision, op_times(0.5))
    new = {"conv": 100, "fc": 50, "fc backward": 50, "conv backward": 150}
    assert first_step(found) == RECORDED | new
    assert dict(zip(STEP, found.changed[:7].tolist(), strict=True)) == {name: name in new for name in STEP}


def test_the_spread_of_the_measured_ops_is_that_of_the_new_times(view: ProfileView) -> None:
    found = times(view, "bf16", op_times(0.5, spread=0.25))
    assert found.spread[:7] == pytest.approx([0, 0.25, 0.25, 0, 0.25, 0.25, 0])


def test_no_kernel_gets_shorter_than_the_shortest(view: ProfileView) -> None:
    shortest = dict.fromkeys(("conv", "fc", "fc backward", "conv backward"), SHORTEST_KERNEL_NS / 1000)
    assert first_step(times(view, "fp16", op_times(0.001))) == RECORDED | shortest


def test_a_matrix_routine_that_was_not_measured_keeps_its_time_with_much_doubt(view: ProfileView) -> None:
    found = times(view, "fp16", op_times(0.5, without="product"))
    assert first_step(found) == RECORDED | {"conv": 100, "conv backward": 150}
    assert found.spread[2] == found.spread[4] == SPREAD
    assert set(found.unmeasured) == {"addmm", "mm (backward)"}


def grown(us: float, factor: float = 2.0) -> float:
    return SHORTEST_US + (us - SHORTEST_US) * factor


FACTORS = {
    "optimizer": 1.0,
    # Of the elements that are read and written 432 are weights or, backward in a first layer, their gradient.
    "conv": 2 - 432 / (8 * 3 * 32 * 32 + 8 * 16 * 30 * 30 + 432),
    "conv backward": 2 - 432 / (8 * 3 * 32 * 32 + 8 * 16 * 30 * 30 + 432),
    "fc": 2 - 640 / (8 * 64 + 640 + 8 * 10 + 10),
    "fc backward": 2 - 640 / (8 * 10 + 640 + 8 * 64),
}
"""How much more there is to do with twice the batch, where it is not twice as much. All are bound by memory."""


def test_work_grows_with_the_batch_and_the_optimizers_does_not(view: ProfileView) -> None:
    expected = {name: grown(us, FACTORS.get(name, 2.0)) for name, us in RECORDED.items()}
    found = times(view, "fp32", op_times(0.5), batch_size=16)
    assert first_step(found) == pytest.approx(expected)
    assert not found.changed.any()
    assert dict(zip(STEP, found.scaled[:7].tolist(), strict=True)) == {name: name != "optimizer" for name in STEP}
    half = {name: grown(us / 2, FACTORS[name]) for name, us in RECORDED.items() if name.startswith(("conv", "fc"))}
    assert first_step(times(view, "bf16", op_times(0.5), batch_size=16)) == pytest.approx(expected | half)


def test_a_smaller_batch_takes_less(view: ProfileView) -> None:
    found = first_step(times(view, "fp32", op_times(0.5), batch_size=4))
    assert found["loss"] == pytest.approx(grown(10, 0.5))
    # With twice the batch it does 2 - x times as much, with half the batch 0.5 + x / 2.
    assert found["conv"] == pytest.approx(grown(200, 0.5 + (2 - FACTORS["conv"]) / 2))


def test_matrix_routines_grow_as_the_measured_ones_of_their_kind_do(view: ProfileView) -> None:
    # GIVEN measured products that take ten times their least time at 0.5 ns of it and twice that at 2 ns or more
    places = np.log([0.5e-3] * 4 + [2e-3] * 4)
    slowness = np.log([10.0] * 4 + [2.0] * 4)
    features = np.zeros((8, KINDS["product"]))
    features[:, 0], features[:, 1] = places + slowness, slowness
    known = op_times(0.5)
    for precision in ("tf32", "fp16"):
        process = GaussianProcess((1.0,) * KINDS["product"], 0.0, 0.0, 1e-9)
        known.tables["product", precision] = RatioTable(features, np.log(np.full(8, 0.5)), process)
    # THEN a product of 1 ns gets longer by less than what it has more to do, in FP32 and in FP16
    for precision, before in (("fp32", 100.0), ("fp16", 50.0)):
        found = first_step(times(view, precision, known, batch_size=32))
        more = 4 - 3 * (2 - FACTORS["fc"])
        assert grown(before, 1.0) < found["fc"] < grown(before, 0.6 * more)


def test_on_another_gpu_kernels_take_as_much_longer_as_its_memory_is_slower(view: ProfileView) -> None:
    # These small matrix routines are bound by memory on both GPUs: 4,800 and 2,039 GB/s.
    found = times(view, "fp32", op_times(0.5), gpu=A100)
    assert first_step(found)["optimizer"] == pytest.approx(1.2 + 28.8 * 4800 / 2039)
    assert not found.changed.any()


def test_matrix_routines_with_much_arithmetic_go_by_the_peak_rates(recorded: Callable[[str], ProfileView]) -> None:
    view = recorded("resnet50/fp32")
    work = launched(view)
    known, asked = op_times(0.5), target_of(view, "fp32", gpu=A100)
    of = KernelTimesOf(view, flow(view, 1), "fp32", known, asked)
    ratios = of.of(work).gpu_ns / np.maximum(recorded_ns(view, work), 1)
    long = recorded_ns(view, work) > 1e6
    # 67 and 19.5 TFLOP/s for arithmetic, 4,800 and 2,039 GB/s for memory.
    by = {round(float(ratio), 1) for ratio in ratios[long]}
    assert by == {round(67 / 19.5, 1), round(4800 / 2039, 1)}


def test_pointwise_ops_take_the_factor_of_their_kind_or_of_a_product(new_trace: Callable[..., Any]) -> None:
    # GIVEN a convolution, then ops that follow it in half precision, one that stays in FP32 and one before it
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1000)
    image, convolved = [8, 3, 32, 32], [8, 16, 30, 30]
    for number, (op, dims) in enumerate([
        ("mul", [image]), ("conv2d", [image, [16, 3, 3, 3]]), ("relu", [convolved]), ("silu", [convolved]),
        ("layer_norm", [convolved]),
    ]):  # fmt: skip
        at = 20 * number
        trace.op(f"aten::{op}", at, 15, dims=dims, types=["float"] * len(dims))
        trace.launch("implicit_convolve_sgemm" if op == "conv2d" else "k", at + 2, 100 + 50 * number, 40)
    view = trace.view()
    known = op_times(0.5)
    known.tables["relu fprop", "fp16"] = table(0.25, 3)
    known.tables["layer_norm fprop", "fp16"] = known.tables["relu fprop", "fp16"]
    assert (times(view, "fp16", known).gpu_ns / 1000)[[0, 2, 3, 4]] == pytest.approx([40, 10, 20, 40])
    assert (times(view, "tf32", known).gpu_ns / 1000)[[0, 2, 3, 4]] == pytest.approx([40, 40, 40, 40])


def test_channels_last_is_told_by_the_forward_convolutions_kernels(recorded: Callable[[str], ProfileView]) -> None:
    def modules(name: str) -> set[str]:
        view = recorded(name)
        found = units_of(view, flow(view, 1)).channels_last
        return {view.profile.strings[module] for module in found}

    plain, last = modules("torchvision/resnet18/fp32"), modules("torchvision/resnet50-channels-last/fp32")
    assert plain == set()
    assert {"layer1.0.conv2", "layer4.2.conv3"} <= last
    # What comes after such a convolution takes its layout.
    assert {"bn1", "relu", "maxpool", "layer1.0.bn2", "layer4.2.bn3"} <= last


def test_ops_after_a_convolution_take_its_layout_until_the_next_one(new_trace: Callable[..., Any]) -> None:
    # GIVEN a convolution that shows channels last, one that shows channels first, each with a batch norm behind it
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1000)
    image, weight = [8, 16, 32, 32], [16, 16, 3, 3]
    kernels = ["early", NHWC, "bn", "implicit_convolve_sgemm", "bn"]
    for number, (module, kernel) in enumerate(zip(["bn0", "conv1", "bn1", "conv2", "bn2"], kernels, strict=True)):
        at = 50 * number
        trace.module(module, at, 40)
        op, dims = ("conv2d", [image, weight]) if "conv" in module else ("batch_norm", [image])
        trace.op(f"aten::{op}", at + 5, 30, dims=dims, types=["float"] * len(dims))
        trace.launch(kernel, at + 10, 300 + 100 * number, 80)
    # AND batch norms measured in both layouts
    known = op_times(0.5)
    first, last = other_features(80e3, 8 * 32 * 32, False), other_features(80e3, 8 * 32 * 32, True)
    process = GaussianProcess((1.0, 1.0, 0.1), 1.0, 0.0, 1e-6)
    ratios = np.log([0.4] * 4 + [0.8] * 4)
    known.tables["batch_norm fprop", "fp16"] = RatioTable(np.array([first] * 4 + [last] * 4), ratios, process)
    # THEN the one behind channels last takes the factor of that layout; the first is before autocast's first op
    found = times(trace.view(), "fp16", known)
    assert (found.gpu_ns / 1000)[[0, 2, 4]] == pytest.approx([80, 64, 32], rel=1e-3)


def test_layers_that_are_alike_are_looked_up_once_and_all_at_once(
    recorded: Callable[[str], ProfileView], monkeypatch: pytest.MonkeyPatch
) -> None:
    solved = np.linalg.solve
    together: list[int] = []

    def counted(matrices: Any, right: Any) -> Any:
        together.append(right.shape[1])
        return solved(matrices, right)

    monkeypatch.setattr(np.linalg, "solve", counted)
    found = times(recorded("resnet50/fp32"), "bf16", measured())
    assert found.changed.sum() > 4 * sum(together) > 0
    assert sum(together) > 2 * len(together)


def test_the_growth_of_layers_that_are_alike_is_found_once(
    recorded: Callable[[str], ProfileView], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    found = RatioTable.slowness
    monkeypatch.setattr(RatioTable, "slowness", lambda table, *given: asked.append(given) or found(table, *given))
    view = recorded("resnet50/fp32")
    times(view, "fp32", measured(), batch_size=2 * (view.profile.facts.batch_size or 1))
    assert 0 < 4 * len(asked) < len(matrix_calls(view, view.selection()))


def in_tf32(training: Callable[..., Any]) -> ProfileView:
    view: ProfileView = training("tf32").view()
    return view


TF32_US = {"conv": 100, "fc": 50, "fc backward": 50, "conv backward": 150}


def test_a_run_in_tf32_stays_as_it_is_in_tf32(training: Callable[..., Any]) -> None:
    found = times(in_tf32(training), "tf32", op_times(0.5))
    assert first_step(found) == RECORDED | TF32_US
    assert not found.changed.any()


def test_from_tf32_matrix_routines_take_the_factor_to_their_time_in_tf32(training: Callable[..., Any]) -> None:
    known = op_times(0.25)
    relative = {key: table(0.8, KINDS[key[0]]) for key in known.tables if key[1] != "tf32"}
    found = times(in_tf32(training), "bf16", replace(known, from_tf32=relative))
    # The trace does not tell the work of the convolution's backward pass.
    assert first_step(found) == RECORDED | {"conv": 80, "fc": 40, "fc backward": 40, "conv backward": 150}


def test_what_the_library_left_in_fp32_stays_in_fp32(trained: Callable[..., ProfileView]) -> None:
    # GIVEN FP32 kernels although TF32 is on for convolutions
    view = trained(facts=RunFacts(cudnn_allow_tf32=True, matmul_allow_tf32=False))
    found = times(view, "tf32", op_times(0.5))
    # THEN only products change
    assert first_step(found) == RECORDED | {"fc": 50, "fc backward": 50}
