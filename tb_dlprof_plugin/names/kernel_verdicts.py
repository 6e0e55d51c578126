"""Classifies a kernel by its name and context: what it does and whether it runs on Tensor Cores.

Three-valued: None means that neither the name nor the context settles it. `KernelClass.rule` names the rule that
decided, so that a page can show why.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from tb_dlprof_plugin.model.dtypes import InputDtypes, dtypes_in
from tb_dlprof_plugin.names.kernel_rules import NVJET_PRECISION, RULES, KernelRule

# Formats that scale blocks of numbers come first: the types of their elements and scales are part of their names. The
# wider factor of a mixed product names it.
_TYPE_PATTERNS = (
    ("mxfp8", re.compile(r"mxfp8|mx_float8|ue8m0xe[45]m[32]|(?=.*ue8m0)(?=.*(?<!u)e(4m3|5m2))", re.IGNORECASE)),
    ("nvfp4", re.compile(r"nvfp4|nv_float4|ue4m3x(f4|e2m1)|(?=.*ue4m3)(?=.*e2m1)", re.IGNORECASE)),
    ("mxfp4", re.compile(r"mxfp4|mx_float4|ue8m0x(f4|e2m1)|(?=.*ue8m0)(?=.*e2m1)", re.IGNORECASE)),
    ("fp8", re.compile(r"e4m3|e5m2|float8|fp8", re.IGNORECASE)),
    ("bf16", re.compile(r"bf16|bfloat16", re.IGNORECASE)),
    ("tf32", re.compile(r"tf32|tfloat32")),
    ("fp16", re.compile(r"f16|half|fp16|_h\d|hgemm", re.IGNORECASE)),
    ("int8", re.compile(r"i8i8|int8|s8_s8|imma")),
    ("fp64", re.compile(r"f64|double|dmma|d884")),
)
_HALF = ("fp16", "bf16")
_TEMPLATE_INPUTS = (*_HALF, "fp8", "int8")
# cuDNN writes "f16" into the names of its attention kernels for either 16 bit format.
_PRECISION_BY_INPUTS = frozenset({"cudnn-sdpa"})
_CONVOLUTION = re.compile(
    r"fprop|dgrad|wgrad|convolve|conv2d|conv3d|cudnn_.*conv|[shi](884|1688|8816|16816)cudnn|^igemm_(fwd|bwd|wrw)_"
    r"|MIOpenConv|(gridwise|kernel)_(grouped_)?conv|ck(_tile)?::.*[cC]onv"
)
_TRITON_PRODUCTS = frozenset({"triton-template", "triton-moe", "triton-attention", "xla-gemm-fusion"})
_NVJET = re.compile(r"nvjet_(?:sm\d+_)?(\w)")
# "Bmm_<C>_<A><B>_Fp32": C, A and B are types, an "Mx" before one says that it is scaled in blocks of 32.
_TRTLLM_TYPE = r"((?:Mx)?(?:E2m1|E4m3|E5m2)|Bfloat16|Fp16)"
_TRTLLM_GEMM = re.compile(rf"^(?:[bB]mm|[gG]emm)_(?:{_TRTLLM_TYPE}_)?{_TRTLLM_TYPE}{_TRTLLM_TYPE}?_Fp32")
_TRTLLM_FMHA = re.compile(r"Kernel_Q(?:kv)?(E2m1|E4m3|Bfloat16|Fp16)")
_TRTLLM_PRECISIONS = {
    "MxE4m3": "mxfp8", "MxE5m2": "mxfp8", "E4m3": "fp8", "E5m2": "fp8", "Bfloat16": "bf16", "Fp16": "fp16",
    "MxE2m1": "mxfp4", "E2m1": "nvfp4",
}  # fmt: skip
"""By falling width: the wider of two factors names their product."""
# CUDA core kernels of cuBLAS and cuDNN say FP32 in their names: sgemm, scudnn, and FFMA's.
_FP32_NAME = re.compile(r"ffma|(?:^|_)sgemm|(?:^|_)scudnn|gemmSN|cgemm|fft.*float|(?:conv|grad|inograd)\w*<float")
_HALF_NAME = re.compile(r"__half|<half|bfloat16|bf16")
_FIRST_TENSOR_CORES = (7, 0)


@dataclass(frozen=True, slots=True)
class KernelClass:
    """Verdict on one kernel.

    Attributes:
        tensor_core: True, False, or None where it cannot be known.
        precision: "fp16", "bf16", "tf32", "3xtf32", "fp8", "mxfp8", "mxfp4", "nvfp4", "int8" or "fp64" for a Tensor
            Core kernel whose precision is known, else None.
        kind: what it does: gemm, convolution, attention, rnn, elementwise, reduction, normalization, pooling, softmax,
            copy, set, transpose, communication, optimizer, index, random or other.
        rule: id of the rule that decided.
    """

    tensor_core: bool | None
    precision: str | None
    kind: str
    rule: str


def classify_kernel(
    name: str,
    *,
    op: str | None = None,
    input_types: str | InputDtypes | None = None,
    compute_capability: tuple[int, int] | None = None,
) -> KernelClass:
    """What the kernel does and whether it runs on Tensor Cores.

    Args:
        name: kernel name as Kineto writes it (demangled).
        op: the op that launched it, such as "aten::convolution_backward"; decides convolution against GEMM and what
            a plain name leaves open.
        input_types: the op's input types, also as Kineto writes them, such as '["c10::Half", "c10::Half"]'.
        compute_capability: of the GPU, such as (9, 0); below (7, 0) nothing runs on Tensor Cores.
    """
    given = dtypes_in(input_types) if isinstance(input_types, str) else input_types or ()
    return _classify(name, op or "", given, compute_capability)


@functools.lru_cache(maxsize=65536)
def _classify(name: str, op: str, input_types: InputDtypes, compute_capability: tuple[int, int] | None) -> KernelClass:
    rule = next((rule for rule in RULES if rule.pattern.search(name)), None)
    if rule is None:
        return _without_rule(name, op, compute_capability)
    kind = _kind(rule, name, op)
    if compute_capability is not None and compute_capability < _FIRST_TENSOR_CORES:
        return KernelClass(False, None, kind, "no-tensor-cores")
    if rule.tensor_core is None:
        return _from_context(rule, kind, input_types)
    if not rule.tensor_core:
        return KernelClass(False, None, kind, rule.id)
    read = _first_of(_HALF, input_types) if rule.id in _PRECISION_BY_INPUTS else _precision(name, input_types)
    return KernelClass(True, rule.precision or read, kind, rule.id)


def _without_rule(name: str, op: str, compute_capability: tuple[int, int] | None) -> KernelClass:
    kind = "convolution" if _CONVOLUTION.search(name) or "conv" in op else "other"
    if compute_capability is not None and compute_capability < _FIRST_TENSOR_CORES:
        return KernelClass(False, None, kind, "no-tensor-cores")
    return KernelClass(None, None, kind, "unknown-name")


def _from_context(rule: KernelRule, kind: str, input_types: InputDtypes) -> KernelClass:
    """Triton's templates and attention feed their inputs to ``tl.dot``: below 32 bits a Tensor Core instruction.

    With FP32 inputs it is one only where TF32 is allowed, which neither the name nor the types say.
    """
    precision = _first_of(_TEMPLATE_INPUTS, input_types) if rule.id in _TRITON_PRODUCTS else None
    if precision is not None:
        return KernelClass(True, precision, kind, f"{rule.id}+{'half' if precision in _HALF else 'narrow'}-input")
    return KernelClass(None, None, kind, rule.id)


def _kind(rule: KernelRule, name: str, op: str) -> str:
    if rule.kind != "gemm":
        return rule.kind
    if _CONVOLUTION.search(name) or "conv" in op:
        return "convolution"
    if "attention" in op:
        return "attention"
    return "rnn" if "rnn" in op or "lstm" in op or "gru" in op else "gemm"


def _precision(name: str, input_types: InputDtypes) -> str | None:
    if nvjet := _NVJET.match(name):
        return NVJET_PRECISION.get(nvjet[1])
    if generated := _TRTLLM_GEMM.search(name) or _TRTLLM_FMHA.search(name):
        factors = generated.groups()[1:] if generated.re is _TRTLLM_GEMM else generated.groups()
        return next(precision for code, precision in _TRTLLM_PRECISIONS.items() if code in factors)
    for precision, pattern in _TYPE_PATTERNS:
        if pattern.search(name):
            return precision
    return _first_of(_HALF, input_types)


def cuda_core_precision(name: str) -> str:
    """The precision of a kernel off the Tensor Cores, where its name says it: "fp32", else ""."""
    return "fp32" if _FP32_NAME.search(name) and not _HALF_NAME.search(name) else ""


def _first_of(precisions: tuple[str, ...], dtypes: InputDtypes) -> str | None:
    """The first of these precisions in which an input is."""
    given = {dtype.precision or dtype.torch_name for dtype in dtypes}
    return next((precision for precision in precisions if precision in given), None)
