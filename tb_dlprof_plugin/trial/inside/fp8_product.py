"""A linear layer whose forward product is in FP8, as the remedy `fp8_products` tries it and shows it."""

from __future__ import annotations

from typing import Any

import torch


def quantized(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A matrix in FP8 (e4m3), and the number that one of its units stands for."""
    largest = torch.linalg.vector_norm(x, float("inf")).float().clamp(min=1e-12)
    # As it is rounded: the number is that of what was multiplied. What that lifts above the most rounds to it.
    scale = (torch.finfo(torch.float8_e4m3fn).max / largest).to(x.dtype)
    return (x * scale).to(torch.float8_e4m3fn), 1 / scale.float()


class Fp8Product(torch.autograd.Function):
    """x @ weight.T of (rows, in) and (out, in) in FP8; the backward pass is in BF16."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, weight: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """(rows, out) in a data type."""
        half, small = x.bfloat16(), weight.bfloat16()
        context.save_for_backward(half, small)
        context.dtype = weight.dtype
        (left, unit), (right, other) = quantized(half), quantized(small)
        return torch._scaled_mm(left, right.t(), scale_a=unit, scale_b=other, out_dtype=dtype)

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        """Gradients of x and weight."""
        x, weight = context.saved_tensors
        gradient = gradients[0].bfloat16()
        return gradient @ weight, (gradient.t() @ x).to(context.dtype), None


def fp8_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """As torch.nn.functional.linear: (..., in) to (..., out)."""
    kind = x.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
    rows = x.reshape(-1, x.shape[-1]).contiguous()
    y: torch.Tensor = Fp8Product.apply(rows, weight, dtype)  # type: ignore[no-untyped-call]
    y = y.view(*x.shape[:-1], weight.shape[0])
    return y if bias is None else y + bias.to(dtype)
