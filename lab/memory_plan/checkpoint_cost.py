"""What activation checkpointing costs the CPU, over the forward pass that is computed again.

    python -m lab.memory_plan.checkpoint_cost

Three networks of twelve modules, with tensors so small that only the CPU's work for ops and hooks counts. Steps with
and without checkpoints take turns in one process, on one thread.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

_MODULES, _STEPS, _ROUNDS = 12, 15, 20


class Block(nn.Module):
    """Of a transformer."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out, self.drop = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Dropout(0.1)
        self.mlp = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        x = x + self.drop(self.out(nn.functional.scaled_dot_product_attention(q, k, v)))
        result: Tensor = x + self.drop(self.mlp(self.norm2(x)))
        return result


def _convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
        nn.Conv2d(4, 4, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
    )  # fmt: skip


def _perceptron() -> nn.Module:
    return nn.Sequential(*(layer for _ in range(6) for layer in (nn.Linear(8, 8), nn.ReLU())))


SUBJECTS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "convolutions": (_convolutions, (2, 4, 4, 4)),
    "transformer": (Block, (2, 4, 16)),
    "perceptron": (_perceptron, (4, 8)),
}


def ratio_of(make: Callable[[], nn.Module], shape: tuple[int, ...]) -> float:
    """The time that checkpoints add to a step, over the time of a forward pass."""
    modules, given = nn.ModuleList(make() for _ in range(_MODULES)), torch.randn(shape)

    def forward(checkpoints: bool) -> Tensor:
        x = given
        for i, module in enumerate(modules):
            # Where no input needs a gradient, as for the first one, nothing is checkpointed.
            x = checkpoint(module, x, use_reentrant=False) if checkpoints and i else module(x)
        return x

    def plain() -> None:
        forward(False).sum().backward()  # type: ignore[no-untyped-call]

    def checkpointed() -> None:
        forward(True).sum().backward()  # type: ignore[no-untyped-call]

    for _ in range(5):
        plain()
        checkpointed()
    more, once = [], []
    for _ in range(_ROUNDS):
        first, second, third, fourth = (_timed(one) for one in (plain, checkpointed, checkpointed, plain))
        more.append((second + third - first - fourth) / 2)
        once.append(_timed(lambda: forward(False)))
    return statistics.median(more) / statistics.median(once)


def _timed(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    for _ in range(_STEPS):
        run()
    return (time.perf_counter() - began) / _STEPS


def main() -> None:
    """A line per network."""
    torch.set_num_threads(1)
    for name, (make, shape) in SUBJECTS.items():
        print(f"{name:14} {ratio_of(make, shape):.2f} times the forward pass")


if __name__ == "__main__":
    main()
