"""Kernel names from recordings, and whether they run on Tensor Cores."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.names import KernelClass, classify_kernel
from tb_dlprof_plugin.names.kernel_rules import RULES

XMMA90 = "sm90_xmma_gemm_{}_tn_n_tilesize64x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
FLASH = (
    "void pytorch_flash::flash_{}_kernel<pytorch_flash::Flash_{}_kernel_traits<64, 128, 64, 4, false, false, "
    "cutlass::{}, pytorch_flash::Flash_kernel_traits<64, 128, 64, 4, cutlass::{}> >, false>(Params)"
)

ON_TENSOR_CORES: list[tuple[str, str | None, str]] = [
    # cuBLAS
    ("nvjet_sm90_hsh_128x64_64x8_2x1_v_bz_TNN", "fp16", "gemm"),
    ("nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NNT", "bf16", "gemm"),
    ("nvjet_sm90_sss_64x64_64x8_1x1_h_bz_TNN", "tf32", "gemm"),
    ("nvjet_tst_192x128_64x5_1x2_h_bz_coopB_NTN", "bf16", "gemm"),
    ("nvjet_sm100_qqtst_128x128_128x6_2x1_2cta_v_bz_TNT", "fp8", "gemm"),
    ("nvjet_sm120_hsh_128x64_64x8_2x1_v_bz_TNN", "fp16", "gemm"),
    (XMMA90.format("bf16bf16_bf16f32_f32"), "bf16", "gemm"),
    (XMMA90.format("f16f16_f16f32_f32"), "fp16", "gemm"),
    (XMMA90.format("f32f32_tf32f32_f32"), "tf32", "gemm"),
    (
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x16_stage4_warpsize2x2x1_tensor16x8x8_execute_kernel"
        "__5x_cublas"), "tf32", "gemm",
    ),
    (
        ("sm80_xmma_gemm_f64f64_f64f64_f64_tn_n_tilesize64x64x16_stage4_warpsize2x2x1_tensor8x8x4_execute_kernel"
        "__5x_cublas"), "fp64", "gemm",
    ),
    ("volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_tn", "fp16", "gemm"),
    ("volta_h884gemm_128x64_ldg8_nn", "fp16", "gemm"),
    ("turing_fp16_s1688gemm_fp16_128x64_sliced1x2_ldg8_f2f_nt", "fp16", "gemm"),
    ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x6_tn", "fp16", "gemm"),
    ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", "bf16", "gemm"),
    # CUTLASS
    ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4>(Params)", "tf32", "gemm"),
    ("void cutlass::Kernel<cutlass_80_tensorop_s16816gemm_f16_64x64_32x6_nn_align8>(Params)", "fp16", "gemm"),
    ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_32x3_nn_align8>(Params)", "bf16", "gemm"),
    ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_f16_s161616gemm_f16_32x32_32x1_tn_align8>(Params)", "fp16",
     "gemm"),
    ("void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_64x64_16x3_nn_align1>(Params)", "fp64", "gemm"),
    # cuDNN
    (
        ("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x64x32_stage5_"
        "warpsize2x2x1_g1_tensor16x8x8_execute_kernel__5x_cudnn"), "tf32", "convolution",
    ),
    (
        ("sm90_xmma_dgrad_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_"
        "strided_execute_kernel__5x_cudnn"), "fp16", "convolution",
    ),
    ("turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_medium_nhwc_tn_v1", "fp16", "convolution"),
    ("void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688wgrad_optimized_tf32_256x128_16x3_nhwc_align4>(Params)",
     "tf32", "convolution"),
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_6_64x64x64_4x1x1_kernel0_0", None,
     "attention"),
    ("void RNN_blockPersist_fp_LSTM_HMMA<__half, __half, float, 1, 64>(__half const*)", "fp16", "rnn"),
    # Blackwell, and the libraries of inference
    ("nvjet_sm103_tst_176x128_64x5_2x1_2cta_v_bz_TNT", "bf16", "gemm"),
    ("cutlass3x_sm100_tensorop_s128x128x8tf32gemm_f32_f32_f32_f32_f32_128x64x32", "tf32", "gemm"),
    ("cutlass3x_sm100_tensorop_gemm_bf16_bf16_f32_bf16_bf16_256x256x64_2x2x1_0_tnt_align8_2sm", "bf16", "gemm"),
    ("cutlass3x_sm100_tensorop_gemm_64x128f32xe4m3_1x128f32xe4m3_f32_f16_f16_64x128x128_1x1x1_0_nnn_align16_1sm", "fp8",
     "gemm"),
    ("cutlass3x_sm100_bstensorop_s256x128x64gemm_block_scaled_ue4m3xf4_ue4m3xf4_f32_bf16_bf16_256x128x256", "nvfp4",
     "gemm"),
    ("cutlass3x_sm100_bstensorop_s128x128x32gemm_block_scaled_ue8m0xe4m3_ue8m0xe4m3_f32_f16_f16", "mxfp8", "gemm"),
    ("cutlass3x_sm100_bstensorop_gemm_ue8m0xf4_ue8m0xf4_f32_f16_f16_128x128x256", "mxfp4", "gemm"),
    (("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>, cutlass::gemm::collective::"
      "CollectiveMma<cutlass::gemm::MainloopSm100TmaUmmaWarpSpecializedBlockScaled<8>, cutlass::nv_float4_t<cutlass::"
      "float_e2m1_t> > > >(Params)"), "nvfp4", "gemm"),
    ("bmm_MxE4m3_MxE2m1MxE4m3_Fp32_Ab32_Bb32_Cb32_t128x8x512_s3_et128x8_m128x8x32_c1x1x1_rM_TN_sm100f", "mxfp8",
     "gemm"),
    ("bmm_Bfloat16_MxE2m1MxE2m1_Fp32_t128x8x256_s4_sm100f", "mxfp4", "gemm"),
    ("bmm_E2m1_E2m1E2m1_Fp32_t128x64x256_s6_et128x64_m128x64x64_cga1x1x1_16dp256b_TN_transOut_sm100a", "nvfp4", "gemm"),
    ("gemm_Bfloat16_E4m3E4m3_Fp32_t128x8x512_s7_sm100f", "fp8", "gemm"),
    ("bmm_Bfloat16_Bfloat16Bfloat16_Fp32_t128x64x128_sm100f", "bf16", "gemm"),
    ("void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 2112u, 7168u, 1u>(float*, int*)", "fp8", "gemm"),
    ("void deep_gemm::sm100_bf16_gemm_impl<0u, 2112u, 7168u, 1u>(int*)", "bf16", "gemm"),
    ("fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP64VarSeqQ128Kv128PersistentContext", "bf16", "attention"),
    ("fmhaSm100aKernel_QE4m3KvE2m1OE4m3H128PagedKvCausalP32VarSeqQ128Kv128PersistentContext", "fp8", "attention"),
    ("kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_object_at__tensor0000o1110", None,
     "attention"),
    ("void flashinfer::BatchPrefillWithPagedKVCacheKernel<(flashinfer::MaskMode)1, __half>(Params)", "fp16",
     "attention"),
    # Attention
    (FLASH.format("fwd", "fwd", "half_t", "half_t"), "fp16", "attention"),
    (FLASH.format("bwd_dq_dk_dv_loop_seqk_parallel", "bwd", "bfloat16_t", "bfloat16_t"), "bf16", "attention"),
    ("fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel::Params)", "3xtf32",
     "attention"),
    ("fmha_cutlassB_f16_aligned_64x64_k64_dropout_sm80(Params)", "fp16", "attention"),
    ("fmha_cutlassF_bf16_aligned_64x128_rf_sm80(Params)", "bf16", "attention"),
]  # fmt: skip

OFF_TENSOR_CORES = [
    (
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_"
        "kernel__5x_cublas"), "gemm",
    ),
    (
        ("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize32x32x8_stage3_warpsize1x2x1_g1_ffma_"
        "aligna4_alignc4_execute_kernel__5x_cudnn"), "convolution",
    ),
    # Sums up what the first kernel of a split product left; the name is that of the first up to its end.
    (
        ("sm90_xmma_wgrad_indexed_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize64x64x64_warpgroupsize1x1x1_g1_"
        "execute_split_k_kernel__5x_cudnn"), "reduction",
    ),
    (
        ("sm90_xmma_depthwise_convolution_fprop_tiling_f16f16_f32f32_f32_nhwckrsc_nhwc_tilesize1x8x8_1x5x5_1x1x1_"
        "stage2_warpsize4x1x1_g64_betaFalse_execute_kernel__5x_cudnn"), "convolution",
    ),
    ("void xmma__5x_cudnn::implicit_gemm::strided_dgrad_indexed::kernel_helper_stage_0<Params_pre_hopper>(Params)",
     "elementwise"),
    ("void at::cuda::detail::prepare_grouped_gemm_data<cutlass::float_e4m3_t, cutlass::float_e4m3_t>(Params)",
     "elementwise"),
    ("void RNN_blockPersist_bp_LSTM_FMA<__half, __half, float, 96>(block_bp_args_lstm<__half, __half>)", "rnn"),
    ("void elemWiseRNNcell<__half, __half, float, (cudnnRNNMode_t)2, (cudnnRNNBiasMode_t)2>(int)", "rnn"),
    ("void convolveNd_dgrad_float_engine<float, 3, 512, 6, 5, 3, 3, 3, false>(int)", "convolution"),
    ("void cudnn::engines_precompiled::convertTensor_kernel<float, float, float, (cudnnKernelDataType_t)2>(float)",
     "copy"),
    ("void trsm_left_kernel<int, double, 256, 4, true, false, false, false, true>(Params)", "gemm"),
    ("ampere_sgemm_128x64_nn", "gemm"),
    ("volta_sgemm_32x32_sliced1x4_tn", "gemm"),
    ("volta_dgemm_64x64_nn", "gemm"),
    ("ampere_scudnn_128x64_relu_medium_nn_v1", "convolution"),
    ("maxwell_fp16_sgemm_fp16_128x128_nn", "gemm"),
    ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)", "gemm"),
    ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>(Params)", "gemm"),
    ("void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true>(Params)", "gemm"),
    ("void cublasLt::splitKreduce_kernel<32, 16, int, float, float, __half>(Params)", "reduction"),
    ("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(Params)", "convolution"),
    ("ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "convolution"),
    ("void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1, false, true, true>(Params)", "convolution"),
    ("void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true, (cudnnKernelDataType_t)0>(Params)",
     "transpose"),
    ("void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(Params)", "normalization"),
    ("void at::native::batch_norm_collect_statistics_kernel<at::native::InvStd, float, float, float, int>(Params)",
     "normalization"),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)",
     "elementwise"),
    ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>(Params)",
     "reduction"),
    ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::Functor>(Params)", "optimizer"),
    ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 4, true, false>(Params)", "softmax"),
    ("void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3, float, int>(Params)", "convolution"),
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
    ("ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)", "communication"),
    ("void pytorch_flash::flash_bwd_dot_do_o_kernel<true, pytorch_flash::Flash_bwd_kernel_traits<64> >(Params)",
     "attention"),
    ("fmha_cutlassF_f32_aligned_64x64_rf_sm70(Params)", "attention"),
    ("triton_poi_fused_add_relu_0", "elementwise"),
    ("triton_red_fused_native_layer_norm_2", "elementwise"),
    ("triton_softmax_3_0", "softmax"),
    ("loop_add_fusion_3__1", "elementwise"),
    ("Memcpy HtoD (Pinned -> Device)", "copy"),
    ("Memset (Device)", "set"),
]  # fmt: skip

UNKNOWN = [
    "my_kernel(float*, float const*, int)",
    "fused_linear_fwd_v3",
    "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN",
    "triton_tem_fused_mm_0",
    "gemm_fusion_dot_143",
    "nested_gemm_fusion_dot_4",
    "triton_gemm_dot_12",
    "RNN_block_persist_fp_LSTM",
    # cuSOLVER: on Tensor Cores in double precision, not in single.
    "void kernel<getrf_wo_pivot_params_<float, 0, 256, 1, 64, 64, 68, 8, 1, 1> >(int, int, void*)",
]


@pytest.mark.parametrize(("name", "precision", "kind"), ON_TENSOR_CORES)
def test_the_name_says_that_it_runs_on_tensor_cores(name: str, precision: str | None, kind: str) -> None:
    found = classify_kernel(name, compute_capability=(9, 0))
    assert (found.tensor_core, found.precision, found.kind) == (True, precision, kind), found.rule


@pytest.mark.parametrize(("name", "kind"), OFF_TENSOR_CORES)
def test_the_name_says_that_it_does_not(name: str, kind: str) -> None:
    found = classify_kernel(name, compute_capability=(9, 0))
    assert (found.tensor_core, found.precision, found.kind) == (False, None, kind), found.rule


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_neither_name_nor_context_settles_is_unknown(name: str) -> None:
    found = classify_kernel(name, compute_capability=(9, 0))
    assert (found.tensor_core, found.precision) == (None, None), found.rule


@pytest.mark.parametrize("name", [*(name for name, *_ in ON_TENSOR_CORES), *UNKNOWN])
def test_a_gpu_below_compute_capability_7_has_no_tensor_cores(name: str) -> None:
    assert classify_kernel(name, compute_capability=(6, 1)).tensor_core is False


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("c10::Half", KernelClass(True, "fp16", "gemm", "triton-template+half-input")),
        ("c10::BFloat16", KernelClass(True, "bf16", "gemm", "triton-template+half-input")),
        ("signed char", KernelClass(True, "int8", "gemm", "triton-template+narrow-input")),
        ("float", KernelClass(None, None, "gemm", "triton-template")),
    ],
)
def test_the_inputs_settle_a_triton_template(dtype: str, expected: KernelClass) -> None:
    types = f'["{dtype}", "{dtype}"]'
    assert classify_kernel("triton_tem_fused_mm_0", op="aten::mm", input_types=types) == expected


@pytest.mark.parametrize(("dtype", "precision"), [("c10::Half", "fp16"), ("c10::BFloat16", "bf16")])
def test_cudnn_attention_is_called_f16_for_both_16_bit_formats(dtype: str, precision: str) -> None:
    name = "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0"
    assert classify_kernel(name, input_types=f'["{dtype}", "{dtype}"]').precision == precision


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("aten::convolution_backward", "convolution"),
        ("aten::_scaled_dot_product_efficient_attention", "attention"),
        ("aten::_cudnn_rnn", "rnn"),
        ("aten::mm", "gemm"),
    ],
)
def test_the_op_says_what_a_matrix_product_is_for(op: str, kind: str) -> None:
    assert classify_kernel("nvjet_sm90_hsh_64x64_TNN", op=op).kind == kind


def test_the_rule_that_decided_is_named() -> None:
    assert classify_kernel("ampere_sgemm_128x64_nn").rule == "ffma-gemm"
    assert classify_kernel("my_kernel").rule == "unknown-name"
    assert classify_kernel("nvjet_hsh_64x64", compute_capability=(6, 0)).rule == "no-tensor-cores"


def test_rule_ids_are_unique() -> None:
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", ["my_wmma_transpose", "user_gather_gemm", "pool_attention_fused", "sorted_matmul"])
def test_everyday_words_settle_nothing_in_a_strangers_kernel(name: str) -> None:
    assert classify_kernel(name, compute_capability=(9, 0)).tensor_core is None


@pytest.mark.parametrize(
    "name",
    [
        "ncclSymkDevKernel_AllReduce_AGxLLMC_R_sum_bf16(ncclSymkDevWorkArgs4K)",
        "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long)",
        "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16>(unsigned long)",
        "void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<float, 16, 8>(float*)",
        "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*)",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<3, __nv_bfloat16>(int)",
        "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768, 4096>(__nv_bfloat16*)",
        "void deep_ep::internode_ll::dispatch<true, 7168>(void*)",
        "void dpsk::ep::internode::dispatch<false, 8, true, 8>(int4*, float*, long*)",
        "void dpsk::ep::internode::notify_dispatch<false, 4>(int const*, long*, int)",
        "nvshmem_all_to_all_vdev_kernel",
        "mscclKernel_Sum_half_Simple_false(mscclKernelArgs)",
    ],
)
def test_exchanges_between_gpus_are_communication_by_whatever_library(name: str) -> None:
    found = classify_kernel(name, compute_capability=(10, 0))
    assert (found.tensor_core, found.kind) == (False, "communication")


# What an AMD GPU does on its matrix cores is unknown, never "no"; what is "no" uses none.
@pytest.mark.parametrize(
    ("name", "verdict", "kind"),
    [
        ("Cijk_Ailk_Bjlk_BBS_BH_Bias_HAS_SAV_UserArgs_MT128x64x32_MI32x32x1_SN_LDSB0_AFC1", None, "gemm"),
        ("Cijk_Ailk_Bljk_SB_MT64x64x8_SE_K1_TT4_4_WG16_16_1", False, "gemm"),
        ("igemm_wrw_gtcx2_nhwc_bf16_bx0_ex1_bt256x128x16_wt32x32x8_ws2x1_wr2x2", None, "convolution"),
        ("void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm>(ck::Argument)", None, "gemm"),
        ("_ZN2ck40kernel_gemm_xdl_cshuffle_v3_multi_d_b_preshuffle", None, "gemm"),
        ("void ck::kernel_grouped_conv_fwd_multiple_abd_xdl_cshuffle<ck::Gridwise>(int)", None, "convolution"),
        ("void ck_tile::kentry<256, 1, ck_tile::FmhaBwdDQDKDVKernel<ck_tile::Problem> >(int)", None, "attention"),
        ("void ck_tile::kentry<64, 2, ck_tile::FmhaBwdOGradDotOKernel<ck_tile::Problem> >(int)", False, "attention"),
        ("void ck_tile::kentry<1, ck_tile::Rmsnorm2dFwd<ck_tile::Pipeline> >(int)", False, "normalization"),
        ("aiter::fmha_fwd_hd128_bf16_causal_rtna_group", None, "attention"),
        ("attn_fwd", None, "attention"),
        ("batched_transpose_16x64_pack_1x4_ediv_1x2_half", False, "transpose"),
        ("SubTensorOpWithCastTensor1d", False, "elementwise"),
        ("__amd_rocclr_copyBuffer.kd", False, "copy"),
        ("__amd_rocclr_fillBufferAligned.kd", False, "set"),
    ],
)
def test_kernels_of_amd_have_their_kind_and_no_wrong_no(name: str, verdict: bool | None, kind: str) -> None:
    found = classify_kernel(name)
    assert (found.tensor_core, found.kind) == (verdict, kind)


def test_attention_in_triton_is_on_tensor_cores_where_its_inputs_are_narrow() -> None:
    assert classify_kernel("_attn_fwd", input_types='["c10::BFloat16"]').precision == "bf16"
    assert classify_kernel("_attn_fwd", input_types='["float"]').tensor_core is None


@pytest.mark.parametrize("name", ["fmhaReductionKernel", "void flashinfer::MergeStatesKernel<8u, 4u, float>(float*)"])
def test_what_only_finishes_attention_is_off_the_tensor_cores(name: str) -> None:
    found = classify_kernel(name)
    assert (found.tensor_core, found.kind) == (False, "attention")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("void vllm::moe::moe_align_block_size_kernel<int>(int*, int*, int*, int*)", "index"),
        ("void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, int>(float const*, bool const*)", "index"),
        ("void vllm::moe::topkGating<8, 128, 4, 16, 32, int>(float const*)", "index"),
        ("void count_and_sort_expert_tokens_kernel<int>(int const*, int*, int*, unsigned long)", "index"),
        ("void tensorrt_llm::kernels::finalizeMoeRoutingKernel<__nv_bfloat16>(__nv_bfloat16 const*)", "index"),
        ("void dpsk::ep::cuda::get_dispatch_layout<128, 32, 8>(long const*, int*)", "index"),
        ("void per_token_group_quant_8bit_kernel<c10::BFloat16, c10::Float8_e4m3fn, true, true, float>(void*)",
         "elementwise"),
        ("void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::BFloat16, c10::Float8_e4m3fn>(void*)",
         "elementwise"),
        ("per_token_cast_to_fp8_kernel", "elementwise"),
        ("void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16> >(void*)", "elementwise"),
        ("nvfuser_pointwise_f0_c1_r0_g0", "elementwise"),
        ("nvfuser_inner_outer_persistent_f3_c1_r0_g2", "elementwise"),
        ("Reformatting CopyNode for Input Tensor 0 to Conv_0 + Relu_1", "copy"),
        ("sm50_xmma_pooling_fw_4d_FP16FP32NHWC_Average_FastDiv_CAlign8", "pooling"),
        ("MaxPool_2", "pooling"),
        ("_ZN2at6native13reduce_kernelILi512ENS0_8ReduceOpIfNS0_7NormOpsIfEEjfLi4EEEEEvT0_", "reduction"),
    ],
)  # fmt: skip
def test_what_routes_tokens_quantizes_or_is_fused_pointwise_uses_no_tensor_cores(name: str, kind: str) -> None:
    found = classify_kernel(name, compute_capability=(9, 0))
    assert (found.tensor_core, found.kind) == (False, kind), found.rule


@pytest.mark.parametrize(
    ("name", "precision", "kind"),
    [
        ("trt_turing_cutlass_image_network_first_layer_hmma_fprop_f16f16f32_nhwc_nhwc_k64r7s7c4_stride2x2", "fp16",
         "convolution"),
        ("void dpsk::gemm::fp8_gemm_kernel<4096u, 7168u, 128u, 112u, 128u, 1u, 5u>(__nv_bfloat16*)", "fp8", "gemm"),
        ("nvfuser_matmul_f0_c1_r0_g0", None, "gemm"),
    ],
)  # fmt: skip
def test_names_of_matrix_instructions_and_of_their_generators_say_yes(name: str, precision: str, kind: str) -> None:
    found = classify_kernel(name, compute_capability=(9, 0))
    assert (found.tensor_core, found.precision, found.kind) == (True, precision, kind), found.rule


@pytest.mark.parametrize("name", ["moe_permute_gemm_fused", "per_token_quant_matmul", "cdpsk::ep::scan", "nvfuser_12"])
def test_a_product_that_is_fused_with_routing_is_not_taken_for_it(name: str) -> None:
    assert classify_kernel(name, compute_capability=(9, 0)).tensor_core is None


def test_the_mixture_of_experts_in_triton_is_on_tensor_cores_where_its_inputs_are_narrow() -> None:
    assert classify_kernel("fused_moe_kernel", input_types='["c10::BFloat16"]').precision == "bf16"
    assert classify_kernel("fused_moe_kernel").tensor_core is None
