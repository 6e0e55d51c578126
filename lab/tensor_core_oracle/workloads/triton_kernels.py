# mypy: ignore-errors
"""Two Triton kernels as people write them: their names carry no information, so that "unknown" is the only right
verdict."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def fused_block(a, b, out, N: tl.constexpr):
    """The product of two square matrices, in one block."""
    rows = tl.arange(0, N)[:, None]
    columns = tl.arange(0, N)[None, :]
    product = tl.dot(tl.load(a + rows * N + columns), tl.load(b + rows * N + columns))
    tl.store(out + rows * N + columns, product)


@triton.jit
def combine_block(a, b, out, N: tl.constexpr):
    """The sum of two square matrices, in one block."""
    rows = tl.arange(0, N)[:, None]
    columns = tl.arange(0, N)[None, :]
    at = rows * N + columns
    tl.store(out + at, (tl.load(a + at) + tl.load(b + at)).to(tl.float32))


def launch_product(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """``out = a @ b`` for square matrices."""
    fused_block[(1,)](a, b, out, N=a.shape[0])


def launch_sum(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """``out = a + b``."""
    combine_block[(1,)](a, b, out, N=a.shape[0])
