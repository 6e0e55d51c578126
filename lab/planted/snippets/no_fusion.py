"""Fault: GELU written out, each term a kernel that reads and writes the whole tensor. Fixed: PyTorch's own GELU.

python -m lab.planted.snippets.no_fusion --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


class WrittenOut(nn.Module):
    """The approximation of GELU by a tanh, as many language models spell it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def train(logdir: Path, fixed: bool) -> None:
    """Blocks of two matrix products with an activation between them, under BF16 autocast."""
    width = size(2048, 32)
    layers: list[nn.Module] = []
    for _ in range(3):
        activation = nn.GELU(approximate="tanh") if fixed else WrittenOut()
        layers += [nn.Linear(width, 4 * width), activation, nn.Linear(4 * width, width)]
    model = nn.Sequential(*layers).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(size(8192, 16), width, device=DEVICE)
    targets = torch.randn_like(inputs)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


if __name__ == "__main__":
    main(train)
