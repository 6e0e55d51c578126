"""The models that several planted trainings share."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.utils.data import Dataset

from .common import DEVICE

_TOKENS = 256
_TEXTS = 64


def layers(count: int, width: int, *after: Callable[[], nn.Module]) -> list[nn.Module]:
    """Linear layers of one width, each with modules after it."""
    return [layer for _ in range(count) for layer in (nn.Linear(width, width), *(make() for make in after))]


def pairs(count: int, width: int) -> list[nn.Module]:
    """The same with a ReLU, each a module of its own."""
    return [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(count)]


def blocks(count: int, width: int, hidden: int, activation: Callable[[], nn.Module] = nn.GELU) -> list[nn.Module]:
    """Feed-forward blocks: to a hidden width and back."""
    return [nn.Sequential(nn.Linear(width, hidden), activation(), nn.Linear(hidden, width)) for _ in range(count)]


def convolutions(widths: Sequence[int], bias: bool = False) -> list[nn.Module]:
    """Convolutions from each number of channels to the next, each with batch norm and ReLU."""
    found: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        found += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=bias), nn.BatchNorm2d(outputs), nn.ReLU()]
    return found


def image_model(body: Sequence[nn.Module], width: int, labels: int) -> nn.Sequential:
    """What convolutions find, averaged over the image, and a layer that classifies it."""
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, labels))
    return nn.Sequential(*body, *head).to(DEVICE)


def patch_model(width: int, count: int) -> nn.Sequential:
    """A network over image patches of 16 x 16."""
    return nn.Sequential(nn.Linear(3 * 16 * 16, width), *blocks(count, width, 4 * width), nn.Linear(width, 10)).to(
        DEVICE
    )


class Texts(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Texts of random words, tokenized when they are asked for."""

    def __init__(self, count: int, vocabulary: int, words: int) -> None:
        self.ids = {f"word{number}": number for number in range(vocabulary)}
        known = list(self.ids)
        self.texts = [", ".join(random.choices(known, k=words)) for _ in range(_TEXTS)]
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        words = [word.strip(".,;:!?") for word in self.texts[index % _TEXTS].lower().split()]
        ids = torch.tensor([self.ids.get(word, 0) for word in words])
        return ids[:_TOKENS], ids[1 : _TOKENS + 1]
