"""Classifies GPU kernels by their name and op: `classify_kernel`, and which ops could use Tensor Cores."""

from tb_dlprof_plugin.names.kernel_verdicts import KernelClass, classify_kernel

__all__ = ["KernelClass", "classify_kernel"]
