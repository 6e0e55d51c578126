"""Fault: a small network in small batches leaves a large GPU mostly idle. Fixed: a network that uses it.

python -m benchmarks.planted.snippets.gpu_too_large --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A perceptron, narrow or wide."""
    width = size(8192 if fixed else 128, 32)
    layers = [layer for _ in range(8) for layer in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(width, 10)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs = torch.randn(size(8192 if fixed else 256, 8), width, device=DEVICE)
    labels = torch.randint(10, (len(inputs),), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs), profile_memory=True)


if __name__ == "__main__":
    main(train)
