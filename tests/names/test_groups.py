"""Kernels by what they do and how."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.names.kernel_groups import GROUPS, PARENTS, group_label, groups_named, kernel_group
from tb_dlprof_plugin.names.kernel_verdicts import classify_kernel

CONVOLUTION, BACKWARD = "aten::cudnn_convolution", "aten::convolution_backward"


# Names recorded on an H200, and those of the K80 and P40 in the nvprof studies of 2019.
@pytest.mark.parametrize(
    ("name", "op", "group"),
    [
        ("void cudnn::winograd_nonfused::winogradWgradData4x4<float, float>(Params)", BACKWARD, "convolution.winograd"),
        ("maxwell_scudnn_winograd_128x128_ldg1_ldg4_tile148n_nt", CONVOLUTION, "convolution.winograd"),
        ("void cudnn::detail::winograd3x3Kernel<float, 1, 4, 8>(Params)", CONVOLUTION, "convolution.winograd"),
        ("void fft2d_r2c_32x32<float, false, 0u, false>(float2*, float const*)", CONVOLUTION, "convolution.fft"),
        (
            "sm80_xmma_gemm_cf32cf32_f32f32_cf32_nt_n_tilesize32x32x8_stage3_warpsize2x2x1_ffma_aligna8_alignc8_execute",
            CONVOLUTION,
            "convolution.fft",
        ),
        ("void implicit_convolve_sgemm<float, float, 128, 6, 7>(int)", CONVOLUTION, "convolution.implicit_gemm"),
        ("maxwell_scudnn_128x64_relu_interior_nn", CONVOLUTION, "convolution.implicit_gemm"),
        ("void cudnn::cnn::wgrad_alg1_engine<float, float, 128>(int)", BACKWARD, "convolution.implicit_gemm"),
        ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3>(int)", BACKWARD, "convolution.implicit_gemm"),
        (
            "sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_execute",
            CONVOLUTION,
            "convolution.implicit_gemm",
        ),
        ("nvjet_sm90_hsh_128x160_64x5_1x1_h_bz_NTT", CONVOLUTION, "convolution.gemm"),
        ("nvjet_sm90_hsh_128x160_64x5_1x1_h_bz_NTT", "aten::addmm", "gemm"),
        ("conv2d_c1_k1_nchw_shmem_tiling", CONVOLUTION, "convolution.direct"),
        (
            "void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3, float, int>(float)",
            "aten::_conv_depthwise2d",
            "convolution.direct",
        ),
        ("triton_tem_fused_convolution_relu_2", "aten::convolution", "convolution.other"),
        (
            "void at::native::(anonymous namespace)::max_pool_backward_nchw<float, float, int>(float const*)",
            "aten::max_pool2d_with_indices_backward",
            "pooling.backward",
        ),
        (
            "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, int>(int)",
            "aten::max_pool2d_with_indices",
            "pooling.forward",
        ),
        ("Memcpy HtoD (Pinned -> Device)", "aten::copy_", "copy.host_to_device"),
        ("Memcpy DtoH (Device -> Pageable)", "aten::item", "copy.device_to_host"),
        ("Memset (Device)", "aten::zero_", "set"),
        ("ncclBroadcastKernel_copy_i8(ncclColl)", "", "communication.broadcast"),
        ("igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt32x256x32_wt16x64x4", "", "convolution.implicit_gemm"),
        ("fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausal", "", "attention"),
        ("void (anonymous namespace)::multimem_all_reduce_kernel<float, 16>(float*)", "", "communication.other"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "", "communication.other"),
        ("void cudnn::engines_precompiled::nchwToNhwcKernel<__half, __half, float>(int)", CONVOLUTION, "layout"),
    ],
)
def test_a_kernel_is_in_the_group_of_what_it_does_and_how(name: str, op: str, group: str) -> None:
    assert kernel_group(name, classify_kernel(name, op=op, compute_capability=(9, 0)).kind) == group


def test_every_group_has_a_label_and_a_group_of_groups_holds_its_parts_once() -> None:
    parts = [part for parent in PARENTS for part in groups_named(parent)]
    assert sorted(parts) == sorted(group for group in GROUPS if "." in group)
    assert all(group_label(name) for name in (*GROUPS, *PARENTS))
    assert groups_named("winograd") == []
    assert groups_named("gemm") == ["gemm"]
