"""Convolutions: 1d to 3d, transposed, grouped, depthwise, dilated; both layouts; all gradients; searched or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .numerics import FORMATS, normal
from .registry import Call, add

GROUP = "convolution"
KINDS: dict[str, tuple[Callable[..., nn.Module], tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "stem7x7": (nn.Conv2d, (8, 3, 112, 112), (3, 64, 7), {"stride": 2, "padding": 3}),
    "1x1": (nn.Conv2d, (8, 256, 28, 28), (256, 128, 1), {}),
    "1x1-stride": (nn.Conv2d, (8, 256, 28, 28), (256, 512, 1), {"stride": 2}),
    "3x3": (nn.Conv2d, (8, 128, 28, 28), (128, 128, 3), {"padding": 1}),
    "3x3-wide": (nn.Conv2d, (8, 512, 14, 14), (512, 512, 3), {"padding": 1, "bias": False}),
    "3x3-stride": (nn.Conv2d, (8, 64, 56, 56), (64, 128, 3), {"padding": 1, "stride": 2, "bias": False}),
    "3x3-small": (nn.Conv2d, (8, 16, 32, 32), (16, 16, 3), {"padding": 1}),
    "3x3-odd": (nn.Conv2d, (8, 13, 30, 30), (13, 27, 3), {}),
    "5x5": (nn.Conv2d, (8, 32, 27, 27), (32, 48, 5), {"padding": 2}),
    "11x11": (nn.Conv2d, (4, 3, 112, 112), (3, 64, 11), {"stride": 4, "padding": 2}),
    "grouped": (nn.Conv2d, (8, 128, 28, 28), (128, 128, 3), {"padding": 1, "groups": 8}),
    "grouped-small": (nn.Conv2d, (8, 64, 28, 28), (64, 64, 3), {"padding": 1, "groups": 16}),
    "depthwise": (nn.Conv2d, (8, 128, 28, 28), (128, 128, 3), {"padding": 1, "groups": 128}),
    "depthwise7": (nn.Conv2d, (8, 96, 28, 28), (96, 96, 7), {"padding": 3, "groups": 96}),
    "dilated": (nn.Conv2d, (8, 64, 28, 28), (64, 64, 3), {"padding": 2, "dilation": 2}),
    "lenet": (nn.Conv2d, (64, 1, 32, 32), (1, 6, 5), {}),
    "transposed": (nn.ConvTranspose2d, (8, 64, 28, 28), (64, 32, 4), {"stride": 2, "padding": 1}),
    "conv1d": (nn.Conv1d, (8, 64, 512), (64, 128, 5), {"padding": 2}),
    "conv1d-audio": (nn.Conv1d, (4, 1, 8000), (1, 32, 80), {"stride": 4}),
    "transposed1d": (nn.ConvTranspose1d, (8, 64, 128), (64, 64, 4), {"stride": 2}),
    "conv3d": (nn.Conv3d, (2, 16, 8, 28, 28), (16, 32, 3), {"padding": 1}),
    "conv3d-stem": (nn.Conv3d, (2, 3, 8, 56, 56), (3, 32, 5), {"stride": 2, "padding": 2}),
    "depthwise3d": (nn.Conv3d, (2, 32, 8, 14, 14), (32, 32, 3), {"padding": 1, "groups": 32}),
    "transposed3d": (nn.ConvTranspose3d, (2, 16, 8, 14, 14), (16, 8, 2), {"stride": 2}),
}
CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def _convolution(kind: str, dtype: torch.dtype, channels_last: bool, backward: bool) -> Callable[[], Call]:
    make, shape, sizes, settings = KINDS[kind]

    def build() -> Call:
        module: Any = make(*sizes, **settings, device="cuda", dtype=dtype)
        x = normal(*shape, dtype=dtype)
        if channels_last:
            module = module.to(memory_format=CHANNELS_LAST[x.dim()])
            x = x.contiguous(memory_format=CHANNELS_LAST[x.dim()])
        x.requires_grad_(backward)
        gradient = torch.ones_like(module(x))

        def call() -> object:
            if not backward:
                with torch.no_grad():
                    return module(x)
            module.zero_grad()
            x.grad = None
            module(x).backward(gradient)
            return None

        return call

    return build


for _kind in KINDS:
    for _name, _dtype, _tf32 in FORMATS:
        for _last in (False, True):
            if _last and "1d" in _kind:
                continue
            _layout = "last" if _last else "first"
            add(f"conv/{_kind}/{_layout}/{_name}", GROUP, _convolution(_kind, _dtype, _last, True), tf32=_tf32)
            if _kind in ("stem7x7", "3x3", "1x1", "3x3-small", "5x5", "grouped", "lenet"):
                add(
                    f"conv-benchmark/{_kind}/{_layout}/{_name}",
                    "convolution-benchmark",
                    _convolution(_kind, _dtype, _last, True),
                    tf32=_tf32,
                    benchmark=True,
                )
for _kind in ("3x3", "1x1", "depthwise"):
    add(f"conv/{_kind}/first/fp64", GROUP, _convolution(_kind, torch.float64, False, True))


def _fused(dtype: torch.dtype) -> Callable[[], Call]:
    def build() -> Call:
        x, w, b = normal(8, 64, 28, 28, dtype=dtype), normal(64, 64, 3, 3, dtype=dtype), normal(64, dtype=dtype)
        return lambda: torch.cudnn_convolution_relu(x, w, b, (1, 1), (1, 1), (1, 1), 1)

    return build


for _name, _dtype, _tf32 in FORMATS:
    add(f"conv/bias-relu/{_name}", GROUP, _fused(_dtype), tf32=_tf32)
