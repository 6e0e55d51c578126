"""Ops that a broad draw of image and text models lacks: scattered rows, 3-D and depthwise windows, recurrent layers.

Sizes are those of training: edges and nodes of graphs, tokens of a vocabulary or of experts, clips of video and
volumes, windows of 3 to 11 pixels, sequences of speech and text.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .case import MOST_ELEMENTS, MOST_FLOPS, Case, leaf

_WIDTHS = (8, 16, 32, 40, 64, 96, 128, 200, 256, 512, 768, 1024)
_CHANNELS = (16, 24, 32, 40, 48, 64, 96, 128, 144, 192, 240, 256, 384, 512)
_SCATTERED = ("scatter_add", "scatter_add", "index_add", "index_add", "index_select", "index_select", "gather", "index",
              "index_put", "scatter_reduce")  # fmt: skip


def _scattered(pick: random.Random) -> Case | None:
    """Rows read from, or added to, other rows: each of ``rows`` names one of ``places``."""
    name, width = pick.choice(_SCATTERED), pick.choice(_WIDTHS)
    rows = int(2 ** pick.uniform(9, 21))
    places = max(8, int(rows / 2 ** pick.uniform(-1, 6)))
    if max(rows, places) * width > MOST_ELEMENTS / 4:
        return None
    skewed = pick.random() < 0.3

    def build(dtype: torch.dtype, device: str) -> Callable[[], Tensor]:
        chosen = torch.rand(rows, device=device)
        to = ((chosen**3 if skewed else chosen) * places).long().clamp_(max=places - 1)
        source, target = leaf((rows, width), dtype, device), leaf((places, width), dtype, device)
        wide = to.view(-1, 1).expand(rows, width)
        run: dict[str, Callable[[], Tensor]] = {
            "scatter_add": lambda: source.new_zeros(places, width).scatter_add_(0, wide, source),
            "index_add": lambda: source.new_zeros(places, width).index_add_(0, to, source),
            "index_select": lambda: target.index_select(0, to),
            "gather": lambda: target.gather(0, wide),
            "index": lambda: target[to],
            "index_put": lambda: torch.zeros_like(target).index_put((to,), source, accumulate=True),
            "scatter_reduce": lambda: source.new_zeros(places, width).scatter_reduce_(
                0, wide, source, "amax", include_self=False
            ),
        }
        return run[name]

    about = f"{name} {rows}x{width} of {places}{', skewed' if skewed else ''}"
    return Case("scattered", about, build, matrix=False)


def _volume(pick: random.Random) -> Case | None:
    """A 3-D convolution: of clips (few frames, larger images) or of volumes."""
    batch, channels, filters = pick.choice((1, 2, 4, 8, 16)), pick.choice(_CHANNELS), pick.choice(_CHANNELS)
    depth, side = pick.choice((4, 8, 8, 16, 16, 32)), pick.choice((7, 14, 16, 28, 32, 56, 64, 112))
    window = pick.choices(((3, 3, 3), (1, 3, 3), (3, 1, 1), (1, 1, 1), (3, 7, 7), (7, 1, 1)), (6, 3, 3, 2, 1, 0.5))[0]
    stride, groups = pick.choices((1, 2), (4, 1))[0], 1
    kind = pick.choices(("plain", "first", "depthwise"), (8, 1.5, 1.5))[0]
    if kind == "first":
        channels, window = pick.choice((1, 3)), pick.choice(((3, 7, 7), (3, 3, 3), (1, 7, 7)))
    elif kind == "depthwise":
        filters = groups = channels
        window = (3, 3, 3)
    outputs = batch * filters * math.prod(-(-size // stride) for size in (depth, side, side))
    flops = 2.0 * outputs * channels / groups * math.prod(window)
    if flops > MOST_FLOPS / 2 or max(outputs, batch * channels * depth * side * side) > MOST_ELEMENTS / 2:
        return None

    def build(dtype: torch.dtype, device: str) -> Callable[[], Tensor]:
        images = leaf((batch, channels, depth, side, side), dtype, device).requires_grad_(kind != "first")
        weight = leaf((filters, channels // groups, *window), dtype, device)
        return lambda: F.conv3d(images, weight, None, stride, tuple(size // 2 for size in window), 1, groups)

    sizes = f"{batch}x{channels}x{depth}x{side}x{side} -> {filters}"
    return Case("convolution", f"{sizes}, window {'x'.join(map(str, window))}, stride {stride}, groups {groups}", build)


def _depthwise(pick: random.Random) -> Case | None:
    """A depthwise convolution with a window of 3 to 11 pixels."""
    batch, channels = pick.choice((16, 32, 64, 128, 256)), pick.choice((*_CHANNELS, 576, 672, 768, 960, 1152, 1536))
    side, kernel, stride = pick.choice((7, 8, 12, 14, 15, 24, 28, 30, 56, 60, 112)), pick.choice((3, 3, 5, 7, 9, 11)), 1
    if pick.random() < 0.25:
        stride = 2
    if batch * channels * side * side > MOST_ELEMENTS / 2 or side < kernel:
        return None
    layout = "nhwc" if pick.random() < 0.35 else ""

    def build(dtype: torch.dtype, device: str) -> Callable[[], Tensor]:
        images, weight = (
            leaf((batch, channels, side, side), dtype, device, layout),
            leaf((channels, 1, kernel, kernel), dtype, device, layout),
        )
        return lambda: F.conv2d(images, weight, None, stride, kernel // 2, 1, channels)

    about = f"{batch}x{channels}x{side}x{side} -> {channels}, kernel {kernel}, stride {stride}, groups {channels}"
    return Case("convolution", about, build, layout)


def _recurrent(pick: random.Random) -> Case | None:
    """One to three layers of GRU or LSTM in one direction or both."""
    name, layers, both = pick.choice(("GRU", "LSTM")), pick.choice((1, 1, 2, 3)), pick.random() < 0.35
    batch, length = pick.choice((8, 16, 32, 64, 128, 256)), pick.choice((14, 28, 32, 64, 100, 128, 200, 256))
    inputs, hidden = (
        pick.choice((32, 64, 80, 128, 256, 512, 1024)),
        pick.choice((64, 96, 128, 192, 256, 384, 512, 1024)),
    )
    gates = 4 if name == "LSTM" else 3
    if 2.0 * batch * length * layers * (1 + both) * gates * hidden * (inputs + hidden) > MOST_FLOPS / 2:
        return None
    first = pick.random() < 0.6

    def build(dtype: torch.dtype, device: str) -> Callable[[], Tensor]:
        layer: nn.Module = getattr(nn, name)(inputs, hidden, layers, batch_first=first, bidirectional=both)
        layer.to(device, dtype)
        x = leaf((batch, length, inputs) if first else (length, batch, inputs), dtype, device)
        return lambda: layer(x)[0]  # type: ignore[no-any-return]

    about = f"{name} {batch}x{length}x{inputs} -> {hidden}, layers {layers}{', both directions' if both else ''}"
    return Case("recurrent", about, build)


def _transposed(pick: random.Random) -> Case | None:
    """A transposed convolution, as decoders and generators have them."""
    batch, channels, filters = pick.choice((8, 16, 32, 64)), pick.choice(_CHANNELS), pick.choice((3, *_CHANNELS))
    side, (kernel, padding) = pick.choice((7, 8, 14, 16, 28, 32, 56)), pick.choice(((2, 0), (4, 1), (4, 1)))
    if 2.0 * batch * side**2 * channels * filters * kernel**2 > MOST_FLOPS / 2:
        return None

    def build(dtype: torch.dtype, device: str) -> Callable[[], Tensor]:
        images, weight = (
            leaf((batch, channels, side, side), dtype, device),
            leaf((channels, filters, kernel, kernel), dtype, device),
        )
        return lambda: F.conv_transpose2d(images, weight, None, 2, padding)

    about = f"transposed {batch}x{channels}x{side}x{side} -> {filters}, kernel {kernel}"
    return Case("convolution", about, build)


def _sequence(pick: random.Random) -> Case | None:
    """A 1-D convolution, of sound or of tokens."""
    batch, channels, filters = pick.choice((4, 8, 16, 32, 64)), pick.choice(_CHANNELS), pick.choice(_CHANNELS)
    length, kernel = pick.choice((64, 128, 256, 500, 1000, 4000)), pick.choice((1, 3, 3, 5, 7, 9))
    groups = 1
    if pick.random() < 0.25:
        filters = groups = channels
    if 2.0 * batch * length * channels // groups * filters * kernel > MOST_FLOPS / 2:
        return None

    def build(dtype: torch.dtype, device: str) -> Callable[[], Tensor]:
        sound = leaf((batch, channels, length), dtype, device)
        weight = leaf((filters, channels // groups, kernel), dtype, device)
        return lambda: F.conv1d(sound, weight, None, 1, kernel // 2, 1, groups)

    return Case("convolution", f"{batch}x{channels}x{length} -> {filters}, kernel {kernel}, groups {groups}", build)


def _broadcast(pick: random.Random) -> Case | None:
    """What networks do between convolutions besides: scale and shift channels, pool to a vector, resize."""
    name = pick.choice(("scale channels", "shift channels", "mean of an image", "upsample", "group of means"))
    shape = (pick.choice((8, 16, 32, 64, 128)), pick.choice(_CHANNELS), *(pick.choice((7, 14, 28, 56, 112)),) * 2)
    if math.prod(shape) > MOST_ELEMENTS / 4:
        return None

    def build(dtype: torch.dtype, device: str) -> Callable[[], Tensor]:
        images, small = leaf(shape, dtype, device), leaf((*shape[:2], 1, 1), dtype, device)
        run: dict[str, Callable[[], Tensor]] = {
            "scale channels": lambda: images * small,
            "shift channels": lambda: images + small,
            "mean of an image": lambda: images.mean((2, 3), keepdim=True),
            "upsample": lambda: F.interpolate(images, scale_factor=2.0, mode="nearest"),
            "group of means": lambda: images.mean(1, keepdim=True),
        }
        return run[name]

    return Case("broadcast", f"{name} of {'x'.join(map(str, shape))}", build, matrix=False)


DRAW: tuple[tuple[Callable[[random.Random], Case | None], float], ...] = (
    (_scattered, 5.0),
    (_volume, 5.0),
    (_depthwise, 3.0),
    (_recurrent, 2.5),
    (_transposed, 1.0),
    (_sequence, 1.5),
    (_broadcast, 1.5),
)
