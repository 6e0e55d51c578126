"""The table of kernel families: a pattern for the kernel name, and the properties of the family.

Rules are tried in order and the first match decides. A rule says yes or no only where the family's names settle it;
names that only their context can settle (Triton templates, plain cuDNN names) are left to `classify`. The families
and their naming are cuBLAS', cuDNN's, CUTLASS' and PyTorch's own; `where` says which GPUs they are made for,
`verified` on which GPU the counters agreed (docs/tensor_cores.md); the others rest on their makers' own naming: those
of Blackwell, of TensorRT-LLM, FlashInfer, DeepGEMM and FlashAttention 4, and all of AMD.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DRIVER_COPY = re.compile(r"^memcpy(?:32|64|128)(?:_\w+)?$")
"""A copy within a GPU. Nodes of CUDA graphs that copy run as such kernels: torch.profiler and XPlane record them as
kernels, Nsight Systems as copies."""

# Input type codes in nvjet names: the first letter is A's type.
NVJET_PRECISION = {"h": "fp16", "t": "bf16", "s": "tf32", "q": "fp8", "o": "fp8", "i": "int8", "d": "fp64"}

WHOLE_GRAPH = "cuda-graph"
"""Rule of CUDA graphs that were recorded whole, "CUDA graph 7"."""

# XLA numbers equal instructions; ROCm adds what stands for "kernel descriptor".
_XLA_END = r"([._]+\d+)*(\.kd)?$"

# Which rules the counters of which GPU have confirmed; tests/names/test_oracle.py holds it to the recordings.
VERIFIED: dict[str, frozenset[str]] = {
    "NVIDIA H200, 2026-11-21": frozenset({
        "flash-helper", "flash", "fmha-f32-tensor", "fmha-f16", "fmha-bf16", "cudnn-sdpa",
        "grouped-gemm-helper", "nvjet", "xmma-split-k", "xmma-helper", "xmma-depthwise", "xmma-ffma",
        "xmma-tensor", "cutlass-template", "cutlass-simt", "cutlass-fp64", "cutlass-int8", "cutlass-bf16",
        "cutlass-fp16", "cutlass-fp8", "cutlass-tf32", "cutlass-sm90", "gemv", "gemm-small", "gemm-helper",
        "triangular", "solver-helper", "split-k", "cudnn-layout", "cudnn-tensor-helper", "cudnn-winograd",
        "cudnn-fft", "cufft", "cudnn-direct", "cudnn-bn", "rnn-hmma", "rnn-fma", "rnn-pointwise",
        "cudnn-helper", "triton-pointwise", "triton-template", "conv-depthwise", "optimizer", "normalization",
        "pooling", "softmax", "reduction", "embedding", "copy", "random", "elementwise",
    }),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelRule:
    """``tensor_core`` None leaves the verdict to the context; ``precision`` None: read it off the name or the op.

    ``verified`` names the GPUs, with the dates, whose counters agreed with the rule on each kernel it decided.
    """

    id: str
    pattern: re.Pattern[str]
    tensor_core: bool | None
    kind: str
    precision: str | None = None
    where: str = "any"
    verified: tuple[str, ...] = ()


def _rule(
    id: str, pattern: str, tensor_core: bool | None, kind: str, precision: str | None = None, where: str = "any"
) -> KernelRule:
    verified = tuple(gpu for gpu, ids in VERIFIED.items() if id in ids)
    return KernelRule(id, re.compile(pattern), tensor_core, kind, precision, where, verified)


# Fused kernels name both: "moe_permute_gemm" computes a product.
_NO_PRODUCT = r"^(?!.*(?:[gG]emm|GEMM|matmul|[aA]ttention)).*?"
_LIBRARY = r"^(?=.*(?:at::|_ZN2at|_GLOBAL__N_|cub::|thrust::|cudnn|cunn_|indexSelect|\(anonymous namespace\))).*?"


def _library_rule(id: str, pattern: str, kind: str) -> KernelRule:
    """A kernel of PyTorch, CUB, Thrust or cuDNN that uses no Tensor Cores.

    The words are common: in the name of an unknown kernel (``my_wmma_transpose``) they prove nothing.
    """
    return _rule(id, f"{_LIBRARY}(?:{pattern})", False, kind)


RULES: tuple[KernelRule, ...] = (
    _rule("memcpy", r"^Memcpy ", False, "copy"),
    _rule("memset", r"^Memset ", False, "set"),
    _rule("driver-copy", DRIVER_COPY.pattern, False, "copy"),
    # -- Communication. NCCL and RCCL name their kernels alike; the others are of libraries that reach into the memory
    # of other GPUs: PyTorch's symmetric memory, NVSHMEM, MSCCL, DeepEP, the all-reduce of vLLM and of TensorRT-LLM.
    _rule("nccl", r"^nccl", False, "communication"),
    _rule("nvshmem", r"\b(nvshmem|rocshmem)[ix]*_|nvshmem_all_to_all", False, "communication"),
    _rule("msccl", r"^mscclKernel|mscclpp::", False, "communication", where="AMD"),
    # "dpsk" is the namespace in DeepSeek's own recordings. Where the tokens go is computed on the GPU itself.
    _rule("deep-ep-layout", r"\b(deep_ep|dpsk::ep)::(layout|\w+::get_dispatch_layout)", False, "index", where="sm_80+"),
    _rule("deep-ep", r"\b(deep_ep|dpsk::ep)::", False, "communication", where="sm_80+"),
    _rule(
        "symmetric-memory",
        r"\b(multimem_|one_shot_|two_shot_)+(all_reduce|all_gather|reduce_scatter)|cross_device_reduce_[12]stage"
        r"|allreduce_fusion_kernel|oneshotAllreduce|twoshotAllreduce|lamport_?[aA]ll_?[rR]educe",
        False,
        "communication",
    ),
    # -- AMD: its matrix cores are not Tensor Cores, so no name says yes; kernels that use neither are known. Tensile
    # writes the matrix instruction into a name (MI16x16x1), and the tile of a thread (TT4_4) where there is none.
    _rule("rocm-copy", r"^__amd_rocclr_copy", False, "copy", where="AMD"),
    _rule("rocm-set", r"^__amd_rocclr_fill", False, "set", where="AMD"),
    _rule("rocm-layout", r"^batched_transpose_\d+x\d+", False, "transpose", where="AMD"),
    _rule("rocm-elementwise", r"^(SubTensorOp|OpTensor|Op\dTensor)", False, "elementwise", where="AMD"),
    _rule(
        "rocm-normalization",
        r"^(MIO|mio)pen(BatchNorm|LayerNorm|T5LayerNorm)|ck_tile::.*(Rmsnorm|Layernorm)2d",
        False,
        "normalization",
        where="AMD",
    ),
    _rule("rocm-pooling", r"^mloPooling|^(MIO|mio)penPool", False, "pooling", where="AMD"),
    _rule("rocm-softmax", r"^(MIO|mio)penSoftmax|^mloSoftmax", False, "softmax", where="AMD"),
    _rule(
        "rocm-attention-helper",
        r"ck_tile::.*Fmha(BwdOGradDotO|BwdConvertQGrad|FwdSplitKVCombine)|\baiter::fmha_bwd_\w*(odo|dq_convert)",
        False,
        "attention",
        where="AMD",
    ),
    _rule(
        "rocm-attention",
        r"ck_tile::.*(Fmha|UnifiedAttention)|aiter(::|\d+)(fmha|mla|pa)_|^fmha_(fwd|bwd)_hd\d+",
        None,
        "attention",
        where="AMD",
    ),
    _rule(
        "rocm-mfma",
        r"^(Custom_)?Cijk_.*(_MI\d+x\d+|MFMA)|^igemm_(fwd|bwd|wrw)_gtcx|\bck(_tile)?::.*([xX]dl|Gemm|Flatmm|[cC]onv)"
        r"|^_ZN2ck\d+kernel_\w*xdl|kernel_\w*_xdl_|xdlops",
        None,
        "gemm",
        where="AMD",
    ),
    _rule("rocm-valu", r"^Cijk_(?!.*_MI\d+x\d+).*_TT\d+_\d+|^igemm_(fwd|bwd|wrw)_gtc_", False, "gemm", where="AMD"),
    _rule("rocm-winograd", r"^miopenSp3Asm(Conv|_v)", None, "convolution", where="AMD"),
    _rule(
        "rocm-tensile",
        r"^Cijk_|^Custom_Cijk_|MIOpen|miopen|^gfx9|igemm_.*_gtc|__amd_rocclr|aiter(::|\d+)\w*gemm",
        None,
        "gemm",
        where="AMD",
    ),
    # -- Attention
    _rule(
        "flash-helper",
        r"flash_bwd_dot_do_o|flash_bwd_convert_d(q|kv)|flash_bwd_clear|flash_fwd_splitkv_combine"
        r"|compute_dot_do_o|convert_dq_to_16bits|FlashAttention(Backward(Preprocess|Postprocess)|ForwardCombine)"
        r"|FlashAttnFwdCombine|FlashAttnBwd(Preprocess|ConvertdQ|Postprocess)|fmhaReductionKernel"
        r"|flashinfer::(MergeState|VariableLengthMergeState|.*MergeStates)",
        False,
        "attention",
        where="sm_80+",
    ),
    # TensorRT-LLM's generated kernels, which FlashInfer ships: the types of Q, of K and V, and of the output.
    _rule("trtllm-fmha", r"\b[fF]mhaSm\d+\w*Kernel_", True, "attention", where="sm_100+"),
    _rule(
        "flashinfer-prefill",
        r"flashinfer::.*(Prefill\w*KernelTraits|PrefillWith\w*KVCacheKernel|BatchMLAPagedAttentionKernel)"
        r"|\bsm(90|100)::fwd::sparse_attn_fwd_kernel",
        True,
        "attention",
        where="sm_80+",
    ),
    # One query a sequence: a product of a matrix with a vector.
    _rule("flashinfer-decode", r"flashinfer::.*DecodeWith\w*KVCacheKernel", None, "attention", where="any"),
    _rule("vllm-attention", r"vllm::paged_attention_v\d", None, "attention"),
    _rule("flash", r"flash_(fwd|bwd)|FlashAttnFwd|FlashAttnBwd|FlashAttention", True, "attention", where="sm_80+"),
    _rule("fmha-f32-tensor", r"fmha_cutlass[FB]_f32_.*_sm80", True, "attention", "3xtf32", "sm_80+"),
    _rule("fmha-f32", r"fmha_cutlass[FB]_f32_", False, "attention", where="below sm_80"),
    _rule("fmha-f16", r"fmha_cutlass[FB]_f16_.*_sm(70|75|80)", True, "attention", "fp16", "sm_70+"),
    _rule("fmha-bf16", r"fmha_cutlass[FB]_bf16_.*_sm80", True, "attention", "bf16", "sm_80+"),
    _rule("fmha-simt", r"fmha_cutlass[FB]_", False, "attention", where="below sm_70"),
    _rule(
        "cudnn-sdpa", r"cudnn_generated_.*sdpa.*(sm80|sm86|sm89|sm90|sm100|sm120)", True, "attention", where="sm_80+"
    ),
    # -- GEMM and convolution
    _rule("grouped-gemm-helper", r"prepare_grouped_gemm_data", False, "elementwise", where="sm_90+"),
    _rule("nvjet", r"^nvjet_", True, "gemm", where="sm_90+"),
    # TensorRT-LLM's generated kernels (types of C, A and B), and DeepGEMM's.
    _rule(
        "trtllm-gemm", r"^([bB]mm|[gG]emm)_\w*(E2m1|E4m3|E5m2|Bfloat16|Fp16)\w*_Fp32_", True, "gemm", where="sm_100+"
    ),
    _rule(
        "deep-gemm",
        r"\bsm(90|100)_(fp8|bf16|fp8_fp4)_(\w*gemm|\w*mqa_logits)|\b(deep_gemm|dpsk::gemm)::fp8_\w*gemm",
        True,
        "gemm",
        where="sm_90+",
    ),
    # TensorRT's own copies, and layers that it does not name by their kernels.
    _rule("tensorrt-reformat", r"^Reformatting CopyNode ", False, "copy"),
    _rule("tensorrt-pooling", r"^(Max|Average|GlobalAverage)Pool_\d+$|xmma_pooling_", False, "pooling"),
    # The second kernel of a split product adds up what the first left; the name is that of the first otherwise.
    _rule("xmma-split-k", r"xmma_.*_execute_split_k_kernel", False, "reduction"),
    _rule(
        "xmma-helper",
        r"xmma.*(kernel_helper_stage_|_execute_helper_kernel|init_device_workspace)",
        False,
        "elementwise",
    ),
    _rule("xmma-depthwise", r"xmma_depthwise_convolution_", False, "convolution", where="sm_80+"),
    _rule("xmma-ffma", r"xmma_.*_ffma", False, "gemm", where="any"),
    _rule(
        "xmma-tensor",
        r"xmma_.*(tensor\d+x\d+x\d+|warpgroupsize|_hmma|_imma|_dmma|_gmma|_qmma)",
        True,
        "gemm",
        where="sm_70+",
    ),
    _rule("xmma-tf32", r"xmma_.*tf32", True, "gemm", "tf32", "sm_80+"),
    _rule("xmma-half", r"xmma_.*_(f16f16|bf16bf16|e4m3|e5m2|i8i8)", True, "gemm", where="sm_70+"),
    _rule("cutlass-template", r"MmaTensorOp", True, "gemm", where="sm_70+"),
    _rule("cutlass-template-simt", r"MmaSimt", False, "gemm"),
    _rule("cutlass-simt", r"cutlass.*simt", False, "gemm"),
    _rule("cutlass-block-scaled", r"cutlass.*(bstensorop|block_scaled|BlockScaled)", True, "gemm", where="sm_100+"),
    _rule("cutlass-fp64", r"cutlass.*tensorop_(d884|d1684|d1688|d16816|z884)", True, "gemm", "fp64", "sm_80, sm_90"),
    _rule("cutlass-int8", r"cutlass.*tensorop_.*i(8816|8832|16832|16864|161616)", True, "gemm", "int8", "sm_75+"),
    _rule("cutlass-fp8", r"cutlass.*(e4m3|e5m2)", True, "gemm", "fp8", "sm_89+"),
    _rule("cutlass-bf16", r"cutlass.*tensorop.*bf16", True, "gemm", "bf16", "sm_80+"),
    _rule("cutlass-fp16", r"cutlass.*tensorop.*(_f16_|h16816|h1688|h884|f16_s)", True, "gemm", "fp16", "sm_70+"),
    _rule(
        "cutlass-tf32",
        r"cutlass.*tensorop_((tf32_)?[sc](tf32|1688|161616)|s\d+x\d+x\d+tf32)",
        True,
        "gemm",
        "tf32",
        "sm_80+",
    ),
    _rule("cutlass-tensorop", r"cutlass.*(tensorop|wmma)", True, "gemm", where="sm_70+"),
    _rule("cutlass-sm90", r"cutlass.*(sm90|Sm90|GMMA|sm100|Sm100)", True, "gemm", where="sm_90+"),
    _rule("hmma-fp16", r"(fp16_[sh]|_h)(884|1688|16816)(gemm|cudnn|fprop|dgrad|wgrad)", True, "gemm", "fp16", "sm_70+"),
    _rule("hmma-bf16", r"bf16_s(1688|16816)(gemm|cudnn|fprop|dgrad|wgrad)", True, "gemm", "bf16", "sm_80+"),
    _rule("imma", r"(int8_|_)i(8816|16832|16864)(gemm|cudnn)", True, "gemm", "int8", "sm_75+"),
    _rule("hmma-volta", r"(volta|turing)_s(884|1688)(gemm|cudnn|_)", True, "gemm", "fp16", "sm_70, sm_75"),
    _rule("hmma-tf32", r"ampere_.*s1688(gemm|cudnn|_)", True, "gemm", "tf32", "sm_80+"),
    _rule("dmma", r"_d884gemm|_d16816gemm", True, "gemm", "fp64", "sm_80, sm_90"),
    _rule("tcgen05", r"tcgen05|\bsm1[02]\d_xmma_.*(umma|utcmma)", True, "gemm", where="sm_100+"),
    # The instruction's name, as TensorRT's kernels have it.
    _rule("mma-instruction", r"(?:^|_)[hi]mma_", True, "gemm", where="sm_70+"),
    _rule("ffma-gemm", r"(maxwell|pascal|volta|turing|ampere|sm\d+)_(fp16_)?[sdcz]gemm", False, "gemm"),
    _rule("ffma-conv", r"(maxwell|pascal|volta|turing|ampere)_(fp16_)?[sd]cudnn", False, "convolution"),
    _rule("hgemm", r"(maxwell|pascal|volta|turing)_hgemm|(maxwell|pascal)_fp16_", False, "gemm"),
    _rule("gemv", r"gemv|gemvx|gemvNSP|dot_kernel|reduce_1Block_kernel", False, "gemm"),
    _rule(
        "gemm-small", r"gemmSN_|gemmk1_kernel|gemm_kernel2x2|[sdcz]gemm1x1_|sgemm_largek|sgemm_32x32x32", False, "gemm"
    ),
    # Work around a matrix product: moving, scaling and adding up what it reads and writes.
    _rule("gemm-helper", r"scal_kernel<|kern_precompute_indices|init_device_workspace", False, "elementwise"),
    _rule("triangular", r"\btrsm_(left|right)_kernel|\bkernel_trsm_[lr]_mul32", False, "gemm"),
    # cuSOLVER: panels, pivots and LAPACK's auxiliary routines. Its blocked factorizations are left open: the one in
    # double precision was seen to use Tensor Cores, the same in single precision not to.
    _rule(
        "solver-helper",
        r"\b(getrf_pivot|create_pivot\w*|ipiv_\w+|xxtrf4_set_info\w*|copy_info_kernel|geqr2_\w+|orgqr_\w+|larft_\w+"
        r"|lacpy_kernel|batch_eye_kernel)\b",
        False,
        "other",
    ),
    _rule("split-k", r"splitK\w*[rR]educe|ReduceSplitK", False, "reduction"),
    # -- cuDNN
    _rule(
        "cudnn-layout",
        r"nchwToNhwc|nhwcToNchw|nchwAddPadding|nhwcAddPadding|cudnn.*transpose|tensorTransformGeneric",
        False,
        "transpose",
    ),
    _rule(
        "cudnn-tensor-helper",
        r"cudnn::engines_precompiled::(convertTensor|setTensor|scaleTensor|addTensor|genericTranspose)",
        False,
        "copy",
    ),
    _rule("cudnn-winograd", r"[wW]inograd", False, "convolution"),
    _rule(
        "cudnn-fft",
        r"fft(2d|1d)?_[rc]2[rc]|^fft|cgemm|flip_filter|region_transform|pointwise_mult_and_sum_complex",
        False,
        "convolution",
    ),
    _rule("cufft", r"^void (regular|vector|real_complex|bluestein)\w*_fft<", False, "other"),
    _rule(
        "cudnn-direct",
        r"(implicit|precomputed)_convolve(Nd)?_|convolveNd_|conv(2d|Nd)_grouped_direct|conv2d_c1_k1|explicit_convolve|dgrad2d_|wgrad2d_"
        r"|(dgrad|wgrad|wgrad_alg\d)_engine|convolve_common_engine|im2col|vol2col|col2im|dgrad_alg1",
        False,
        "convolution",
    ),
    _rule("cudnn-bn", r"cudnn.*(bn_|batchnorm)|^bn_(fw|bw)|batchnorm_", False, "normalization"),
    _rule("cudnn-pool", r"cudnn.*pool", False, "pooling"),
    _rule("rnn-hmma", r"RNN_blockPersist_\w+_HMMA<", True, "rnn", where="sm_70+"),
    _rule("rnn-fma", r"RNN_blockPersist_\w+<", False, "rnn"),
    _rule(
        "rnn-pointwise",
        r"(RNN|LSTM|GRU)_elementWise_|elemWiseRNNcell|persistRNN_addBias|RNN_bidirectional_accum",
        False,
        "rnn",
    ),
    _rule("cudnn-rnn", r"RNN_block|LSTM_elementWise|GRU_elementWise|elemWiseRNN|[pP]ersistRNN", None, "rnn"),
    _rule(
        "cudnn-helper",
        r"cudnn::ops::|cudnn_.*scalePackedTensor|cudnn.*(scale|addTensor|reduce|computeOffsets)"
        r"|cask.*compute\w*Offsets|cublasLtEpilogue|cublasLt::epilogue",
        False,
        "elementwise",
    ),
    # -- A CUDA graph that was recorded as one activity: what is in it, and so its verdict, is unknown.
    _rule(WHOLE_GRAPH, r"^CUDA graph \d+$", None, "other"),
    # -- Triton: generated pointwise and reduction kernels never touch Tensor Cores, templates are matrix products.
    _rule("triton-pointwise", r"^triton_(poi|red|per|for|spl)_", False, "elementwise"),
    _rule("triton-template", r"^triton_(tem|mm|bmm|flex|tl)_", None, "gemm", where="sm_70+"),
    # nvFuser names a kernel after its scheduler; that of products alone uses matrix instructions.
    _rule("nvfuser-matmul", r"^nvfuser_matmul_", True, "gemm", where="sm_75+"),
    _rule(
        "nvfuser",
        r"^nvfuser_(no_op|pointwise|reduction|persistent|inner_persistent|outer_persistent|inner_outer_persistent"
        r"|transpose|resize)_",
        False,
        "elementwise",
    ),
    # -- XLA names kernels that it generates after their instruction. Products are in Triton's GEMM fusions alone: all
    # other instructions with a dot or a convolution become calls of cuBLAS or cuDNN.
    _rule(
        "xla-gemm-fusion",
        r"^((nested_)?gemm_fusion|triton_gemm)(_|\.|$)",
        None,
        "gemm",
        where="sm_70+",
    ),
    _rule("xla-softmax", rf"^triton_softmax{_XLA_END}", False, "softmax"),
    _rule("xla-reduction", rf"^(input|wrapped)_(\w+_)?reduce(_window)?(_fusion)?{_XLA_END}", False, "reduction"),
    _rule("xla-transpose", rf"^(input|loop|wrapped)_(\w+_)?transpose(_fusion)?{_XLA_END}", False, "transpose"),
    _rule(
        "xla-fusion",
        rf"^((loop|input|scatter|concatenate|copy|sort|transpose|reduce|dynamic)_(\w+_)?)?fusion{_XLA_END}"
        rf"|^wrapped_[a-z_]+{_XLA_END}",
        False,
        "elementwise",
    ),
    _rule(
        "triton-attention",
        r"^_?attn_(fwd|bwd)(_\w+)?$|^kernel_unified_attention_[23]d|^bwd_kernel_d(k_dv|q)$",
        None,
        "attention",
        where="sm_70+",
    ),
    # -- vLLM, SGLang, TensorRT-LLM: what stands around the products of experts and of FP8.
    _rule("triton-moe", r"^fused_moe_kernel", None, "gemm", where="sm_70+"),
    _rule(
        "quantize",
        rf"{_NO_PRODUCT}(per_(token|tensor|channel|block)_(group_)?(quant|cast_to_fp8)|scaled_(fp8|int8)_quant"
        r"|segmented_max_reduction|cvt_fp(8|16)_to_fp4)",
        False,
        "elementwise",
    ),
    _rule(
        "moe-routing",
        rf"{_NO_PRODUCT}(moe_align_|top_?[kK]_?[gG]ating|topk_softmax|grouped_topk|group_idx_and_topk_idx|topk_with_k2"
        r"|moe_fused_gate|count_and_sort_expert_token|moe_sum|moe_(un)?permute|expandInputRows|finalizeMoeRouting"
        r"|[bB]uildExpertMaps|computeExpertFirstTokenOffset|\brouting(Custom|DeepSeek|Llama4|Renormalize))",
        False,
        "index",
    ),
    _rule(
        "llm-pointwise",
        rf"{_NO_PRODUCT}\b(act_and_mul_kernel|(batched_)?rotary_embedding_kernel|reshape_and_cache|concat_and_cache_mla)",
        False,
        "elementwise",
    ),
    # -- PyTorch's own
    _rule("conv-depthwise", r"conv_depthwise|DepthwiseConv", False, "convolution"),
    _rule(
        "optimizer", r"multi_tensor_apply|FusedAdam|FusedSgd|fused_adam|fused_sgd|amp_update_scale", False, "optimizer"
    ),
    _rule(
        "normalization",
        r"batch_norm|layer_norm|LayerNorm|LayerNormBackward|GammaBeta|RowwiseMoments|group_norm|rms_norm",
        False,
        "normalization",
    ),
    # Transformer Engine's own kernels: casts, transposes, activations and norms; its products are cuBLAS's.
    _rule("transformer-engine", r"\btransformer_engine::(?!.*[hH]adamard)", False, "elementwise"),
    _rule("flashinfer-other", r"flashinfer::(norm|activation|sampling|rope|quantization)", False, "elementwise"),
    _library_rule("pooling", r"[pP]ool", "pooling"),
    _library_rule("softmax", r"[sS]oft[mM]ax|nll_loss|cunn_", "softmax"),
    _library_rule("reduction", r"reduce_kernel|DeviceReduce|DeviceScan|cub::|radix|[sS]ort|thrust::", "reduction"),
    _library_rule("embedding", r"embedding|indexSelect|index_|gather|scatter|indexing_backward", "index"),
    _library_rule(
        "copy", r"CatArrayBatchedCopy|direct_copy|copy_device_to_device|bfloat16_copy|float16_copy|transpose", "copy"
    ),
    _library_rule("random", r"distribution_|philox|dropout|bernoulli", "random"),
    _rule(
        "elementwise", r"elementwise_kernel|FillFunctor|at::native::|at_cuda_detail|at::cuda::", False, "elementwise"
    ),
)
