"""A training step on one GPU for the cases of rules, laid out op by op.

Ops of the forward pass come one after another on the main thread, their backward nodes in reverse order on the other,
each with a kernel that starts when the one before it ended.
"""

from __future__ import annotations

from typing import Any

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
IMAGES, WEIGHT = [16, 64, 56, 56], [64, 64, 3, 3]
MAIN, OTHER = 1, 2
GIB = 1 << 30


class Step:
    """A training step under construction, made three times; times in microseconds, kernels back to back.

    The CPU launches all of it and then waits for the GPU, so that the GPU sets the pace.
    """

    def __init__(self) -> None:
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

    def __call__(self, trace: Any) -> None:
        trace.gpu()
        at = 0.0
        for index in range(3):
            start = at
            at = self._one(trace, index, at)
            trace.step(index, start, at - start)

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


def layers(head: str = "float", casts: float = 0.0, width: int = 4096) -> Step:
    """A body of 400 us in BF16 and a head of 600 us in another type, or in BF16 as well; casts around an activation."""
    run = Step()
    inputs, weight = [4096, 1024], [1024, width]
    wrap = "aten::linear"
    half = [HALF_TYPE] * 2
    body = [("aten::linear", [inputs, weight], half, []), ("aten::mm", [inputs, weight], half, [(TENSOR_GEMM, 400)])]
    run.forward("body", wrap, body, dims=[inputs, weight], types=["float"] * 2)
    if casts:
        there = [("aten::copy_", [inputs, inputs], ["float", HALF_TYPE], [(CAST, casts)])]
        run.forward("middle", "aten::to", there, dims=[inputs], types=[HALF_TYPE])
        back = ("aten::copy_", [inputs, inputs], [HALF_TYPE, "float"], [(CAST, casts)])
        product = ("aten::mm", [inputs, weight], half, [(TENSOR_GEMM, 100)])
        run.forward("next", wrap, [back, product], dims=[inputs, weight], types=["float"] * 2)
    kernel = SIMT_GEMM if head == "float" else TENSOR_GEMM
    product = ("aten::mm", [inputs, weight], [head] * 2, [(kernel, 600)])
    run.forward("head", wrap, [product], dims=[inputs, weight], types=[head] * 2)
    return run
