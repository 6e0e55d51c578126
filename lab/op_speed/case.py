"""One op that is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

Build = Callable[[torch.dtype, str], Callable[[], Tensor]]

MOST_FLOPS = 2.5e11
MOST_ELEMENTS = 3.0e8


@dataclass(frozen=True)
class Case:
    """``layout`` is "nhwc" for images with channels last, else ""; ``matrix``: TF32 can change its time."""

    kind: str
    about: str
    build: Build = field(repr=False)
    layout: str = ""
    matrix: bool = True


def leaf(shape: tuple[int, ...], dtype: torch.dtype, device: str, layout: str = "") -> Tensor:
    """A random tensor that gets a gradient."""
    tensor = torch.randn(shape, device=device).to(dtype)
    if layout == "nhwc":
        tensor = tensor.contiguous(memory_format=torch.channels_last)
    return tensor.requires_grad_()
