"""The twelve models, in plain torch: six that the planner's rules were made on and six that had no part in them.

Each is a stem, a list of ``blocks`` of one kind and a head, so that a block can be repeated or recomputed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Stacked(nn.Module):
    """``head(blocks(stem(x)))``; ``recompute`` puts each block under activation checkpointing."""

    def __init__(self, stem: nn.Module, blocks: list[nn.Module], head: nn.Module) -> None:
        super().__init__()
        self.stem, self.blocks, self.head = stem, nn.ModuleList(blocks), head
        self.recompute = False

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return self.head(x)  # type: ignore[no-any-return]


class Residual(nn.Module):
    """``x + body(x)``, with a ReLU behind where asked."""

    def __init__(self, *body: nn.Module, last: nn.Module | None = None) -> None:
        super().__init__()
        self.body, self.last = nn.Sequential(*body), last or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.last(x + self.body(x))  # type: ignore[no-any-return]


class ChannelsLast(nn.Module):
    """A module for ``(batch, height, width, channels)`` inside a convolutional one."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Multi-head attention by `scaled_dot_product_attention`."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, width))  # type: ignore[no-any-return]


class Tokens(nn.Module):
    """Token and position embeddings."""

    def __init__(self, vocabulary: int, tokens: int, width: int) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Parameter(torch.zeros(tokens, width))

    def forward(self, x: Tensor) -> Tensor:
        return self.token(x) + self.position  # type: ignore[no-any-return]


class Patches(nn.Module):
    """An image as a row of patches."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project, self.position = nn.Conv2d(3, width, 16, 16), nn.Parameter(torch.zeros(196, width))

    def forward(self, x: Tensor) -> Tensor:
        return self.project(x).flatten(2).transpose(1, 2) + self.position  # type: ignore[no-any-return]


class Recurrent(nn.Module):
    """One layer of an LSTM."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, width, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]  # type: ignore[no-any-return]


class Experts(nn.Module):
    """A mixture of four experts, of which each token takes the best by its own router."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.router = nn.LayerNorm(width), nn.Linear(width, 4)
        self.experts = nn.ModuleList(_mlp(width, 4 * width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        weights = self.router(y).softmax(-1)
        return x + sum(expert(y) * weights[..., i : i + 1] for i, expert in enumerate(self.experts))  # type: ignore[no-any-return]


class Pooled(nn.Module):
    """Classes from the mean over tokens."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.classes = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        return self.classes(self.norm(x.mean(1)))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Subject:
    """A model, its batch and loss; ``batch_size`` is the recorded one, ``layers`` the number of its blocks.

    ``held_out`` is true of models that had no part in the planner's rules.
    """

    name: str
    held_out: bool
    batch_size: int
    layers: int
    build: Callable[[int], Stacked]
    batch: Callable[[int], tuple[Tensor, Tensor]]

    def loss(self, model: nn.Module, inputs: Tensor, target: Tensor) -> Tensor:
        """Cross entropy over the last dimension, or over channels of a picture."""
        output = model(inputs)
        if output.dim() == 3:
            output = output.flatten(0, 1)
        return functional.cross_entropy(output, target.flatten() if output.dim() == 2 else target)


def _mlp(width: int, hidden: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


def _transformer(width: int, heads: int, causal: bool) -> nn.Module:
    return nn.Sequential(
        Residual(nn.LayerNorm(width), Attention(width, heads, causal)),
        Residual(nn.LayerNorm(width), _mlp(width, 4 * width)),
    )


def _image_head(channels: int) -> nn.Module:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def _convolution(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]


def _resnet(layers: int) -> Stacked:
    stem = nn.Sequential(*_convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
    block = [
        Residual(*_convolution(64, 64, 3), nn.ReLU(inplace=True), *_convolution(64, 64, 3), last=nn.ReLU(inplace=True))
        for _ in range(layers)
    ]
    return Stacked(stem, list(block), _image_head(64))


def _vgg(layers: int) -> Stacked:
    stem = nn.Sequential(nn.Conv2d(3, 128, 3, 2, 1), nn.ReLU())
    blocks: list[nn.Module] = [nn.Sequential(nn.Conv2d(128, 128, 3, 1, 1), nn.ReLU()) for _ in range(layers)]
    head = nn.Sequential(nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Linear(6272, 4096), nn.ReLU(), nn.Linear(4096, 1000))
    return Stacked(stem, blocks, head)


def _mobile(layers: int) -> Stacked:
    stem = nn.Sequential(*_convolution(3, 32, 3, 2), nn.ReLU6())
    blocks: list[nn.Module] = [
        Residual(
            *_convolution(32, 192, 1),
            nn.ReLU6(),
            *_convolution(192, 192, 3, groups=192),
            nn.ReLU6(),
            *_convolution(192, 32, 1),
        )
        for _ in range(layers)
    ]
    return Stacked(stem, blocks, _image_head(32))


def _convnext(layers: int) -> Stacked:
    stem = nn.Conv2d(3, 192, 4, 4)
    blocks: list[nn.Module] = [
        Residual(
            nn.Conv2d(192, 192, 7, 1, 3, groups=192), ChannelsLast(nn.Sequential(nn.LayerNorm(192), _mlp(192, 768)))
        )
        for _ in range(layers)
    ]
    return Stacked(stem, blocks, _image_head(192))


def _unet(layers: int) -> Stacked:
    stem = nn.Sequential(*_convolution(3, 64, 3), nn.ReLU(), nn.MaxPool2d(2))
    blocks: list[nn.Module] = [
        Residual(*_convolution(64, 128, 3, 2), nn.ReLU(), nn.ConvTranspose2d(128, 64, 2, 2)) for _ in range(layers)
    ]
    return Stacked(stem, blocks, nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(64, 21, 1)))


def _vit(layers: int) -> Stacked:
    return Stacked(Patches(384), [_transformer(384, 6, False) for _ in range(layers)], Pooled(384))


def _gpt(layers: int) -> Stacked:
    head = nn.Sequential(nn.LayerNorm(512), nn.Linear(512, 16384, bias=False))
    return Stacked(Tokens(16384, 256, 512), [_transformer(512, 8, True) for _ in range(layers)], head)


def _bert(layers: int) -> Stacked:
    layer = [nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.1, batch_first=True) for _ in range(layers)]
    return Stacked(Tokens(30522, 128, 512), list(layer), Pooled(512))


def _lstm(layers: int) -> Stacked:
    return Stacked(Tokens(10000, 64, 512), [Recurrent(512) for _ in range(layers)], nn.Linear(512, 10000))


def _perceptron(layers: int) -> Stacked:
    blocks: list[nn.Module] = [nn.Sequential(nn.Linear(2048, 2048), nn.ReLU()) for _ in range(layers)]
    return Stacked(nn.Linear(784, 2048), blocks, nn.Linear(2048, 10))


def _experts(layers: int) -> Stacked:
    return Stacked(Tokens(8192, 128, 384), [Experts(384) for _ in range(layers)], nn.Linear(384, 8192))


def _mixer(layers: int) -> Stacked:
    blocks: list[nn.Module] = [
        Residual(nn.LayerNorm(256), nn.Linear(256, 1024), nn.Dropout(0.1), nn.SiLU(), nn.Linear(1024, 256))
        for _ in range(layers)
    ]
    return Stacked(Patches(256), blocks, Pooled(256))


def _pictures(size: int, classes: int = 1000) -> Callable[[int], tuple[Tensor, Tensor]]:
    return lambda n: (torch.randn(n, 3, size, size), torch.randint(classes, (n,)))


def _words(vocabulary: int, tokens: int, each: bool) -> Callable[[int], tuple[Tensor, Tensor]]:
    return lambda n: (
        torch.randint(vocabulary, (n, tokens)),
        torch.randint(vocabulary if each else 1000, (n, tokens) if each else (n,)),
    )


SUBJECTS = (
    Subject("resnet", False, 64, 8, _resnet, _pictures(224)),
    Subject("vgg", True, 32, 4, _vgg, _pictures(224)),
    Subject("mobile", True, 64, 6, _mobile, _pictures(160)),
    Subject("convnext", False, 64, 6, _convnext, _pictures(224)),
    Subject("unet", True, 16, 3, _unet, lambda n: (torch.randn(n, 3, 256, 256), torch.randint(21, (n, 256, 256)))),
    Subject("vit", False, 64, 8, _vit, _pictures(224)),
    Subject("gpt", False, 16, 8, _gpt, _words(16384, 256, True)),
    Subject("bert", True, 64, 6, _bert, _words(30522, 128, False)),
    Subject("lstm", False, 64, 3, _lstm, _words(10000, 64, True)),
    Subject("perceptron", False, 8192, 8, _perceptron, lambda n: (torch.randn(n, 784), torch.randint(10, (n,)))),
    Subject("experts", True, 32, 4, _experts, _words(8192, 128, True)),
    Subject("mixer", True, 64, 8, _mixer, _pictures(224)),
)
