"""Returns the group of a classified kernel: its purpose and, for convolutions, pooling, copies and collectives, the
algorithm.

Groups are finer than the families of `classify`: the share of a step that Winograd convolutions or the backward pass of
pooling take is followed over batch sizes and GPUs by them. A name with a dot is part of the group before the dot:
"convolution" is all of "convolution.*".

The algorithms are those of cuDNN's manual (``cudnnConvolutionFwdAlgo_t``, ``cudnnConvolutionBwdDataAlgo_t``,
``cudnnConvolutionBwdFilterAlgo_t``): both of its plain gradient algorithms, 0 and 1, multiply matrices without forming
them, so ``wgrad_alg0_engine`` and ``dgrad_engine`` are implicit GEMMs.
"""

from __future__ import annotations

import functools
import re

GROUPS: dict[str, str] = {
    "convolution.implicit_gemm": "Convolutions, implicit GEMM",
    "convolution.gemm": "Convolutions, GEMM",
    "convolution.winograd": "Convolutions, Winograd",
    "convolution.fft": "Convolutions, FFT",
    "convolution.direct": "Convolutions, direct",
    "convolution.other": "Convolutions, algorithm unknown",
    "gemm": "Matrix products",
    "attention": "Attention",
    "rnn": "Recurrent layers",
    "pooling.forward": "Pooling, forward",
    "pooling.backward": "Pooling, backward",
    "normalization": "Normalization",
    "softmax": "Softmax and loss",
    "elementwise": "Elementwise",
    "reduction": "Reductions",
    "index": "Indexing and embedding",
    "random": "Random numbers",
    "optimizer": "Optimizer",
    "layout": "Layout changes",
    "copy.kernel": "Copies by kernels",
    "copy.host_to_device": "Copies, host to GPU",
    "copy.device_to_host": "Copies, GPU to host",
    "copy.device_to_device": "Copies, GPU to GPU",
    "copy.other": "Copies, other",
    "set": "Sets",
    "communication.broadcast": "Collectives, broadcast",
    "communication.other": "Collectives, other",
    "other": "Other",
}
"""Every group with its label, in the order in which lists show them."""

PARENTS = {
    "convolution": "Convolutions, all",
    "pooling": "Pooling, all",
    "copy": "Copies, all",
    "communication": "Collectives, all",
}
"""Groups of groups with their labels."""
_FAMILIES = {"transpose": "layout"}
_WINOGRAD = re.compile(r"[wW]inograd")
# A product of complex matrices, in a convolution of real numbers, multiplies Fourier transforms.
_FFT = re.compile(r"fft|cgemm|_cf32|flip_filter|region_transform|pointwise_mult_and_sum_complex")
_DIRECT = re.compile(r"[dD]epthwise|grouped_direct|_c1_k1|shmem_tiling|direct_group")
_IMPLICIT = re.compile(
    r"implicit|ImplicitGemm|precomputed_convolve|fprop|Fprop|[dw]grad|[DW]grad|convolve_common_engine"
    r"|[shi](884|1688|8816|16816)cudnn|_(fp16_)?[sd]cudnn|^igemm_"
)
_GEMM = re.compile(r"gemm|Gemm|GEMM|nvjet|gemv|im2col|vol2col|col2im|explicit_convolve|cutlass")
_BACKWARD = re.compile(r"[bB]ackward|_bw_|_bw<|grad_?[iI]nput")
_DIRECTIONS = (
    ("HtoD", "host_to_device"),
    ("DtoH", "device_to_host"),
    ("DtoD", "device_to_device"),
    ("PtoP", "device_to_device"),
)


@functools.lru_cache(maxsize=65536)
def kernel_group(name: str, family: str) -> str:
    """The group of a kernel, copy or set: a key of `GROUPS`.

    Args:
        name: as Kineto writes it.
        family: `KernelClass.kind`; it considers the op around the kernel, so a GEMM inside a convolution counts as
            convolution.
    """
    if family == "convolution":
        return f"convolution.{_algorithm(name)}"
    if family == "pooling":
        return "pooling.backward" if _BACKWARD.search(name) else "pooling.forward"
    if family == "copy":
        return f"copy.{_copy(name)}"
    if family == "communication":
        return "communication.broadcast" if "broadcast" in name.lower() else "communication.other"
    group = _FAMILIES.get(family, family)
    return group if group in GROUPS else "other"


def groups_named(name: str) -> list[str]:
    """The groups of a name: itself, or all parts of "convolution"; none for a name that is not a group."""
    return [group for group in GROUPS if group == name or group.startswith(f"{name}.")]


def group_label(name: str) -> str:
    """The label of a group or of a group of groups."""
    return GROUPS.get(name) or PARENTS[name]


def _algorithm(name: str) -> str:
    for algorithm, pattern in (
        ("winograd", _WINOGRAD),
        ("fft", _FFT),
        ("direct", _DIRECT),
        ("implicit_gemm", _IMPLICIT),
        ("gemm", _GEMM),
    ):
        if pattern.search(name):
            return algorithm
    return "other"


def _copy(name: str) -> str:
    if not name.startswith("Memcpy"):
        return "kernel"
    return next((direction for mark, direction in _DIRECTIONS if mark in name), "other")
