"""The ops that are measured: drawn at random over the sizes that training uses, from no particular model.

A case builds its inputs in a data type and returns a function that runs the op forward; its output is then
differentiated. The draw is seeded: the same number of cases is the same cases everywhere.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from . import irregular
from .case import MOST_ELEMENTS, MOST_FLOPS, Case, leaf

CHANNELS = (
    8, 16, 24, 32, 40, 48, 64, 72, 80, 96, 112, 116, 128, 144, 160, 184, 192, 224, 232, 240, 256, 288, 320, 352, 384,
    448, 464, 480, 512, 576, 640, 672, 768, 832, 960, 1024, 1152, 1280, 1536, 2048,
)  # fmt: skip
COMMON_CHANNELS = (64, 64, 96, 128, 192, 256, 256, 384, 512, 512, 768, 1024, 2048)
SIDES = (4, 6, 7, 8, 12, 13, 14, 16, 20, 24, 27, 28, 32, 40, 48, 55, 56, 64, 80, 96, 112, 128)
BATCHES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512)
FIRST = ((3, 1, 1), (3, 2, 1), (5, 1, 2), (7, 2, 3), (11, 4, 2), (16, 16, 0), (4, 4, 0))
"""Kernel, stride and padding of first layers."""
WIDTHS = (
    10, 64, 96, 128, 192, 256, 320, 384, 512, 640, 768, 1000, 1024, 1152, 1280, 1536, 2048, 2304, 2752, 3072, 4096,
    5120, 8192, 9216, 11008, 16384, 25088, 30522, 32000, 32128, 50257,
)  # fmt: skip


def _side(size: int, kernel: int, stride: int, padding: int) -> int:
    return (size + 2 * padding - kernel) // stride + 1


def _convolution(pick: random.Random, kinds: tuple[float, ...] = (10, 1, 4, 1.5), nhwc: float = 0.3) -> Case | None:
    kind = pick.choices(("plain", "first", "depthwise", "grouped", "patches", "first layer"), (*kinds, 0, 0)[:6])[0]
    batch, side = pick.choice(BATCHES), pick.choice(SIDES)
    groups, stride = 1, pick.choices((1, 2), (4, 1))[0]
    inputs, outputs = pick.choice(CHANNELS), pick.choice(CHANNELS)
    kernel = pick.choices((1, 3, 5, 7), (5, 5, 0.7, 0.5))[0]
    padding = kernel // 2
    if kind.startswith("first"):
        inputs, side = pick.choice((1, 3)), pick.choice((28, 32, 64, 128, 224))
        kernel, stride, padding = pick.choice(FIRST)
    elif kind == "patches":
        kernel = stride = pick.choice((2, 2, 4))
        padding = 0
    elif kind == "depthwise":
        outputs = groups = inputs
        kernel = pick.choices((3, 5, 7), (4, 2, 2))[0]
        padding = kernel // 2
    elif kind == "grouped":
        groups = pick.choice((2, 4, 8, 16, 32))
        width = pick.choice((4, 8, 16, 24, 32, 64))
        inputs, outputs, kernel, padding = groups * width, groups * width * pick.choice((1, 1, 2)), 3, 1
    # The images of a training need no gradient.
    differentiated = kind != "first layer"
    return _case(pick, (batch, inputs, side), outputs, kernel, stride, padding, groups, nhwc, differentiated)


def _case(
    pick: random.Random,
    image: tuple[int, int, int],
    outputs: int,
    kernel: int,
    stride: int,
    padding: int,
    groups: int = 1,
    nhwc: float = 0.3,
    differentiated: bool = True,
) -> Case | None:
    """A convolution over ``image`` (batch, channels, side); None where it would be too large or too small."""
    batch, inputs, side = image
    if side < kernel:
        return None
    out = _side(side, kernel, stride, padding)
    flops = 2.0 * batch * out * out * outputs * (inputs // groups) * kernel * kernel
    if flops > MOST_FLOPS or batch * max(inputs * side * side, outputs * out * out) > MOST_ELEMENTS:
        return None
    bias = pick.random() < 0.3
    layout = "nhwc" if pick.random() < nhwc else ""

    def build(dtype: torch.dtype, device: str) -> Callable[[], Tensor]:
        images = leaf((batch, inputs, side, side), dtype, device, layout).requires_grad_(differentiated)
        weight = leaf((outputs, inputs // groups, kernel, kernel), dtype, device, layout)
        added = leaf((outputs,), dtype, device) if bias else None
        return lambda: F.conv2d(images, weight, added, stride, padding, 1, groups)

    about = f"{batch}x{inputs}x{side}x{side} -> {outputs}, kernel {kernel}, stride {stride}, groups {groups}"
    return Case("convolution", about, build, layout)


def _common(pick: random.Random) -> Case | None:
    """A convolution of the sizes that most image models are made of, in either layout.

    Sizes that kernels are tuned for gain more from Tensor Cores than those that a broad draw mostly finds.
    """
    batch, side = pick.choice((16, 32, 64, 128, 256)), pick.choice((7, 13, 14, 27, 28, 55, 56, 112))
    inputs, outputs = pick.choice(COMMON_CHANNELS), pick.choice(COMMON_CHANNELS)
    kernel, stride = pick.choices((1, 3, 5, 7), (4, 4, 1.5, 0.5))[0], pick.choices((1, 2), (5, 1))[0]
    return _case(pick, (batch, inputs, side), outputs, kernel, stride, kernel // 2, nhwc=0.5)


def _channels_last(pick: random.Random) -> Case | None:
    return _convolution(pick, (8, 0, 4, 1.5, 1), 1.0)


def _first_layer(pick: random.Random) -> Case | None:
    return _convolution(pick, (0, 0, 0, 0, 1, 4))


def _odd_width(pick: random.Random) -> Case | None:
    """A layer whose number of outputs is no multiple of 8, as that over a vocabulary."""
    return _linear(pick, pick.choice((int(2 ** pick.uniform(3, 16)), pick.randrange(5000, 60000, 2))))


def _rows(pick: random.Random) -> int:
    rows = int(2 ** pick.uniform(3, 16.5))
    return rows if pick.random() < 0.15 else max(8, rows // 8 * 8)


def _linear(pick: random.Random, outputs: int | None = None) -> Case | None:
    rows, inputs = _rows(pick), pick.choice(WIDTHS)
    outputs = outputs or pick.choice(WIDTHS)
    if pick.random() < 0.1:
        inputs, outputs = int(2 ** pick.uniform(3, 12)), int(2 ** pick.uniform(3, 12))
    if 2.0 * rows * inputs * outputs > MOST_FLOPS * 2 or max(rows * outputs, inputs * outputs) > MOST_ELEMENTS:
        return None
    bias = pick.random() < 0.7

    def build(dtype: torch.dtype, device: str) -> Callable[[], Tensor]:
        x = leaf((rows, inputs), dtype, device)
        weight = leaf((outputs, inputs), dtype, device)
        added = leaf((outputs,), dtype, device) if bias else None
        return lambda: F.linear(x, weight, added)

    return Case("linear", f"{rows}x{inputs} -> {outputs}", build)


def _batched(pick: random.Random) -> Case | None:
    batch, rows, columns = pick.choice((8, 16, 32, 64, 96, 128, 256, 512)), _rows(pick) // 16 + 8, 0
    inner = pick.choice((16, 32, 64, 80, 128, 196, 197, 256, 512))
    columns = pick.choice((32, 49, 64, 128, 196, 197, 256, 512, 1024))
    if 2.0 * batch * rows * columns * inner > MOST_FLOPS or batch * rows * max(columns, inner) > MOST_ELEMENTS:
        return None

    def build(dtype: torch.dtype, device: str) -> Callable[[], Tensor]:
        a, b = leaf((batch, rows, inner), dtype, device), leaf((batch, inner, columns), dtype, device)
        return lambda: torch.bmm(a, b)

    return Case("batched", f"{batch} of {rows}x{inner}x{columns}", build)


def _attention(pick: random.Random) -> Case | None:
    batch, heads = pick.choice((1, 2, 4, 8, 16, 32, 64, 128)), pick.choice((3, 4, 6, 8, 12, 16, 24))
    length, depth = (
        pick.choice((49, 64, 128, 196, 197, 256, 384, 512, 577, 1024, 2048)),
        pick.choice((32, 64, 64, 80, 128)),
    )
    causal = pick.random() < 0.4
    if 4.0 * batch * heads * length * length * depth > MOST_FLOPS or batch * heads * length * depth > MOST_ELEMENTS / 4:
        return None

    def build(dtype: torch.dtype, device: str) -> Callable[[], Tensor]:
        q, k, v = (leaf((batch, heads, length, depth), dtype, device) for _ in range(3))
        return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return Case("attention", f"{batch}x{heads}x{length}x{depth}{', causal' if causal else ''}", build)


_POINTWISE: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "leaky_relu": F.leaky_relu,
    "dropout": lambda x: F.dropout(x, 0.1),
    "add": lambda x: x + x.detach(),
    "mul": lambda x: x * x.detach(),
    "transpose": lambda x: x.flatten(0, -2).t().contiguous(),
    "mean": lambda x: x.mean(-1),
    "cat": lambda x: torch.cat((x, x.detach()), 1),
    "softmax": lambda x: F.softmax(x, -1),
}


def _pointwise(pick: random.Random) -> Case | None:
    name = pick.choice(list(_POINTWISE))
    shape = (pick.choice(BATCHES), pick.choice((64, 128, 196, 256, 512, 1024)), pick.choice(CHANNELS))
    if math.prod(shape) > MOST_ELEMENTS / 2:
        return None

    def build(dtype: torch.dtype, device: str) -> Callable[[], Tensor]:
        x = leaf(shape, dtype, device)
        return lambda: _POINTWISE[name](x)

    return Case("pointwise", f"{name} of {'x'.join(map(str, shape))}", build, matrix=False)


def _of_images(pick: random.Random) -> Case | None:
    name = pick.choice(("batch_norm", "batch_norm", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "relu", "add"))
    shape = (pick.choice(BATCHES), pick.choice(CHANNELS), *(pick.choice(SIDES),) * 2)
    layout = "nhwc" if pick.random() < 0.3 else ""
    if math.prod(shape) > MOST_ELEMENTS / 2 or math.prod(shape) // shape[1] < 2:
        return None
    kernel, stride, padding = pick.choice(((3, 2, 1), (2, 2, 0), (3, 2, 0)))

    def build(dtype: torch.dtype, device: str) -> Callable[[], Tensor]:
        x = leaf(shape, dtype, device, layout)
        weight, bias = leaf((shape[1],), torch.float32, device), leaf((shape[1],), torch.float32, device)
        mean, variance = torch.zeros(shape[1], device=device), torch.ones(shape[1], device=device)
        run: dict[str, Callable[[], Tensor]] = {
            "batch_norm": lambda: F.batch_norm(x, mean, variance, weight, bias, training=True),
            "max_pool2d": lambda: F.max_pool2d(x, kernel, stride, padding),
            "avg_pool2d": lambda: F.avg_pool2d(x, kernel, stride, padding),
            "adaptive_avg_pool2d": lambda: F.adaptive_avg_pool2d(x, 1),
            "relu": lambda: F.relu(x),
            "add": lambda: x + x.detach(),
        }
        return run[name]

    return Case("images", f"{name} of {'x'.join(map(str, shape))}", build, layout, matrix=False)


DRAWS: dict[str, tuple[tuple[Callable[[random.Random], Case | None], float], ...]] = {
    "broad": (
        (_convolution, 5.0), (_linear, 3.0), (_batched, 1.0), (_attention, 1.0), (_pointwise, 1.5), (_of_images, 2.0),
    ),
    "common": ((_common, 5.0), (_first_layer, 1.0)),
    "edges": ((_channels_last, 4.0), (_first_layer, 1.5), (_odd_width, 1.0)),
    "irregular": irregular.DRAW,
}  # fmt: skip
"""What is drawn, with weights; "edges" and "common" hold what a broad draw finds too seldom, "irregular" what it
lacks."""


def draw(count: int, what: str = "broad") -> list[Case]:
    """``count`` different cases of one of `DRAWS`, mixed."""
    pick = random.Random(0)
    draws, weights = zip(*DRAWS[what], strict=True)
    cases: dict[Any, Case] = {}
    while len(cases) < count:
        case = pick.choices(draws, weights)[0](pick)
        if case is not None:
            cases.setdefault((case.about.split(", stride")[0], case.layout), case)
    return list(cases.values())
