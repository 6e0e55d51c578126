"""Rules of precision, layout, attention, memory and parameters, each on a made-up step of one GPU.

A step is laid out by `Step`: ops of the forward pass one after another on the main thread, their backward nodes in
reverse order on the other, each with a kernel that starts when the one before it ended.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from advice.helpers import finding_of, readings_of, status_of
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
HALF_TYPE = "c10::BFloat16"
TENSOR_CONV = (
    "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_"
    "execute_segment_k_off_kernel__5x_cudnn"
)
TO_NHWC = "void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16, __nv_bfloat16>(int)"
SIMT_GEMM = (
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel"
    "__5x_cublas"
)
TENSOR_GEMM = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
REDUCE = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(int)"
NORM = "void at::native::batch_norm_collect_statistics_kernel<float>(int)"
POOL = "void at::native::(anonymous namespace)::max_pool_forward_nchw<float>(int)"
CAST = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>(int)"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>(float)"
MULTI_TENSOR = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::UnscaleFunctor>(int)"


class Step:
    """A training step under construction, made three times; times in microseconds, kernels back to back.

    The CPU launches all of it and then waits for the GPU, so that the GPU sets the pace.
    """

    def __init__(self, trace: Any) -> None:
        self._trace = trace
        self._parts: list[Any] = []
        self._sequence = 0

    def forward(self, module: str, op: str, kernels: Any = (), dims: Any = None, types: Any = None) -> int:
        """An outermost op in a module, with its kernels as (name, µs), or ops in it as (name, dims, types, kernels)."""
        self._sequence += 1
        self._parts.append(("forward", self._sequence, module, op, _inner(op, kernels, dims, types), dims, types))
        return self._sequence

    def backward(self, node: str, sequence: int, kernels: Any = ()) -> None:
        """The autograd node of a forward op."""
        self._parts.append(("backward", sequence, "", node, _inner(node, kernels, None, None), None, None))

    def update(self, *ops: Any) -> None:
        """Outermost ops of the main thread: (name, dims, types, kernels)."""
        for op in ops:
            self._parts.append(("update", 0, "", op[0], [op], op[1], op[2]))

    def wait(self) -> None:
        """A value is read: the CPU waits until the GPU is done."""
        self._parts.append(("wait", 0, "", "aten::item", [], None, None))

    def view(self, **facts: Any) -> ProfileView:
        trace = self._trace
        trace.gpu()
        at = 0.0
        for index in range(3):
            start = at
            at = self._one(trace, index, at)
            trace.step(index, start, at - start)
        view: ProfileView = trace.view(facts=RunFacts(**facts))
        return view

    def _one(self, trace: Any, index: int, start: float) -> float:
        clock, gpu = start + 1, start + 6
        for what, sequence, module, op, inner, dims, types in self._parts:
            if what == "wait":
                stop = max(gpu + 2, clock + 4)
                trace.op(op, clock, stop - clock)
                trace.runtime(clock + 1, stop - clock - 2, name="cudaStreamSynchronize")
                clock = stop + 1
                continue
            tid = OTHER if what == "backward" else MAIN
            width = 4 + sum(3 + 4 * len(launched) for *_, launched in inner)
            if what == "backward":
                trace.backward(op, clock, width, sequence + 1000 * index)
            else:
                if module:
                    trace.module(module, clock, width)
                numbered = {"seq": sequence + 1000 * index} if sequence else {}
                trace.op(op, clock + 0.5, width - 1, dims=dims, types=types, **numbered)
            inside = clock + 1
            for name, its_dims, its_types, launched in inner:
                if name != op:
                    trace.op(name, inside, 2 + 4 * len(launched), tid=tid, dims=its_dims, types=its_types)
                for kernel, duration in launched:
                    gpu = max(gpu, inside + 4)
                    trace.launch(kernel, inside + 0.5, gpu, duration, tid=tid)
                    gpu += duration
                    inside += 4
                inside += 3
            clock += width + 1
        stop = max(gpu + 1, clock + 3)
        trace.op("aten::item", clock, stop - clock)
        trace.runtime(clock + 1, stop - clock - 2, name="cudaStreamSynchronize")
        return stop + 1


def _inner(op: str, kernels: Any, dims: Any, types: Any) -> list[Any]:
    """Kernels of the op itself, or of ops inside it."""
    if kernels and isinstance(kernels[0][1], int | float):
        return [(op, dims, types, list(kernels))]
    return list(kernels)


MAIN, OTHER = 1, 2


@pytest.fixture
def step(new_trace) -> Any:
    """Makes an empty `Step`."""
    return lambda: Step(new_trace())


IMAGES, WEIGHT = [16, 64, 56, 56], [64, 64, 3, 3]


# -- Biases and ReLUs


def _convolution_and_norm(step, bias: Any = (64,), shortcut: bool = False) -> Step:
    """Convolution, batch norm; with a bias of 80 µs forward and 60 µs backward. A shortcut uses the output too."""
    run: Step = step()
    bias = list(bias)
    adds = [("aten::add_", [IMAGES, [1, 64, 1, 1]], ["float"] * 2, [(ELEMENTWISE, 80)])] if bias else []
    conv = run.forward(
        "conv", "aten::conv2d",
        [("aten::cudnn_convolution", [IMAGES, WEIGHT], ["float"] * 2, [(SIMT_GEMM, 300)]), *adds],
        dims=[IMAGES, WEIGHT, bias], types=["float"] * 3,
    )  # fmt: skip
    run.forward("norm", "aten::add_", dims=[[], []], types=["long int", "Scalar"])
    norm = run.forward("norm", "aten::batch_norm", [(NORM, 100)], dims=[IMAGES], types=["float"])
    summed = [("aten::add", [IMAGES, IMAGES], ["float"] * 2, [(ELEMENTWISE, 20)])] if shortcut else []
    run.backward("NativeBatchNormBackward0", norm, [("aten::native_batch_norm_backward", [IMAGES], ["float"],
                                                     [(NORM, 100)]), *summed])  # fmt: skip
    run.backward("torch::autograd::AccumulateGrad", norm)
    sums = [("aten::sum", [IMAGES], ["float"], [(REDUCE, 60)])] if bias else []
    run.backward(
        "ConvolutionBackward0", conv,
        [("aten::convolution_backward", [IMAGES, IMAGES, WEIGHT], ["float"] * 3, [(SIMT_GEMM, 500)]), *sums],
    )  # fmt: skip
    return run


def test_a_bias_before_a_batch_norm_costs_its_kernels(step) -> None:
    finding = finding_of(_convolution_and_norm(step).view(), "bias_before_batch_norm")
    assert readings_of(finding)["Layers with a bias before a batch norm"] == 1
    assert readings_of(finding)["Kernel time for their biases, per step"] == 140_000
    assert finding.code == "nn.Conv2d(64, 64, kernel_size=3, bias=False)  # conv\n"
    assert finding.saving is not None
    # THEN a quarter of the kernels' time, and 1 % of the step for noise, may stay
    assert finding.saving.expected_ns == pytest.approx(140_000, rel=0.05)
    assert 0.4 * 140_000 < finding.saving.low_ns < 0.75 * 140_000


@pytest.mark.parametrize(
    ("options", "facts", "outcome", "why"),
    [
        ({"bias": ()}, {}, "silent", "No layer in front of a batch norm has a bias."),
        ({"shortcut": True}, {}, "not_applicable", "No batch norm follows a layer directly."),
        ({}, {"training": False}, "not_applicable", "evaluation mode"),
    ],
)
def test_a_bias_that_counts_is_left_alone(step, options, facts, outcome: str, why: str) -> None:
    status = status_of(_convolution_and_norm(step, **options).view(**facts), "bias_before_batch_norm")
    assert (status.outcome, why in status.why) == (outcome, True), status.why


def _relu_and_pool(step, shortcut: bool = False) -> Step:
    """ReLU of 100 µs and 150 µs backward before a pooling to a quarter; a shortcut uses the ReLU's output too."""
    run: Step = step()
    small = [16, 64, 28, 28]
    relu = run.forward("relu", "aten::relu", [(ELEMENTWISE, 100)], dims=[IMAGES], types=["float"])
    pool = run.forward("pool", "aten::max_pool2d", [(POOL, 120)], dims=[IMAGES], types=["float"])
    summed = [("aten::add_", [IMAGES, IMAGES], ["float"] * 2, [(ELEMENTWISE, 20)])] if shortcut else []
    run.backward(
        "MaxPool2DWithIndicesBackward0", pool,
        [("aten::max_pool2d_with_indices_backward", [small, IMAGES], ["float"] * 2, [(POOL, 130)]), *summed],
    )  # fmt: skip
    run.backward("ReluBackward0", relu, [("aten::threshold_backward", [IMAGES, IMAGES], ["float"] * 2,
                                          [(ELEMENTWISE, 150)])])  # fmt: skip
    return run


def test_a_relu_before_a_pooling_costs_three_quarters_of_its_time(step) -> None:
    finding = finding_of(_relu_and_pool(step).view(), "relu_before_maxpool")
    assert readings_of(finding)["Their kernel time per step"] == 250_000
    assert readings_of(finding)["Of it for elements that the pooling removes"] == 187_500
    assert "relu and pool" in finding.change
    assert finding.saving is not None
    assert finding.saving.expected_ns == pytest.approx(187_500, rel=0.05)
    assert finding.saving.low_ns < 0.86 * 187_500 < finding.saving.expected_ns < finding.saving.high_ns


def test_a_relu_whose_output_is_used_twice_stays_where_it_is(step) -> None:
    assert status_of(_relu_and_pool(step, shortcut=True).view(), "relu_before_maxpool").outcome == "not_applicable"


# -- Layouts


def _convolution_with_transposes(step, transposes: float, kernel: str = TENSOR_CONV, norm: bool = False) -> Step:
    run: Step = step()
    types = [HALF_TYPE] * 2
    run.forward(
        "conv", "aten::conv2d",
        [("aten::cudnn_convolution", [IMAGES, WEIGHT], types, [(TO_NHWC, transposes), (kernel, 300)])],
        dims=[IMAGES, WEIGHT], types=types,
    )  # fmt: skip
    if norm:
        run.forward("norm", "aten::batch_norm", [(NORM, 200)], dims=[IMAGES], types=[HALF_TYPE])
    return run


def test_transposes_around_convolutions_on_tensor_cores_ask_for_channels_last(step) -> None:
    finding = finding_of(_convolution_with_transposes(step, 100).view(channels_last=False), "channels_last")
    assert readings_of(finding)["Changing layouts around convolutions, per step"] == 100_000
    assert "memory_format=torch.channels_last" in finding.code
    assert finding.saving is not None
    assert finding.saving.expected_ns == pytest.approx(100_000, rel=0.05)


def test_batch_norms_with_channels_first_get_faster_too(step) -> None:
    alone = finding_of(_convolution_with_transposes(step, 100).view(), "channels_last").saving
    both = finding_of(_convolution_with_transposes(step, 100, norm=True).view(), "channels_last").saving
    assert alone is not None
    assert both is not None
    assert both.expected_ns - alone.expected_ns == pytest.approx(100_000, rel=0.05)


@pytest.mark.parametrize(("transposes", "kernel"), [(100, SIMT_GEMM), (4, TENSOR_CONV)])
def test_few_transposes_or_such_off_the_tensor_cores_are_no_finding(step, transposes: float, kernel: str) -> None:
    view = _convolution_with_transposes(step, transposes, kernel).view()
    assert status_of(view, "channels_last").outcome == "silent"


# -- Attention

SCORES = [8, 16, 1024, 1024]
HEADS, FLAT_HEADS, FLAT_SCORES = [8, 16, 1024, 64], [128, 1024, 64], [128, 1024, 1024]


def _attention(step, dims: int = 4, mean: bool = False) -> Step:
    run: Step = step()
    scores = SCORES if dims == 4 else [8192, 1024]
    types = [HALF_TYPE] * 2
    give = ("aten::bmm", [FLAT_HEADS, [128, 64, 1024]], types, [(TENSOR_GEMM, 90)])
    softmax = ("aten::_softmax", [scores], ["float"], [(SOFTMAX, 400)])
    take = ("aten::bmm", [FLAT_SCORES, FLAT_HEADS], types, [(TENSOR_GEMM, 90)])
    run.forward("attention", "aten::matmul", [give], dims=[HEADS, HEADS], types=types)
    run.forward("attention", "aten::masked_fill", [(ELEMENTWISE, 300)], dims=[SCORES, [1024, 1024]], types=types)
    run.forward("attention", "aten::softmax", [softmax], dims=[scores], types=types)
    run.forward("attention", "aten::matmul", [take], dims=[SCORES, HEADS], types=types)
    if mean:
        run.forward("attention", "aten::mean", [(REDUCE, 50)], dims=[SCORES], types=types)
    return run


def test_attention_in_separate_kernels_is_found_by_its_shapes(step) -> None:
    finding = finding_of(_attention(step).view(), "attention_not_fused")
    assert readings_of(finding)["Kernels of attention, per step"] == 880_000
    assert "128 matrices of 1024 x 1024" in finding.seen
    # THEN one fused kernel takes its place: 34.4 GFLOP at 0.55 of 989 TFLOP/s and 6 µs
    fused = 1e9 * 4 * 128 * 1024 * 1024 * 64 / (0.55 * 989e12) + 6_000
    assert readings_of(finding)["Fused kernels should take, per step"] == pytest.approx(fused, rel=0.01)
    assert finding.saving is not None
    assert finding.saving.expected_ns == pytest.approx(880_000 - fused, rel=0.05)
    assert "is_causal=True" in finding.code


def test_need_weights_is_told_from_attention_written_out(step) -> None:
    finding = finding_of(_attention(step, mean=True).view(), "attention_not_fused")
    assert "need_weights=False" in finding.change
    assert "need_weights=False" in finding.code


def test_the_math_backend_says_what_the_fused_ones_lack(step) -> None:
    run, types = step(), [HALF_TYPE] * 2
    odd = [128, 1024, 60]
    run.forward(
        "attention", "aten::_scaled_dot_product_attention_math",
        [
            ("aten::bmm", [odd, [128, 60, 1024]], types, [(TENSOR_GEMM, 90)]),
            ("aten::_softmax", [SCORES], ["float"], [(SOFTMAX, 400)]),
            ("aten::bmm", [FLAT_SCORES, odd], types, [(TENSOR_GEMM, 90)]),
        ],
        dims=[[8, 16, 1024, 60]] * 3, types=types,
    )  # fmt: skip
    change = finding_of(run.view(), "attention_not_fused").change
    assert "falls back to its math backend" in change
    assert "a multiple of 8 in BF16; 60 is none" in change


def test_a_softmax_over_classes_is_no_attention(step) -> None:
    status = status_of(_attention(step, dims=2).view(), "attention_not_fused")
    assert (status.outcome, status.why) == ("not_applicable", "The run has no attention.")


# -- Precision


def _layers(step, head: str = "float", casts: float = 0.0, width: int = 4096) -> Step:
    """A body of 400 µs in BF16 and a head of 600 µs in another type, or in BF16 as well; casts around an activation."""
    run: Step = step()
    inputs, weight = [4096, 1024], [1024, width]
    wrap = "aten::linear"
    half = [HALF_TYPE] * 2
    run.forward("body", wrap, [("aten::linear", [inputs, weight], half, []),
                               ("aten::mm", [inputs, weight], half, [(TENSOR_GEMM, 400)])],
                dims=[inputs, weight], types=["float"] * 2)  # fmt: skip
    if casts:
        run.forward("middle", "aten::to", [("aten::copy_", [inputs, inputs], ["float", HALF_TYPE], [(CAST, casts)])],
                    dims=[inputs], types=[HALF_TYPE])  # fmt: skip
        run.forward("next", wrap, [("aten::copy_", [inputs, inputs], [HALF_TYPE, "float"], [(CAST, casts)]),
                                   ("aten::mm", [inputs, weight], half, [(TENSOR_GEMM, 100)])],
                    dims=[inputs, weight], types=["float"] * 2)  # fmt: skip
    kernel = SIMT_GEMM if head == "float" else TENSOR_GEMM
    run.forward("head", wrap, [("aten::mm", [inputs, weight], [head] * 2, [(kernel, 600)])],
                dims=[inputs, weight], types=[head] * 2)  # fmt: skip
    return run


def test_a_layer_in_fp32_within_a_mixed_precision_run_is_named_and_priced(step) -> None:
    finding = finding_of(_layers(step).view(autocast=True, autocast_dtype="bfloat16"), "amp_defeated")
    assert readings_of(finding)["Matrix kernels on FP32 tensors, per step"] == 600_000
    assert readings_of(finding)["Share of all matrix kernels"] == 60.0
    assert "head/linear" in finding.title
    assert finding.saving is not None
    # THEN measured products of this size take about a fifteenth of FP32's time in BF16
    assert 0.8 * 600_000 < finding.saving.low_ns < finding.saving.expected_ns < finding.saving.high_ns < 640_000


def test_a_run_under_autocast_is_not_told_to_turn_it_on(step) -> None:
    view = _layers(step).view(autocast=True, autocast_dtype="bfloat16", matmul_allow_tf32=True)
    status = status_of(view, "amp_not_used")
    assert (status.outcome, "Autocast is on" in status.why) == ("silent", True)


def test_tensors_that_go_to_fp32_and_back_are_found_by_their_casts(step) -> None:
    finding = finding_of(_layers(step, HALF_TYPE, casts=60).view(autocast=True), "amp_defeated")
    assert "Tensors go to FP32 and back: 0.12 ms" in finding.title
    assert finding.saving is not None
    assert finding.saving.expected_ns == pytest.approx(120_000, rel=0.06)


def test_amp_that_reaches_all_layers_is_not_defeated(step) -> None:
    assert status_of(_layers(step, HALF_TYPE).view(autocast=True), "amp_defeated").outcome == "silent"


def test_a_run_in_fp32_has_no_amp_to_defeat(training) -> None:
    assert status_of(training().view(), "amp_defeated").outcome == "not_applicable"


def test_sizes_that_are_no_multiple_of_8_are_priced_by_measured_ops(step) -> None:
    odd = finding_of(_layers(step, HALF_TYPE, width=4001).view(autocast=True), "bad_tensor_shape")
    assert readings_of(odd)["Layers with odd sizes"] == 2
    assert readings_of(odd)["Their matrix kernels, per step"] == 1_000_000
    assert "4001 to 4008 or 4032" in odd.change
    assert odd.saving is not None
    assert 300_000 < odd.saving.low_ns < odd.saving.expected_ns < odd.saving.high_ns < 1_030_000


@pytest.mark.parametrize("width", [4000, 4096])
def test_sizes_that_fit_are_silent(step, width: int) -> None:
    assert status_of(_layers(step, HALF_TYPE, width=width).view(), "bad_tensor_shape").outcome == "silent"


def _scaled(step, waits: bool = True) -> Step:
    run = _layers(step, HALF_TYPE)
    run.update(
        ("aten::to", [[]], ["float"], [(ELEMENTWISE, 1)]),
        ("aten::reciprocal", [[]], ["double"], [(ELEMENTWISE, 1)]),
        ("aten::full", [[]], [""], [(ELEMENTWISE, 1)]),
        ("aten::_amp_foreach_non_finite_check_and_unscale_", [], [], [(MULTI_TENSOR, 300)]),
    )
    if waits:
        run.wait()
    run.update(("aten::_amp_update_scale_", [[]], ["float"], [(ELEMENTWISE, 2)]))
    return run


def test_a_scaler_beside_bf16_is_needless(step) -> None:
    finding = finding_of(_scaled(step).view(grad_scaler=True, autocast=True), "scaler_with_bf16")
    assert readings_of(finding)["Calls of the scaler per step"] == 6
    assert readings_of(finding)["Their kernels per step"] == 305_000
    assert "the CPU waits" in finding.title
    assert finding.saving is not None
    assert finding.saving.expected_ns >= 0.9 * 305_000


def test_a_scaler_beside_fp16_is_needed(training) -> None:
    trace = training("fp16")
    trace.op("aten::_amp_foreach_non_finite_check_and_unscale_", 415, 4, types=["TensorList"])
    status = status_of(trace.view(facts=RunFacts(grad_scaler=True)), "scaler_with_bf16")
    assert (status.outcome, "in FP16" in status.why) == ("silent", True)


@pytest.fixture(scope="module")
def recorded() -> Any:
    def read(name: str) -> ProfileView:
        return recorded_view(RECORDED / name)

    return read


def test_where_amp_would_make_the_step_longer_the_advice_is_against_it(recorded) -> None:
    finding = finding_of(recorded("lenet/fp32"), "amp_will_not_pay")
    assert (finding.severity, finding.saving) == ("low", None)
    assert "% longer" in finding.seen
    assert status_of(recorded("vgg16/fp32"), "amp_will_not_pay").outcome == "silent"


@pytest.mark.parametrize(
    ("model", "precision", "fp32_ms", "amp_ms"),
    # Steps without the profiler, from demo/recorded/recording.json.
    [("mlp", "amp-bf16", 1.0606, 1.2986), ("mlp", "amp-fp16", 1.0606, 1.5883), ("lenet", "amp-bf16", 1.5346, 1.9428)],
)
def test_what_leaving_amp_saves_in_small_models_lies_in_the_interval(
    recorded, model: str, precision: str, fp32_ms: float, amp_ms: float
) -> None:
    saving = finding_of(recorded(f"{model}/{precision}"), "amp_will_not_pay").saving
    assert saving is not None
    assert saving.low_ns / 1e6 <= amp_ms - fp32_ms <= saving.high_ns / 1e6


@pytest.mark.parametrize("name", ["resnet50/amp-bf16", "vgg16/amp-fp16", "custom/amp-bf16"])
def test_amp_pays_where_the_gpu_sets_the_pace(recorded, name: str) -> None:
    assert status_of(recorded(name), "amp_will_not_pay").outcome == "silent"


# -- Skipped steps


def _with_rounds(new_trace, taken: list[bool]) -> ProfileView:
    """Steps of a scaler in FP16, some of which took no optimizer step."""
    trace = new_trace()
    trace.gpu()
    for index, took in enumerate(taken):
        at = 1000 * index
        trace.step(index, at, 1000)
        trace.op("aten::mm", at + 10, 10, dims=[[64, 64], [64, 64]], types=["c10::Half"] * 2)
        trace.launch("nvjet_sm90_hsh_128x64_64x8_2x1_v_bz_TNN", at + 12, at + 20, 600)
        trace.op("aten::_amp_foreach_non_finite_check_and_unscale_", at + 700, 10, types=["TensorList"])
        if took:
            trace.optimizer(at + 800, 50)
        trace.op("aten::_amp_update_scale_", at + 900, 10)
    view: ProfileView = trace.view(
        facts=RunFacts(grad_scaler=True, grad_scaler_scale=2.0**24, unprofiled_step_ns=1_000_000)
    )
    return view


def test_skipped_steps_are_a_share_of_the_time_for_nothing(new_trace) -> None:
    finding = finding_of(_with_rounds(new_trace, [True, False, True, False, True]), "loss_scale_overflow")
    assert readings_of(finding)["Optimizer steps skipped"] == 2
    assert readings_of(finding)["Share of the optimizer steps"] == 40.0
    assert readings_of(finding)["Time for skipped steps, per step"] == 400_000
    assert (finding.severity, finding.saving) == ("high", None)
    assert [row.id for row in finding.evidence] == ["1", "3"]


@pytest.mark.parametrize("taken", [[True] * 5, [True, True, False, True, True]])
def test_none_or_one_skipped_step_is_how_a_scale_settles(new_trace, taken: list[bool]) -> None:
    assert status_of(_with_rounds(new_trace, taken), "loss_scale_overflow").outcome == "silent"


# -- Recomputation


def _recomputing(step, again: bool = True) -> Step:
    run: Step = step()
    inputs, weight, types = [4096, 1024], [1024, 1024], ["float"] * 2
    number = run.forward("block", "aten::linear", [("aten::mm", [inputs, weight], types, [(SIMT_GEMM, 400)])],
                         dims=[inputs, weight], types=types)  # fmt: skip
    recomputed = [("aten::linear", [inputs, weight], types, [(SIMT_GEMM, 400)])] if again else []
    run.backward("AddmmBackward0", number, [*recomputed, ("aten::mm", [inputs, weight], types, [(SIMT_GEMM, 700)])])
    return run


GIB = 1 << 30


def test_recomputation_is_dear_where_memory_is_left(step) -> None:
    facts = {"peak_memory_allocated_bytes": 10 * GIB, "available_memory_bytes": 100 * GIB}
    finding = finding_of(_recomputing(step).view(**facts), "recomputation")
    assert readings_of(finding)["Kernel time of recomputed ops, per step"] == 400_000
    # THEN at most its inputs are kept: 4096 x 1024 and 1024 x 1024 numbers of 4 bytes
    assert readings_of(finding)["Memory to keep what is recomputed, at most"] == 4 * (4096 * 1024 + 1024 * 1024)
    assert finding.saving is not None
    assert finding.saving.expected_ns == pytest.approx(400_000, rel=0.05)


@pytest.mark.parametrize(
    ("again", "peak", "outcome"), [(True, 95, "silent"), (True, None, "not_applicable"), (False, 10, "not_applicable")]
)
def test_recomputation_is_left_alone_where_memory_is_needed_or_unknown(step, again: bool, peak, outcome: str) -> None:
    taken = None if peak is None else peak * GIB
    facts = {"peak_memory_allocated_bytes": taken, "available_memory_bytes": 100 * GIB}
    assert status_of(_recomputing(step, again).view(**facts), "recomputation").outcome == outcome


# -- Memory


@pytest.mark.parametrize(
    ("peak", "state", "outcome"),
    [(90, 45, "fired"), (90, 10, "silent"), (50, 25, "silent"), (90, None, "not_applicable")],
)
def test_the_optimizers_states_matter_where_memory_is_short(training, peak, state, outcome: str) -> None:
    facts = RunFacts(
        peak_memory_allocated_bytes=peak * GIB,
        available_memory_bytes=100 * GIB,
        optimizer_state_bytes=None if state is None else state * GIB,
        parameter_count=45 * GIB // 8,
        optimizer="AdamW",
    )
    view = training().view(facts=facts)
    assert status_of(view, "optimizer_state").outcome == outcome
    if outcome == "fired":
        finding = finding_of(view, "optimizer_state")
        assert "8.0 bytes a parameter" in finding.seen
        assert (finding.severity, finding.saving) == ("low", None)


@pytest.mark.parametrize(
    ("allocated", "reserved", "retries", "outcome"),
    [
        (10, 60, 0, "fired"),
        (50, 60, 0, "silent"),
        (1, 5, 0, "silent"),
        (60, 95, 3, "fired"),
        (None, 60, 0, "not_applicable"),
    ],
)
def test_memory_in_pieces_is_reserved_and_never_used_at_once(training, allocated, reserved, retries, outcome) -> None:
    facts = RunFacts(
        peak_memory_allocated_bytes=None if allocated is None else allocated * GIB,
        peak_memory_reserved_bytes=reserved * GIB,
        available_memory_bytes=100 * GIB,
        allocator_retries=retries,
    )
    assert status_of(training().view(facts=facts), "allocator_churn").outcome == outcome


def _keeping(new_trace, kept: int) -> ProfileView:
    """Four steps that allocate 100 MB each and keep some of it."""
    trace = new_trace()
    trace.gpu()
    held = 500_000_000
    for index in range(4):
        at = 1000 * index
        trace.step(index, at, 1000)
        trace.op("aten::mm", at + 10, 20, dims=[[64, 64], [64, 64]], types=["float"] * 2)
        trace.launch(SIMT_GEMM, at + 12, at + 20, 600)
        for size, address in ((kept, 10 + index), (100_000_000, 100 + index)):
            if size:
                held += size
                trace.memory(at + 15, size, address, allocated=held, reserved=10**9, device=0)
        held -= 100_000_000
        trace.memory(at + 700, -100_000_000, 100 + index, allocated=held, reserved=10**9, device=0)
    view: ProfileView = trace.view()
    return view


def test_memory_that_grows_in_each_step_is_named_with_what_keeps_it(new_trace) -> None:
    finding = finding_of(_keeping(new_trace, 20_000_000), "allocator_churn")
    assert readings_of(finding)["Growth per step"] == 20_000_000
    assert "mm" in finding.evidence[0].label
    assert finding.severity == "high"
    # THEN at 150 GB, of which 680 MB are taken at the peak, 7,466 more steps fit
    assert f"{(150_000_000_000 - 680_000_000) // 20_000_000:,} more steps" in finding.seen


def test_memory_that_comes_and_goes_does_not_grow(new_trace) -> None:
    assert status_of(_keeping(new_trace, 0), "allocator_churn").outcome == "not_applicable"


# -- Parameters


@pytest.mark.parametrize(
    ("facts", "outcome", "words"),
    [
        ({}, "not_applicable", "was not recorded"),
        ({"trainable_parameters": 6, "unused_parameters": 0}, "silent", "All 6 parameters"),
        (
            {"trainable_parameters": 6, "unused_parameters": 2, "unused_parameter_bytes": 60 << 20,
             "unused_parameter_names": ["aux.weight", "aux.bias"]},
            "fired",
            "2 of 6 parameters of the optimizer require a gradient and got none while recorded (aux.weight, aux.bias)",
        ),
        (
            {"trainable_parameters": 6, "unused_parameters": 0, "find_unused_parameters": True},
            "silent",
            "costs less than 2 %",
        ),
    ],
)  # fmt: skip
def test_parameters_without_a_gradient_are_named(training, facts, outcome: str, words: str) -> None:
    status = status_of(training().view(facts=RunFacts(**facts)), "unused_parameters")
    assert (status.outcome, words in status.why) == (outcome, True), status.why


def test_without_ddp_unused_parameters_cost_memory_and_no_time(training) -> None:
    facts = RunFacts(trainable_parameters=6, unused_parameters=2, unused_parameter_bytes=100)
    finding = finding_of(training().view(facts=facts), "unused_parameters")
    assert (finding.saving, finding.severity) == (None, "low")


def test_zeros_that_ddp_sums_up_for_unused_parameters_are_priced(new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    for index in range(3):
        at = 3000 * index
        trace.step(index, at, 3000)
        trace.op("aten::mm", at + 10, 20, dims=[[64, 64], [64, 64]], types=["float"] * 2)
        trace.launch(SIMT_GEMM, at + 12, at + 20, 500)
        # GIVEN 8 of 10 million numbers that are summed up are of unused parameters, and nothing overlaps with the sum
        trace.op("record_param_comms", at + 40, 30, dims=[[[10_000_000]], []], types=["TensorList", "Scalar"])
        trace.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", at + 42, at + 520, 1000)
    facts = RunFacts(
        trainable_parameters=6, unused_parameters=2, unused_parameter_bytes=32_000_000, find_unused_parameters=True
    )
    finding = finding_of(trace.view(facts=facts), "unused_parameters")
    assert finding.saving is not None
    assert finding.saving.expected_ns == 800_000
    assert finding.saving.low_ns == pytest.approx(0.6 * 800_000, abs=0.02 * 3_000_000)


# -- All of them

MODEL_RULES = (
    "amp_defeated", "amp_will_not_pay", "attention_not_fused", "bad_tensor_shape", "bias_before_batch_norm",
    "channels_last", "loss_scale_overflow", "optimizer_state", "recomputation", "relu_before_maxpool",
    "scaler_with_bf16", "unused_parameters", "allocator_churn",
)  # fmt: skip


@pytest.mark.parametrize("rule", MODEL_RULES)
def test_without_a_gpu_they_do_not_apply(cpu_view: ProfileView, rule: str) -> None:
    assert status_of(cpu_view, rule).outcome == "not_applicable"


@pytest.mark.parametrize("build", [_convolution_and_norm, _relu_and_pool, _attention, _layers, _scaled])
def test_every_saving_is_an_ordered_interval(step, build) -> None:
    view = build(step).view(autocast=True)
    for finding in advise(view, view.selection()).findings:
        if finding.rule in MODEL_RULES and finding.saving is not None:
            saving = finding.saving
            assert 0 <= saving.low_ns <= saving.expected_ns <= saving.high_ns
            assert math.isfinite(saving.percent)
