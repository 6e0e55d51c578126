"""The number formats that workloads vary, by the short name that appears in a workload's name."""

from __future__ import annotations

import torch

FORMATS: tuple[tuple[str, torch.dtype, bool], ...] = (
    ("fp32", torch.float32, False),
    ("tf32", torch.float32, True),
    ("fp16", torch.float16, False),
    ("bf16", torch.bfloat16, False),
)
"""Name, dtype, TF32 allowed."""


def normal(*shape: int, dtype: torch.dtype = torch.float32, grad: bool = False) -> torch.Tensor:
    """Normal numbers on the GPU."""
    return torch.randn(*shape, device="cuda").to(dtype).requires_grad_(grad)
