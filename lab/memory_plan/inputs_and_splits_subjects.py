"""Three models without a part in any rule, and the subjects with larger inputs or as one rank of two has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .subjects import Patches, Pooled, Residual, Stacked, Subject, Tokens

_IMAGE_SIDES = {"resnet": (224, 320), "vgg": (224, 320), "mobile": (160, 224), "convnext": (224, 320)}
_PATCH = 16


class Gated(nn.Module):
    """A dilated convolution over time with a gate, as in WaveNet."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.filter = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)
        self.gate = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)
        self.out = nn.Conv1d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.out(self.filter(x).tanh() * self.gate(x).sigmoid())  # type: ignore[no-any-return]


class Dense(nn.Module):
    """Three convolutions, each on what all before it made, as in DenseNet."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.parts = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(channels + i * growth),
                nn.ReLU(inplace=True),
                nn.Conv2d(channels + i * growth, growth, 3, padding=1, bias=False),
            )
            for i in range(3)
        )
        self.join = nn.Conv2d(channels + 3 * growth, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = torch.cat((x, part(x)), 1)
        return self.join(x)  # type: ignore[no-any-return]


class RootMeanSquare(nn.Module):
    """Normalisation by the root of the mean square."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Rotary(nn.Module):
    """Attention with rotated queries and keys, as in Llama."""

    def __init__(self, width: int, heads: int, tokens: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        angle = torch.arange(tokens)[:, None] / 10000 ** (torch.arange(0, width // heads, 2) / (width // heads))
        self.register_buffer("cos", angle.cos().repeat(1, 2))
        self.register_buffer("sin", angle.sin().repeat(1, 2))

    def _turned(self, x: Tensor) -> Tensor:
        one, two = x.chunk(2, -1)
        return x * self.cos + torch.cat((-two, one), -1) * self.sin  # type: ignore[operator]

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = (
            part(x).view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        y = functional.scaled_dot_product_attention(self._turned(q), self._turned(k), v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, width))  # type: ignore[no-any-return]


class GatedMlp(nn.Module):
    """SwiGLU."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.silu(self.gate(x)) * self.up(x))  # type: ignore[no-any-return]


def _wave(layers: int) -> Stacked:
    head = nn.Sequential(nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(128, 100))
    return Stacked(nn.Conv1d(1, 128, 5, 4, 2), [Gated(128, 2**i) for i in range(layers)], head)


def _dense(layers: int) -> Stacked:
    stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 1000))
    return Stacked(stem, [Dense(64, 32) for _ in range(layers)], head)


def _llama(layers: int) -> Stacked:
    blocks: list[nn.Module] = [
        nn.Sequential(
            Residual(RootMeanSquare(512), Rotary(512, 8, 256)), Residual(RootMeanSquare(512), GatedMlp(512, 1408))
        )
        for _ in range(layers)
    ]
    head = nn.Sequential(RootMeanSquare(512), nn.Linear(512, 16384, bias=False))
    return Stacked(nn.Embedding(16384, 512), blocks, head)


NEW = (
    Subject("wave", True, 32, 6, _wave, lambda n: (torch.randn(n, 1, 16000), torch.randint(100, (n,)))),
    Subject("dense", True, 32, 6, _dense, lambda n: (torch.randn(n, 3, 224, 224), torch.randint(1000, (n,)))),
    Subject("llama", True, 16, 6, _llama, lambda n: (torch.randint(16384, (n, 256)), torch.randint(16384, (n, 256)))),
)
"""Opened when the rules stand."""


def resized(subject: Subject) -> list[tuple[dict[str, Any], Subject]]:
    """The subject with a larger input and the plan's argument for it; empty where its input has one size only."""
    inputs, target = subject.batch(1)
    if not inputs.is_floating_point() and isinstance(subject.build(1).stem, Tokens):
        length = 2 * inputs.shape[1]
        of = (lambda n: torch.zeros(n, length, dtype=torch.int64)) if target.dim() > 1 else None
        return [
            (
                {"sequence_length": length},
                replace(
                    subject,
                    build=_longer(subject.build, length),
                    batch=lambda n: (torch.zeros(n, length).long(), of(n) if of else torch.zeros(n).long()),
                ),
            )
        ]
    if isinstance(subject.build(1).stem, Patches):
        return [({"image_size": 320}, replace(subject, build=_more_patches(subject.build, 320), batch=_images(320)))]
    if subject.name in _IMAGE_SIDES:
        side = _IMAGE_SIDES[subject.name][1]
        return [({"image_size": side}, replace(subject, batch=_images(side)))]
    if subject.name == "unet":
        images = _images(384)
        return [
            ({"image_size": 384}, replace(subject, batch=lambda n: (images(n)[0], torch.zeros(n, 384, 384).long())))
        ]
    return []


def _images(side: int) -> Callable[[int], tuple[Tensor, Tensor]]:
    return lambda n: (torch.zeros(n, 3, side, side), torch.zeros(n).long())


def _longer(build: Callable[[int], Stacked], length: int) -> Callable[[int], Stacked]:
    def built(layers: int) -> Stacked:
        model = build(layers)
        token = model.stem.token
        model.stem = Tokens(token.num_embeddings, length, token.embedding_dim)  # type: ignore[arg-type, union-attr]
        return model

    return built


def _more_patches(build: Callable[[int], Stacked], side: int) -> Callable[[int], Stacked]:
    def built(layers: int) -> Stacked:
        model = build(layers)
        width = model.stem.position.shape[1]  # type: ignore[union-attr, index]
        model.stem.position = nn.Parameter(torch.zeros((side // _PATCH) ** 2, width))  # type: ignore[arg-type]
        return model

    return built


class HalfAttention(nn.Module):
    """The rank's half of the heads: the first product cut by columns, the second by rows."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal, self.width = heads // 2, causal, width // 2
        self.qkv, self.out = nn.Linear(width, 3 * self.width), nn.Linear(self.width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, self.width // self.heads).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, self.width))  # type: ignore[no-any-return]


def halved(subject: Subject) -> Subject | None:
    """What one of two tensor-parallel ranks has of a subject; None where it is not known how it would be cut."""
    build = {"gpt": _half_gpt, "vit": _half_vit, "perceptron": _half_perceptron}.get(subject.name)
    return replace(subject, build=build) if build is not None else None


def _half_transformer(width: int, heads: int, causal: bool) -> nn.Module:
    mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
    return nn.Sequential(
        Residual(nn.LayerNorm(width), HalfAttention(width, heads, causal)), Residual(nn.LayerNorm(width), mlp)
    )


def _half_gpt(layers: int) -> Stacked:
    head = nn.Sequential(nn.LayerNorm(512), nn.Linear(512, 16384, bias=False))
    return Stacked(Tokens(16384, 256, 512), [_half_transformer(512, 8, True) for _ in range(layers)], head)


def _half_vit(layers: int) -> Stacked:
    return Stacked(Patches(384), [_half_transformer(384, 6, False) for _ in range(layers)], Pooled(384))


def _half_perceptron(layers: int) -> Stacked:
    blocks: list[nn.Module] = [
        nn.Sequential(nn.Linear(1024 if i % 2 else 2048, 2048 if i % 2 else 1024), nn.ReLU()) for i in range(layers)
    ]
    return Stacked(nn.Linear(784, 2048), blocks, nn.Linear(2048, 10))
