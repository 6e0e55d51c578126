"""Which ops could use Tensor Cores on a GPU: by op, input types and shapes.

The ops listed are the ones that call a matrix routine themselves. Wrappers (``aten::conv2d``, ``aten::linear``,
``aten::matmul``) are not: their casts and views must not count as eligible time. A wrapper is eligible through the op
inside it.
"""

from __future__ import annotations

import re

import numpy as np

from tb_dlprof_plugin.model.dtypes import COMPLEX_DOUBLE, COMPLEX_FLOAT, InputDtypes, dtype_named
from tb_dlprof_plugin.model.profile import CallKind, Ints, Ops, Verdict
from tb_dlprof_plugin.model.shapes import InputShapes, shape_at

_CONVOLUTION = frozenset({
    "aten::cudnn_convolution", "aten::cudnn_convolution_transpose", "aten::cudnn_convolution_relu",
    "aten::cudnn_convolution_add_relu", "aten::convolution_backward", "aten::cudnn_convolution_backward",
    "aten::cudnn_convolution_backward_input", "aten::cudnn_convolution_backward_weight",
    "aten::cudnn_convolution_transpose_backward", "aten::slow_conv2d_forward", "aten::_slow_conv2d_forward",
    "aten::_slow_conv2d_backward", "aten::slow_conv3d_forward", "aten::slow_conv_transpose2d",
    "aten::slow_conv_dilated2d", "aten::mkldnn_convolution", "aten::mkldnn_convolution_backward",
})  # fmt: skip
_MATMUL = frozenset({
    "aten::mm", "aten::addmm", "aten::addmm_", "aten::bmm", "aten::baddbmm", "aten::baddbmm_", "aten::addbmm",
    "aten::_addmm_activation", "aten::_scaled_mm", "aten::_int_mm", "aten::_grouped_mm", "aten::_scaled_grouped_mm",
    "aten::mkldnn_linear", "aten::_mkldnn_linear",
})  # fmt: skip
_ATTENTION = frozenset({
    "aten::_flash_attention_forward", "aten::_flash_attention_backward", "aten::_efficient_attention_forward",
    "aten::_efficient_attention_backward", "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_backward", "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_efficient_attention_backward", "aten::_scaled_dot_product_cudnn_attention",
    "aten::_scaled_dot_product_cudnn_attention_backward", "aten::_cudnn_attention_forward",
    "aten::_cudnn_attention_backward", "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
})  # fmt: skip
_RNN = frozenset({"aten::_cudnn_rnn", "aten::_cudnn_rnn_backward"})
_MATRIX_OPS = _CONVOLUTION | _MATMUL | _ATTENTION | _RNN
_VECTOR_OPS = frozenset({
    "aten::mv", "aten::addmv", "aten::addmv_", "aten::dot", "aten::vdot", "aten::addr", "aten::addr_", "aten::ger",
    "aten::_conv_depthwise2d", "aten::_conv_depthwise2d_backward", "aten::conv_depthwise3d",
})  # fmt: skip
_COULD_RUN_IN = {
    "fp32": ("tf32", "fp16", "bf16"), "fp16": ("fp16",), "bf16": ("bf16", "fp16"), "fp8": ("fp8",), "int8": ("int8",),
    "fp64": ("fp64",),
}  # fmt: skip
_BACKWARD_CONVOLUTIONS = frozenset(op for op in _CONVOLUTION if "backward" in op)
_FIRST_TENSOR_CORES = (7, 0)
_FIRST_BLOCK_SCALED = (10, 0)
_FP64_TENSOR_CORES = frozenset({(8, 0), (9, 0), (10, 0)})
_FP64_TYPES = (dtype_named("float64"), COMPLEX_DOUBLE)
_PYTORCH_OPS = "aten::"
_PRODUCT_FAMILIES = frozenset({"gemm", "convolution", "attention", "rnn"})
_HELPER_RULES = frozenset({"flash-helper", "rnn-pointwise", "rocm-attention-helper"})
"""Rules whose kernels are named after the product that they only prepare or finish."""
_NO_MATRIX_RULES = frozenset({"gemv", "triangular", "conv-depthwise", "xmma-depthwise"})
"""Rules whose kernels multiply, but no matrices of which a Tensor Core instruction's tile could be filled."""
_SERVING_RULES = _HELPER_RULES | {
    "cudnn-layout", "cudnn-tensor-helper", "cudnn-helper", "split-k", "xmma-split-k", "xmma-helper", "gemm-helper",
    "grouped-gemm-helper",
}  # fmt: skip
"""Rules whose kernels only prepare or finish a product: within an op they are a part of its eligible time, too. In the
recorded trainings most of the time of each is inside of matrix ops."""
_ONE_CHANNEL_NAME = re.compile(r"2d_c1_k1_|2d_grouped_direct|wgrad2d_shmem_tiling")
"""cuDNN's kernels for convolutions in groups: depthwise ones, whose filters see one channel each."""
_FP64_NAME = re.compile(r"(?:^|_)[dz]gemm|dcudnn|_f64|<double|tensorop_[dz]884|_d884")


def eligible(op: str, shapes: InputShapes, dtypes: InputDtypes, compute_capability: tuple[int, int] | None) -> Verdict:
    """Whether the op could use Tensor Cores on this GPU, at its own precision or after a switch to TF32 or AMP.

    Args:
        op: name, such as "aten::mm".
        shapes: of its inputs, () where not recorded.
        dtypes: of its inputs, () where not recorded.
        compute_capability: of the GPU; None (no GPU, or not recorded) makes a matrix op's answer unknown.
    """
    if op not in _MATRIX_OPS and not is_triton_template(op):
        return Verdict.NO
    if compute_capability is None:
        return Verdict.UNKNOWN
    if compute_capability < _FIRST_TENSOR_CORES:
        return Verdict.NO
    # cuBLAS and CUTLASS multiply complex matrices on Tensor Cores: FP32 ones in TF32 (c1688), FP64 ones in FP64 (z884).
    if COMPLEX_FLOAT in dtypes and "tf32" not in tensor_core_precisions(compute_capability):
        return Verdict.NO
    if any(dtype in dtypes for dtype in _FP64_TYPES) and compute_capability not in _FP64_TENSOR_CORES:
        return Verdict.NO
    if op in _CONVOLUTION and is_depthwise(op, shapes):
        return Verdict.NO
    return Verdict.YES


def computes_product(family: str, rule: str) -> bool:
    """Whether a kernel computes a matrix product, convolution, attention or recurrent layer, by what `classify` found.

    Kernels that change a layout for a product or add up its parts do not.
    """
    return family in _PRODUCT_FAMILIES and rule not in _HELPER_RULES


def serves_product(rule: str) -> bool:
    """Whether a kernel only prepares or finishes a product, by the rule that `classify` found: it changes the layout of
    its factors, or adds up its parts."""
    return rule in _SERVING_RULES


def is_op_of_pytorch(op: str) -> bool:
    """Whether it is one of PyTorch's own ops, of which `eligible` decides by the name."""
    return op.startswith(_PYTORCH_OPS)


def eligible_by_kernel(kernel: str, family: str, rule: str, compute_capability: tuple[int, int] | None) -> Verdict:
    """Whether a kernel is work for Tensor Cores where no op decides: none was recorded, or it is not PyTorch's.

    Args:
        kernel: its name.
        family: `KernelClass.kind`.
        rule: `KernelClass.rule`.
        compute_capability: of the GPU; None makes the answer unknown where it would be yes.
    """
    if rule in _NO_MATRIX_RULES or _ONE_CHANNEL_NAME.search(kernel):
        return Verdict.NO
    if not (computes_product(family, rule) or serves_product(rule)):
        return Verdict.NO
    if compute_capability is None:
        return Verdict.UNKNOWN
    if compute_capability not in _FP64_TENSOR_CORES and _FP64_NAME.search(kernel):
        return Verdict.NO
    return Verdict.YES if compute_capability >= _FIRST_TENSOR_CORES else Verdict.NO


def tensor_core_precisions(compute_capability: tuple[int, int] | None) -> tuple[str, ...]:
    """Precisions of the Tensor Cores of a GPU; () for a GPU without them or an unknown one.

    Source: CUDA C++ Programming Guide, "Warp Matrix Functions" and the architecture white papers.
    """
    if compute_capability is None or compute_capability < _FIRST_TENSOR_CORES:
        return ()
    if compute_capability < (7, 5):
        return ("fp16",)
    if compute_capability < (8, 0):
        return ("fp16", "int8")
    base: tuple[str, ...] = ("fp16", "bf16", "tf32", "int8")
    if compute_capability >= (8, 9):
        base = (*base, "fp8")
    if compute_capability >= _FIRST_BLOCK_SCALED:
        base = (*base, "mxfp8", "mxfp4", "nvfp4")
    return (*base, "fp64") if compute_capability in _FP64_TENSOR_CORES else base


def possible_precisions(precision: str, compute_capability: tuple[int, int] | None) -> tuple[str, ...]:
    """Precisions in which the GPU's Tensor Cores could compute an op, as it is or after a switch to TF32 or mixed
    precision.

    Args:
        precision: of the op's inputs ("fp32", "bf16" ...), "" where not recorded: then the answer is ().
        compute_capability: of the GPU.
    """
    supported = tensor_core_precisions(compute_capability)
    return tuple(name for name in _COULD_RUN_IN.get(precision, ()) if name in supported)


def is_convolution(op: str) -> bool:
    """Whether the op is a convolution, forward or backward."""
    return op in _CONVOLUTION


def is_recurrent(op: str) -> bool:
    """Whether the op is a recurrent layer of cuDNN, forward or backward."""
    return op in _RNN


def is_attention(op: str) -> bool:
    """Whether the op is a fused attention, forward or backward."""
    return op in _ATTENTION


def is_matrix_op(op: str) -> bool:
    """Whether the op multiplies matrices, or matrices and vectors."""
    return op in _MATRIX_OPS or is_triton_template(op) or is_vector_op(op)


def is_triton_template(op: str) -> bool:
    """Whether the op is a matrix routine that torch.compile made from one of its Triton templates."""
    return op.startswith("triton_tem_")


def is_vector_op(op: str) -> bool:
    """Whether the op is a product with a vector, or a convolution of one channel a filter by its name."""
    return op in _VECTOR_OPS


def is_depthwise(op: str, shapes: InputShapes) -> bool:
    """Whether each filter of a convolution sees one channel of several: no matrix product is left in it.

    The weight is (out, in / groups, ...): one input channel a filter where the input has more means groups == channels.
    """
    at = 1 if op in _BACKWARD_CONVOLUTIONS else 0
    image, weight = shape_at(shapes, at), shape_at(shapes, at + 1)
    if image is None or weight is None or len(image) < 3 or len(weight) < 3:
        return False
    return weight[1] == 1 and image[1] > 1


def eligibility_of(
    ops: Ops,
    strings: list[str],
    input_shapes: list[InputShapes],
    input_dtypes: list[InputDtypes],
    compute_capability: tuple[int, int] | None,
) -> Ints:
    """Per row whether the op could use Tensor Cores, a `Verdict`; what is no op could not.

    Args:
        ops: the table.
        strings: its string table.
        input_shapes: what its shapes are rows of.
        input_dtypes: what its data types are rows of.
        compute_capability: of the GPU that the run used; None without a GPU.
    """
    rows = zip(ops.name.tolist(), ops.shapes.tolist(), ops.dtypes.tolist(), ops.kind.tolist(), strict=True)
    verdicts = [
        eligible(strings[name], input_shapes[shapes], input_dtypes[dtypes], compute_capability)
        if kind == CallKind.OP
        else Verdict.NO
        for name, shapes, dtypes, kind in rows
    ]
    return np.array(verdicts, dtype=np.int64)
