"""Models, data and the loop of the planted scripts: each script is one use of them, with or without one fault."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import Dataset

_STEPS = 1_000_000
"""More than any trial runs: the process is ended from outside."""


class Images(Dataset[tuple[torch.Tensor, int]]):
    """Made-up images and classes; ``work_s`` is what decoding one would take of a CPU or a disk."""

    def __init__(self, count: int = 4096, size: int = 32, work_s: Callable[[int], float] | float = 0.0) -> None:
        self._image = torch.randn(3, size, size)
        self._count, self._work_s = count, work_s

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        work_s = self._work_s(index) if callable(self._work_s) else self._work_s
        if work_s:
            time.sleep(work_s)
        return self._image + (index % 7) / 7, index % 10


class Block(nn.Module):
    """A transformer's block with fused attention."""

    def __init__(self, width: int, heads: int, *, attention_weights: bool = False) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self._weights = attention_weights

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=self._weights)[0]
        return x + self.mlp(self.norm2(x))


def transformer(width: int, depth: int, heads: int, **settings: Any) -> nn.Sequential:
    """Blocks on random tokens."""
    return nn.Sequential(*(Block(width, heads, **settings) for _ in range(depth)), nn.Linear(width, 10))


def mlp(width: int, depth: int) -> nn.Sequential:
    """Linear layers of equal width."""
    layers = (module for _ in range(depth) for module in (nn.Linear(width, width), nn.ReLU()))
    return nn.Sequential(*layers, nn.Linear(width, 10))


def convnet(width: int, depth: int) -> nn.Sequential:
    """Convolutions with batch norm."""
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1)]
    for _ in range(depth):
        layers += [nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


class Pointwise(nn.Module):
    """Long chains of elementwise operations between two layers."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.before, self.after = nn.Linear(64, width), nn.Linear(width, 10)
        self.scales = nn.Parameter(torch.ones(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.before(x)
        for scale in self.scales:
            x = x * torch.sigmoid(scale * x) + 0.1 * torch.tanh(x)
        return self.after(x)


def fixed_batches(*shape: int, device: str = "cpu") -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
    """The same batch again and again, where it is needed."""
    torch.manual_seed(0)
    inputs = torch.randn(*shape, device=device)
    targets = torch.randint(10, (shape[0],), device=device)
    return itertools.repeat((inputs, targets))


def epochs(loader: Iterable[Any]) -> Iterable[Any]:
    """The batches of a DataLoader, epoch after epoch."""
    while True:
        yield from loader


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Any],
    *,
    device: str = "cpu",
    autocast: torch.dtype | None = None,
    after_step: Callable[[], object] = lambda: None,
) -> None:
    """A plain training loop."""
    for _, (inputs, targets) in zip(range(_STEPS), batches, strict=False):
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        with torch.autocast(device, dtype=autocast, enabled=autocast is not None):
            outputs = model(inputs)
            if outputs.dim() == 3:
                outputs = outputs.mean(dim=1)
            loss = F.cross_entropy(outputs, targets)
        loss.backward()
        optimizer.step()
        after_step()


def fast_gpu() -> None:
    """Switches that a good script sets."""
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
