"""What a program computed with, by the conventions of its ranges and the names of its kernels."""

from __future__ import annotations

from collections.abc import Iterable

from tb_dlprof_plugin.readers.options import Markers

_KERNELS = (
    ("at::native::", "pytorch"), ("at::cuda::", "pytorch"), ("at_cuda_detail", "pytorch"),
    ("triton_poi_fused", "pytorch"), ("triton_red_fused", "pytorch"), ("tensorflow::", "tensorflow"),
    ("Eigen::GpuDevice", "tensorflow"), ("onnxruntime::", "onnxruntime"),
)  # fmt: skip
_JAX_MODULES = ("hlo_module=jit_", "hlo_module=pjit", "hlo_module=pmap")


def framework_of(conventions: Iterable[Markers], kernels: Iterable[str], texts: Iterable[str]) -> str:
    """A word of `Timeline.framework`; "" where nothing tells."""
    seen = set(conventions)
    if seen & {Markers.EMIT_NVTX, Markers.PYPROF}:
        return "pytorch"
    if Markers.XLA in seen:
        return "jax" if any(module in text for text in texts for module in _JAX_MODULES) else "tensorflow"
    if Markers.TENSORFLOW in seen:
        return "tensorflow"
    of_kernels = {framework for name in kernels for part, framework in _KERNELS if part in name}
    if Markers.TENSORRT in seen and "pytorch" not in of_kernels:
        return "tensorrt"
    return next((one for one in ("pytorch", "tensorflow", "onnxruntime") if one in of_kernels), "")
