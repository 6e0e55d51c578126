"""Ways to tell from a kernel's name whether it runs on Tensor Cores: ours, and the list that other profilers use.

DLProf's own rule was never published; NVIDIA's PyProf, of the same time, holds the list below, and torch-tb-profiler
and xprof copied it. https://github.com/NVIDIA/PyProf/blob/fd1b2902e3306119eee40ba6b6e8b2f816920c29/pyprof/prof/tc.py#L19
"""

from __future__ import annotations

from tb_dlprof_plugin.names import KernelClass, classify_kernel

from .result import Row

PYPROF_LIST = (
    "h884", "s884", "h1688", "s1688", "hmma", "i8816", "16816", "dgrad_1x1_stride_2x2", "first_layer_wgrad_kernel",
    "conv1x1", "conv2d_c1_k1", "direct_group", "xmma_implicit_gemm", "xmma_sparse_conv",
    "xmma_warp_specialized_implicit_gemm", "xmma_gemm", "xmma_sparse_gemm", "c1688",
)  # fmt: skip


def ours(row: Row, compute_capability: tuple[int, int]) -> KernelClass:
    """The package's verdict, told what the analysis tells it."""
    return classify_kernel(
        row.name, op=row.op or None, input_types=row.input_types or None, compute_capability=compute_capability
    )


def by_list(row: Row) -> bool:
    """PyProf's, torch-tb-profiler's and xprof's verdict: a part of the name is on the list. It knows no "unknown"."""
    return any(part in row.name for part in PYPROF_LIST)
