"""Each way to a precision is recognised by what it leaves in a trace: literal ones, and real recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.recorded_runs import recorded_view

import tb_dlprof_plugin
from tb_dlprof_plugin.metrics.numeric_health import numeric_health
from tb_dlprof_plugin.metrics.precision_mode import named_otherwise, precision_mode
from tb_dlprof_plugin.metrics.precision_signals import apex_conversion
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "demo" / "recorded"
PLANTED = ROOT / "tests" / "data" / "planted"

FP16_GEMM, BF16_GEMM = "nvjet_sm90_hsh_128x64_64x8_2x1_v_bz_TNN", "nvjet_sm90_tst_128x64_64x8_2x1_v_bz_TNN"
FP32_GEMM = "ampere_sgemm_128x64_tn"
TF32_GEMM = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_32x3_tn_align4>(Params)"
CAST = "void at::native::unrolled_elementwise_kernel<at::native::float16_copy_kernel_cuda>(int)"
# cuBLAS' name in NVIDIA/TransformerEngine issue 1391; TE's own from its normalization and transpose directories.
FP8_GEMM = (
    "sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x128_warpgroupsize1x1x1_execute_segment_k_off_kernel"
    "__5x_cublas"
)
TE_NORM = (
    "void transformer_engine::normalization::rmsnorm_fwd_general_kernel<transformer_engine::normalization::"
    "Kernel_traits>(transformer_engine::normalization::ForwardKernelParams)"
)
TE_CAST = (
    "void transformer_engine::detail::cast_transpose_general_kernel<8, 8, float, __nv_bfloat16, __nv_fp8_e4m3>(int)"
)
TYPES = {"fp16": "c10::Half", "bf16": "c10::BFloat16", "fp32": "float"}
GEMMS = {"fp16": FP16_GEMM, "bf16": BF16_GEMM, "fp32": FP32_GEMM, "tf32": TF32_GEMM}
INPUT, WEIGHT = [32, 64], [128, 64]


def scale_kernel(source: str, target: str) -> str:
    """Apex' csrc/multi_tensor_scale_kernel.cu in csrc/multi_tensor_apply.cuh, as CUPTI writes a kernel's name."""
    functor = f"ScaleFunctor<{TYPES[source]}, {TYPES[target]}>"
    return (
        f"void multi_tensor_apply_kernel<TensorListMetadata<2>, {functor}, float>(long, int volatile*, "
        f"TensorListMetadata<2>, {functor}, float)"
    )


class Steps:
    """Training steps of 1000 µs of one linear layer, written part by part; `at` is the time in the step."""

    def __init__(self, new_trace: Any, count: int = 3, **options: Any) -> None:
        self.trace = new_trace(**options)
        self.trace.gpu()
        self.count, self.start = count, 0.0
        # Sequence numbers of autograd are unique: those of a step follow this one.
        self.first = 0

    def cast(self, at: float, shape: list[int], to: str = "fp16", seq: int | None = None) -> None:
        """``tensor.to(half)`` of an FP32 tensor."""
        half = TYPES[to]
        seq = None if seq is None else self.first + seq
        self.trace.op("aten::to", self.start + at, 8, dims=[shape], types=["float"], seq=seq)
        self.trace.op("aten::_to_copy", self.start + at + 1, 6, dims=[shape], types=["float"], seq=seq)
        self.trace.op("aten::copy_", self.start + at + 2, 4, dims=[shape, shape], types=[half, "float"], seq=seq)
        self.trace.launch(CAST, self.start + at + 3, self.start + at + 100, 2)

    def linear(
        self, at: float, precision: str, kernel: str | None = None, autocast: bool = False, seq: int = 1
    ) -> None:
        """``aten::linear`` with the product inside, as autocast leaves it (the op again inside itself) or plain."""
        given, types = TYPES["fp32" if autocast else precision], [TYPES[precision]] * 2
        self.trace.op(
            "aten::linear", self.start + at, 60, dims=[INPUT, WEIGHT], types=[given] * 2, seq=self.first + seq
        )
        inner = at
        if autocast:
            self.cast(at + 1, INPUT, precision)
            self.cast(at + 10, WEIGHT, precision)
            inner = at + 20
            self.trace.op(
                "aten::linear", self.start + inner, 38, dims=[INPUT, WEIGHT], types=types, seq=self.first + seq
            )
        self.trace.op("aten::addmm", self.start + inner + 5, 30, dims=[[128], INPUT, [64, 128]], types=["", *types])
        self.trace.launch(kernel or GEMMS[precision], self.start + inner + 10, self.start + at + 200, 100)

    def backward(self, at: float, precision: str, kernel: str | None = None, seq: int = 1) -> None:
        self.trace.backward("AddmmBackward0", self.start + at, 40, self.first + seq)
        self.trace.op(
            "aten::mm", self.start + at + 5, 30, tid=2, dims=[INPUT, WEIGHT], types=[TYPES[precision]] * 2,
        )  # fmt: skip
        self.trace.launch(kernel or GEMMS[precision], self.start + at + 10, self.start + at + 100, 100, tid=2)

    def gradscaler(self, at: float) -> None:
        """Unscaling and the scaler's update, around the place of the optimizer's step."""
        self.trace.op("aten::_amp_foreach_non_finite_check_and_unscale_", self.start + at, 5)
        self.trace.op("aten::_amp_update_scale_", self.start + at + 90, 5)

    def each(self, write: Any, skipped: tuple[int, ...] = ()) -> Steps:
        """``write`` in each step, and an optimizer step unless the step is among the skipped."""
        for number in range(self.count):
            self.start, self.first = 1000.0 * number, 10 * number
            self.trace.step(number, self.start, 1000)
            write(self)
            self.trace.annotation("Optimizer.zero_grad#SGD.zero_grad", self.start + 950, 5)
            if number not in skipped:
                self.trace.optimizer(self.start + 820, 40)
        return self

    def profile(self, **facts: Any) -> Profile:
        profile: Profile = self.trace.profile(facts=RunFacts(**facts))
        return profile

    def view(self, **facts: Any) -> ProfileView:
        return ProfileView(self.profile(**facts))


@pytest.fixture
def steps(new_trace: Any) -> Any:
    return lambda count=3: Steps(new_trace, count)


def autocast_step(precision: str) -> Any:
    def write(step: Steps) -> None:
        step.linear(100, precision, autocast=True)
        step.backward(400, precision)
        if precision == "fp16":
            step.gradscaler(800)

    return write


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_autocast(steps: Any, precision: str) -> None:
    mode = precision_mode(steps().each(autocast_step(precision)).view())
    assert (mode.label, mode.means) == (f"AMP {precision.upper()} (autocast)", "autocast")
    assert mode.loss_scaling is (precision == "fp16")
    assert (mode.signals.half_ops, mode.signals.wrapped_ops) == (3, 3)
    assert mode.disagreements == ()


@pytest.mark.parametrize(("precision", "label"), [("fp32", "FP32"), ("tf32", "TF32")])
def test_tf32_is_what_the_kernels_compute_in(steps: Any, precision: str, label: str) -> None:
    def write(step: Steps) -> None:
        step.linear(100, "fp32", GEMMS[precision])
        step.backward(400, "fp32", GEMMS[precision])

    mode = precision_mode(steps().each(write).view(matmul_allow_tf32=True, cudnn_allow_tf32=True))
    assert (mode.label, mode.means, mode.loss_scaling) == (label, "", False)
    assert [d.declared for d in mode.disagreements] == ([] if precision == "tf32" else ["tf32"])


def test_three_tf32_products_are_fp32(new_trace: Any) -> None:
    trace = new_trace()
    trace.gpu()
    shape = [[2, 4, 64, 32]] * 3
    trace.op("aten::_scaled_dot_product_efficient_attention", 0, 90, dims=shape, types=["float"] * 3)
    trace.launch("fmha_cutlassF_f32_aligned_64x64_rf_sm80(Params)", 5, 100, 50)
    mode = precision_mode(trace.view())
    assert (mode.label, mode.precision) == ("FP32", "fp32")


@pytest.mark.parametrize(
    ("dtypes", "label"), [([], "FP16 model"), (["float16"], "FP16 model"), (["float16", "float32"], "FP16 model")]
)
def test_a_model_cast_to_half(steps: Any, dtypes: list[str], label: str) -> None:
    def write(step: Steps) -> None:
        step.cast(50, INPUT)
        step.linear(100, "fp16")
        step.backward(400, "fp16")

    mode = precision_mode(steps().each(write).view(parameter_dtypes=dtypes))
    assert (mode.label, mode.loss_scaling) == (label, None)


def apex_o1(step: Steps) -> None:
    """apex/amp/wrap.py casts the arguments, then calls the function; FP32 gradients are unscaled in place."""
    step.cast(50, INPUT, seq=1)
    step.cast(70, WEIGHT, seq=2)
    step.linear(100, "fp16", seq=3)
    step.backward(400, "fp16", seq=3)
    step.trace.backward("ToCopyBackward0", step.start + 460, 10, step.first + 2)
    step.trace.backward("ToCopyBackward0", step.start + 475, 10, step.first + 1)
    step.trace.launch(scale_kernel("fp32", "fp32"), step.start + 700, step.start + 720, 5)


def apex_o2(step: Steps) -> None:
    """FP16 gradients to FP32 masters with the unscaling, masters to FP16 weights after the optimizer's own step."""
    step.linear(100, "fp16")
    step.backward(400, "fp16")
    step.trace.launch(scale_kernel("fp16", "fp32"), step.start + 700, step.start + 720, 5)
    step.trace.launch(scale_kernel("fp32", "fp16"), step.start + 900, step.start + 920, 5)


@pytest.mark.parametrize(("write", "level"), [(apex_o1, "O1"), (apex_o2, "O2")])
def test_apex_by_its_kernels(steps: Any, write: Any, level: str) -> None:
    mode = precision_mode(steps().each(write).view())
    assert (mode.label, mode.loss_scaling) == (f"AMP FP16 (Apex {level})", True)


def test_apex_o3_is_known_to_the_hook_alone(steps: Any) -> None:
    def write(step: Steps) -> None:
        step.linear(100, "fp16")
        step.backward(400, "fp16")

    told = steps().each(write).view(apex_opt_level="O3", parameter_dtypes=["float16"], grad_scaler_scale=1.0)
    assert (precision_mode(told).label, precision_mode(told).loss_scaling) == ("FP16 model (Apex O3)", False)
    assert precision_mode(steps().each(write).view()).label == "FP16 model"


@pytest.mark.parametrize("write", [apex_o1, apex_o2])
def test_apex_skips_a_step(steps: Any, write: Any) -> None:
    view = steps(4).each(write, skipped=(1,)).view()
    health = numeric_health(view, view.selection())
    assert (health.rounds, health.skipped, health.skipped_iterations) == (4, 1, (1,))


@pytest.mark.parametrize(
    ("kernel", "conversion"),
    [
        (scale_kernel("fp16", "fp32"), ("fp16", "fp32")),
        (scale_kernel("fp32", "fp32"), ("fp32", "fp32")),
        ("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float, float>, float>(long)", None),
        ("void multi_tensor_apply_kernel<TensorListMetadata<2>, transformer_engine::ScaleFunctor<float>>(long)", None),
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<ScaleFunctor<float, float>>()", None),
    ],
)
def test_kernels_of_apex(kernel: str, conversion: Any) -> None:
    assert apex_conversion(kernel) == conversion


def test_transformer_engine_in_fp8(steps: Any) -> None:
    def write(step: Steps, product: str = FP8_GEMM) -> None:
        step.trace.op("_LayerNormLinear", step.start + 100, 80, dims=[INPUT, [64]], types=["c10::BFloat16"] * 2, seq=1)
        for index, kernel in enumerate((TE_NORM, TE_CAST, product)):
            step.trace.launch(kernel, step.start + 110 + 10 * index, step.start + 300 + 60 * index, 50)

    mode = precision_mode(steps().each(write).view())
    assert (mode.label, mode.means) == ("FP8 (Transformer Engine)", "transformer_engine")
    assert (mode.signals.transformer_engine_ops, mode.signals.transformer_engine_kernels) == (3, 6)

    def with_attention(step: Steps) -> None:
        write(step)
        shape = [[2, 4, 64, 32]] * 3
        step.trace.op("aten::_flash_attention_forward", step.start + 500, 80, dims=shape, types=["c10::BFloat16"] * 3)
        flash = "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t>>(Flash_fwd_params)"
        step.trace.launch(flash, step.start + 510, step.start + 600, 300)

    mode = precision_mode(steps().each(with_attention).view())
    assert mode.label == "FP8 (Transformer Engine)"
    assert [share.precision for share in mode.shares] == ["bf16", "fp8"]
    without = precision_mode(steps().each(lambda step: write(step, BF16_GEMM)).view())
    assert without.precision == "bf16"
    assert [d.declared for d in without.disagreements] == ["transformer_engine"]


def test_a_region_with_autocast_off(steps: Any) -> None:
    def write(step: Steps) -> None:
        step.trace.module("", step.start + 90, 300)
        step.trace.module("body", step.start + 95, 180)
        step.linear(100, "fp16", autocast=True, seq=1)
        step.linear(200, "fp16", autocast=True, seq=2)
        step.trace.module("head", step.start + 290, 80)
        step.linear(300, "fp32", seq=3)
        step.backward(400, "fp32", seq=3)
        step.backward(500, "fp16", seq=2)
        step.backward(600, "fp16", seq=1)

    mode = precision_mode(steps().each(write).view(autocast=True, autocast_dtype="float16"))
    assert mode.label == "AMP FP16 (autocast)"
    assert [(r.module, r.op_type, r.precision, round(r.percent)) for r in mode.regions] == [
        ("head", "linear", "fp32", 33)
    ]


def test_autocast_that_changed_nothing(steps: Any) -> None:
    def write(step: Steps) -> None:
        step.linear(100, "fp32")
        step.backward(400, "fp32")
        step.gradscaler(800)

    facts = {"autocast": True, "autocast_dtype": "float16", "run_name": "resnet amp", "grad_scaler": True}
    mode = precision_mode(steps().each(write).view(**facts))
    assert mode.label == "FP32"
    assert [d.declared for d in mode.disagreements] == ["autocast", "grad_scaler", "name"]


def test_neither_shapes_nor_kernels_that_tell_is_unknown(new_trace: Any) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 90)
    mode = precision_mode(trace.view())
    assert (mode.label, mode.precision, mode.loss_scaling, mode.disagreements) == ("", "", None, ())
    trace = new_trace()
    trace.op("aten::add", 0, 90, dims=[[2], [2]], types=["float", "float"])
    assert precision_mode(trace.view()).label == ""


@pytest.mark.parametrize(
    ("name", "precision", "otherwise"),
    [
        ("resnet50/amp", "fp32", True),
        ("resnet50/amp-bf16", "bf16", False),
        ("resnet50/amp-bf16", "fp16", True),
        ("fp32", "tf32", True),
        ("fp32_vs_fp16", "fp16", False),
        ("sample/champion", "fp32", False),
        ("tf32", "fp32", True),
        ("amp", "", False),
        ("apex_o2", "fp32", True),
    ],
)
def test_names_that_say_otherwise(steps: Any, name: str, precision: str, otherwise: bool) -> None:
    def write(step: Steps) -> None:
        if precision:
            step.linear(100, precision if precision in TYPES else "fp32", GEMMS[precision])
        else:
            step.trace.op("aten::add", step.start + 100, 10)

    assert named_otherwise(name, precision_mode(steps().each(write).view())) is otherwise


@pytest.mark.parametrize("skipped", [(), (0,), (1, 2), (0, 1, 2)])
def test_skipped_steps_are_those_without_an_optimizer_step(steps: Any, skipped: tuple[int, ...]) -> None:
    view = steps().each(autocast_step("fp16"), skipped).view()
    health = numeric_health(view, view.selection())
    assert (health.loss_scaling, health.rounds) == (True, 3)
    assert (health.skipped, health.skipped_iterations) == (len(skipped), skipped)


def test_steps_decided_on_the_device_are_unknown_without_the_hook(steps: Any) -> None:
    def write(step: Steps) -> None:
        autocast_step("fp16")(step)
        step.trace.op("aten::_fused_adam_", step.start + 825, 20)

    def skipped(**facts: Any) -> int | None:
        view = steps().each(write).view(**facts)
        health = numeric_health(view, view.selection())
        assert health.decided_on_device
        return health.skipped

    assert skipped() is None
    assert skipped(device_checked_steps=3, device_skipped_steps=2) == 2
    # Three good steps in a row at the end of three recorded ones.
    assert skipped(grad_scaler_growth_tracker=3) == 0
    assert skipped(grad_scaler_growth_tracker=2) is None


def test_without_a_scaler_skipped_steps_are_unknown(steps: Any) -> None:
    view = steps().each(autocast_step("bf16")).view()
    health = numeric_health(view, view.selection())
    assert (health.loss_scaling, health.rounds, health.skipped, health.scale) == (False, None, None, None)


@pytest.mark.parametrize(
    ("precision", "label"),
    [
        ("fp32", "FP32"),
        ("tf32", "TF32"),
        ("amp-fp16", "AMP FP16 (autocast)"),
        ("amp-bf16", "AMP BF16 (autocast)"),
    ],
)
@pytest.mark.parametrize("model", ["mlp", "alexnet", "vgg16", "resnet50", "custom"])
def test_recorded_runs(model: str, precision: str, label: str) -> None:
    (stored,) = tb_dlprof_plugin.read_profiles(RECORDED / model / precision)
    mode = precision_mode(ProfileView(stored.profile))
    assert mode.label == label
    assert mode.loss_scaling is (precision == "amp-fp16")
    assert mode.disagreements == ()


def test_a_recorded_step_that_overflowed() -> None:
    view = recorded_view(PLANTED / "loss_scale_overflow" / "fault")
    health = numeric_health(view, view.selection())
    assert (health.rounds, health.skipped, health.skipped_iterations, health.scale) == (5, 2, (1, 3), 2.0**24)


@pytest.mark.parametrize(
    ("trace", "label"),
    [
        ("bert_bf16", "BF16 model"),
        ("vit_amp", "AMP BF16 (autocast)"),
        ("resnet50_amp_fp16", "AMP FP16 (autocast)"),
        ("fp8", "FP8 (torch._scaled_mm)"),
        ("resnet50_fp32", "FP32"),
        ("cpu_plain", ""),
    ],
)
def test_traces_without_facts(trace: str, label: str) -> None:
    from tb_dlprof_plugin.analysis import analyze_trace

    view = ProfileView(analyze_trace(ROOT / "tests" / "traces" / f"{trace}.pt.trace.json.gz"))
    assert precision_mode(view).label == label
