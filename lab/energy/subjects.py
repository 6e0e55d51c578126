"""The models whose energy is measured, large enough that the GPU sets their pace: seven that the estimates are made on
and three that have no part in them, in plain torch, and three more of these from torchvision and transformers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..memory_plan import subjects as of_memory  # type: ignore[import-not-found]  # mypy knows it as memory_plan
from ..memory_plan.library_models import LIBRARY_MODELS  # type: ignore[import-not-found]
from ..memory_plan.subjects import (  # type: ignore[import-not-found]
    Attention,
    Recurrent,
    Residual,
    Tokens,
)


@dataclass(frozen=True)
class Subject:
    """A model with its batch; ``held_out`` is true of models that have no part in the estimates."""

    name: str
    held_out: bool
    batch_size: int
    build: Callable[[], nn.Module]
    batch: Callable[[int], tuple[Tensor, Tensor]]
    adam: bool

    def loss(self, model: nn.Module, inputs: Tensor, target: Tensor) -> Tensor:
        """Cross entropy over the last dimension."""
        output = model(inputs)
        return functional.cross_entropy(output.flatten(0, -2), target.flatten())


class Bottleneck(nn.Module):
    """The block of ResNet-50, with a projection where the shape changes."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, 4 * width, 1, bias=False),
            nn.BatchNorm2d(4 * width),
        )
        same = channels == 4 * width
        self.project: nn.Module = nn.Identity()
        if not same:
            self.project = nn.Sequential(
                nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.body(x) + self.project(x))  # type: ignore[no-any-return]


class Mean(nn.Module):
    """The mean over tokens."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(1)


def _resnet() -> nn.Module:
    blocks: list[nn.Module] = []
    channels = 64
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for i in range(count):
            blocks.append(Bottleneck(channels, width, 2 if i == 0 and width > 64 else 1))
            channels = 4 * width
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)),
        nn.Sequential(*blocks),
        nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)),
    )


def _vgg() -> nn.Module:
    layers: list[nn.Module] = []
    channels = 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(channels, width, 3, 1, 1), nn.ReLU(inplace=True)]
            channels = width
        layers.append(nn.MaxPool2d(2))
    head = [nn.Linear(25088, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout()]
    return nn.Sequential(nn.Sequential(*layers), nn.Flatten(), nn.Sequential(*head, nn.Linear(4096, 1000)))


def _gpt() -> nn.Module:
    width = 1024
    blocks = [
        nn.Sequential(
            Residual(nn.LayerNorm(width), Attention(width, 16, True)),
            Residual(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)),
        )
        for _ in range(6)
    ]
    return nn.Sequential(Tokens(16384, 512, width), *blocks, nn.LayerNorm(width), nn.Linear(width, 16384, bias=False))


def _bert() -> nn.Module:
    layers = [nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.1, batch_first=True) for _ in range(8)]
    return nn.Sequential(Tokens(30522, 128, 768), *layers, Mean(), nn.Linear(768, 1000))


def _lstm() -> nn.Module:
    return nn.Sequential(Tokens(10000, 64, 1024), Recurrent(1024), Recurrent(1024), nn.Linear(1024, 10000))


def _mlp() -> nn.Module:
    layers = [nn.Sequential(nn.Linear(4096, 4096), nn.ReLU()) for _ in range(8)]
    return nn.Sequential(nn.Linear(784, 4096), *layers, nn.Linear(4096, 10))


def _pictures(n: int) -> tuple[Tensor, Tensor]:
    return torch.randn(n, 3, 224, 224), torch.randint(1000, (n,))


def _words(vocabulary: int, tokens: int, each: bool) -> Callable[[int], tuple[Tensor, Tensor]]:
    return lambda n: (
        torch.randint(vocabulary, (n, tokens)),
        torch.randint(vocabulary if each else 1000, (n, tokens) if each else (n,)),
    )


def _of_memory(name: str, held_out: bool, batch_size: int, layers: int) -> Subject:
    """A model of the memory plan's, larger."""
    found = next(one for one in of_memory.SUBJECTS if one.name == name)
    return Subject(name, held_out, batch_size, lambda: found.build(layers), found.batch, adam=True)


class Logits(nn.Module):
    """Of a language model of transformers."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x).logits  # type: ignore[no-any-return]


def _of_library(name: str, batch_size: int) -> Subject:
    """A model of a library, with a larger batch."""
    found = next(one for one in LIBRARY_MODELS if one.name == name)
    if found.words:
        return Subject(name, True, batch_size, lambda: Logits(found.build()), _words(50000, 256, True), adam=True)
    return Subject(name, True, batch_size, found.build, _pictures, adam=found.optimizer.startswith("adam"))


SUBJECTS = (
    Subject("resnet", False, 128, _resnet, _pictures, adam=False),
    Subject("gpt", False, 32, _gpt, _words(16384, 512, True), adam=True),
    Subject("mlp", False, 8192, _mlp, lambda n: (torch.randn(n, 784), torch.randint(10, (n,))), adam=True),
    Subject("lstm", False, 256, _lstm, _words(10000, 64, True), adam=True),
    Subject("vgg", False, 64, _vgg, _pictures, adam=False),
    Subject("bert", False, 128, _bert, _words(30522, 128, False), adam=True),
    _of_memory("vit", False, 256, 12),
    _of_memory("convnext", True, 64, 12),
    _of_memory("mixer", True, 384, 16),
    _of_memory("experts", True, 192, 8),
    _of_library("densenet121", 128),
    _of_library("swin_t", 128),
    _of_library("opt", 32),
)
