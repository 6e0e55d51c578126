"""Kernel names as the PyTorch Profiler tab must read them to agree with our Tensor Core verdicts.

torch-tb-profiler 0.4.3 takes a kernel for one on Tensor Cores if its name contains one of PyProf's `PATTERNS`, which is
wrong both ways for today's kernels (docs/tensor_cores.md). So a name that its list misses gets a label with one of the
patterns in it, and in a name that its list takes wrongly a hyphen breaks the pattern. Other names stay as they are.
"""

from __future__ import annotations

_BROKEN = {
    "h884": "h-884",
    "s884": "s-884",
    "h1688": "h-1688",
    "s1688": "s-1688",
    "hmma": "h-mma",
    "i8816": "i-8816",
    "16816": "168-16",
    "dgrad_1x1_stride_2x2": "dgrad-1x1_stride_2x2",
    "first_layer_wgrad_kernel": "first-layer_wgrad_kernel",
    "conv1x1": "conv-1x1",
    "conv2d_c1_k1": "conv2d-c1_k1",
    "direct_group": "direct-group",
    "xmma_implicit_gemm": "xmma-implicit_gemm",
    "xmma_sparse_conv": "xmma-sparse_conv",
    "xmma_warp_specialized_implicit_gemm": "xmma-warp_specialized_implicit_gemm",
    "xmma_gemm": "xmma-gemm",
    "xmma_sparse_gemm": "xmma-sparse_gemm",
    "c1688": "c-1688",
}
PATTERNS = tuple(_BROKEN)
"""The list of torch-tb-profiler 0.4.3 (``profiler/tensor_core.py``)."""

ON_TENSOR_CORES = " [Tensor Cores: hmma]"
NOT_ON_TENSOR_CORES = " [no Tensor Cores]"
UNKNOWN = " [Tensor Cores: unknown]"


def tab_name(name: str, tensor_core: bool | None) -> str:
    """The name of a kernel for the tab, which shows "Yes" exactly if ``tensor_core`` is True.

    It shows unknown (None) as "No", because it has no third value; the name then contains "unknown".
    """
    matches = any(pattern in name for pattern in PATTERNS)
    if tensor_core:
        return name if matches else name + ON_TENSOR_CORES
    if matches:
        for pattern, broken in _BROKEN.items():
            name = name.replace(pattern, broken)
        return name + (UNKNOWN if tensor_core is None else NOT_ON_TENSOR_CORES)
    return name + UNKNOWN if tensor_core is None else name
