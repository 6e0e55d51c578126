"""Which ops could use Tensor Cores on which GPU."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.model.dtypes import COMPLEX_DOUBLE, COMPLEX_FLOAT, dtypes_in
from tb_dlprof_plugin.model.profile import Verdict
from tb_dlprof_plugin.model.shapes import InputShapes, TensorList
from tb_dlprof_plugin.names.kernel_verdicts import classify_kernel
from tb_dlprof_plugin.names.tensor_core_eligibility import (
    computes_product,
    eligible,
    eligible_by_kernel,
    is_depthwise,
    possible_precisions,
    tensor_core_precisions,
)

HOPPER, ADA, AMPERE, TURING, VOLTA, PASCAL = (9, 0), (8, 9), (8, 0), (7, 5), (7, 0), (6, 1)
CONV = ((8, 64, 32, 32), (128, 64, 3, 3), (128,))
DEPTHWISE = ((8, 64, 32, 32), (64, 1, 3, 3), (64,))
DEPTHWISE_BACKWARD = ((8, 64, 30, 30), (8, 64, 32, 32), (64, 1, 3, 3))
FLOATS = dtypes_in("float, float")


@pytest.mark.parametrize(
    "op",
    [
        "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_scaled_mm", "aten::cudnn_convolution",
        "aten::convolution_backward", "aten::_scaled_dot_product_flash_attention", "aten::_cudnn_rnn",
    ],
)  # fmt: skip
def test_ops_that_call_a_matrix_routine_are_eligible(op: str) -> None:
    assert eligible(op, (), FLOATS, HOPPER) == Verdict.YES
    assert eligible(op, (), FLOATS, VOLTA) == Verdict.YES
    assert eligible(op, (), FLOATS, PASCAL) == Verdict.NO
    assert eligible(op, (), FLOATS, None) == Verdict.UNKNOWN


@pytest.mark.parametrize(
    "op",
    [
        "aten::conv2d", "aten::convolution", "aten::_convolution", "aten::linear", "aten::matmul", "aten::prelu",
        "aten::mv", "aten::addmv", "aten::addr", "aten::relu", "aten::copy_", "aten::_conv_depthwise2d",
        "aten::scaled_dot_product_attention",
    ],
)  # fmt: skip
def test_wrappers_and_other_ops_are_not_eligible_with_or_without_a_gpu(op: str) -> None:
    assert eligible(op, CONV, FLOATS, HOPPER) == Verdict.NO
    assert eligible(op, CONV, FLOATS, None) == Verdict.NO


def test_a_depthwise_convolution_is_no_matrix_product() -> None:
    assert eligible("aten::cudnn_convolution", DEPTHWISE, FLOATS, HOPPER) == Verdict.NO
    assert eligible("aten::convolution_backward", DEPTHWISE_BACKWARD, FLOATS, HOPPER) == Verdict.NO
    assert eligible("aten::cudnn_convolution", CONV, FLOATS, HOPPER) == Verdict.YES


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (DEPTHWISE, True),
        (((8, 64, 32, 32), (64, 2, 3, 3)), False),
        (((8, 1, 32, 32), (16, 1, 3, 3)), False),
        ((), False),
        ((TensorList(((8, 64, 32, 32), (64, 1, 3, 3))), (64, 1, 3, 3)), False),
        (((8, 64, 32, 32),), False),
        (((), ()), False),
    ],
)
def test_depthwise_is_read_off_the_weight(shapes: InputShapes, expected: bool) -> None:
    assert is_depthwise("aten::cudnn_convolution", shapes) is expected


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        ((8, 0), Verdict.YES), ((9, 0), Verdict.YES), ((10, 0), Verdict.YES),
        ((7, 0), Verdict.NO), ((8, 6), Verdict.NO), ((8, 9), Verdict.NO), ((12, 0), Verdict.NO),
    ],
)  # fmt: skip
def test_fp64_is_eligible_only_where_tensor_cores_take_it(capability: tuple[int, int], expected: Verdict) -> None:
    assert eligible("aten::mm", (), dtypes_in("double, double"), capability) == expected


def test_complex_matrices_are_eligible_where_tensor_cores_take_their_parts() -> None:
    # TF32 for FP32, FP64 for FP64.
    single, double = (COMPLEX_FLOAT, COMPLEX_FLOAT), (COMPLEX_DOUBLE, COMPLEX_DOUBLE)
    gpus = (HOPPER, ADA, AMPERE, TURING)
    yes, no = Verdict.YES, Verdict.NO
    assert [eligible("aten::mm", (), single, capability) for capability in gpus] == [yes, yes, yes, no]
    assert [eligible("aten::mm", (), double, capability) for capability in gpus] == [yes, no, yes, no]


def test_a_triton_template_is_a_matrix_routine_and_other_triton_kernels_are_not() -> None:
    assert eligible("triton_tem_fused_mm_0", (), FLOATS, HOPPER) == Verdict.YES
    assert eligible("triton_tem_fused_mm_0", (), FLOATS, PASCAL) == Verdict.NO
    assert eligible("triton_poi_fused_add_0", (), FLOATS, HOPPER) == Verdict.NO


def test_what_an_op_could_run_in_is_what_the_gpu_takes() -> None:
    assert possible_precisions("fp32", HOPPER) == ("tf32", "fp16", "bf16")
    assert possible_precisions("fp32", VOLTA) == ("fp16",)
    assert possible_precisions("bf16", TURING) == ("fp16",)
    assert possible_precisions("fp64", ADA) == ()
    assert possible_precisions("", HOPPER) == ()
    assert possible_precisions("fp32", None) == ()


def test_precisions_grow_with_the_generations() -> None:
    assert {capability: tensor_core_precisions(capability) for capability in (None, PASCAL, VOLTA, TURING)} == {
        None: (),
        PASCAL: (),
        VOLTA: ("fp16",),
        TURING: ("fp16", "int8"),
    }
    assert tensor_core_precisions(AMPERE) == ("fp16", "bf16", "tf32", "int8", "fp64")
    assert tensor_core_precisions((8, 6)) == ("fp16", "bf16", "tf32", "int8")
    assert tensor_core_precisions(ADA) == ("fp16", "bf16", "tf32", "int8", "fp8")
    assert tensor_core_precisions(HOPPER) == ("fp16", "bf16", "tf32", "int8", "fp8", "fp64")


@pytest.mark.parametrize(
    ("kernel", "capability", "expected"),
    [
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", HOPPER, Verdict.YES),
        ("volta_h884cudnn_256x64_ldg8_relu_exp_small_nhwc_tn_v1", VOLTA, Verdict.YES),
        ("flash_fwd_kernel<traits>", HOPPER, Verdict.YES),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", PASCAL, Verdict.NO),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", None, Verdict.UNKNOWN),
        ("gemvNSP_kernel<float>", HOPPER, Verdict.NO),
        ("triton_poi_fused_add_0", None, Verdict.NO),
        ("ampere_sgemm_128x64_nn", AMPERE, Verdict.YES),
        ("ampere_dgemm_128x64_nn", AMPERE, Verdict.YES),
        ("ampere_dgemm_128x64_nn", ADA, Verdict.NO),
        # What serves a product counts as it does within an op.
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float>", HOPPER, Verdict.YES),
        ("void cudnn::ops::nchwToNhwcKernel<float, float, float>", HOPPER, Verdict.YES),
        ("flash_bwd_dot_do_o_kernel<traits>", HOPPER, Verdict.YES),
        ("void conv2d_c1_k1_nchw_hw_packed_kernel<float, float>", HOPPER, Verdict.NO),
        ("void at::native::vectorized_elementwise_kernel<4>", HOPPER, Verdict.NO),
    ],
)
def test_where_no_op_of_pytorch_tells_the_kernel_does(kernel, capability, expected) -> None:
    found = classify_kernel(kernel)
    assert eligible_by_kernel(kernel, found.kind, found.rule, capability) == expected


def test_a_kernel_that_serves_a_product_computes_none() -> None:
    assert computes_product("gemm", "nvjet")
    assert not computes_product("attention", "flash-helper")
    assert not computes_product("transpose", "cudnn-layout")
