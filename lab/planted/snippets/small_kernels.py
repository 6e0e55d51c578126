"""Fault: the signals of a batch are pooled one by one, each by kernels of one thread block. Fixed: all at once.

python -m lab.planted.snippets.small_kernels --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


class Pooling(nn.Module):
    """Attention pooling over long signals, by a softmax over their positions."""

    def __init__(self, together: bool) -> None:
        super().__init__()
        self.sharpness = nn.Parameter(torch.ones(1))
        self.together = together

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        scores = signals * self.sharpness
        if self.together:
            weights = torch.softmax(scores, dim=1)
        else:
            weights = torch.stack([torch.softmax(row, dim=0) for row in scores.unbind(0)])
        return (weights * signals).sum(dim=1, keepdim=True)


def train(logdir: Path, fixed: bool) -> None:
    """Pooled signals are added to what a wide network makes of other inputs, under BF16 autocast."""
    width, batch = size(4096, 64), 16
    pooling = Pooling(together=fixed)
    wide = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
    model = nn.ModuleDict({"pooling": pooling, "wide": wide}).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    signals = torch.randn(batch, size(1 << 19, 1 << 10), device=DEVICE)
    inputs = torch.randn(batch, size(512, 2), width, device=DEVICE)
    targets = torch.randn_like(inputs)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        pooled = model["pooling"](signals)
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = nn.functional.mse_loss(model["wide"](inputs) + pooled[:, None], targets)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


if __name__ == "__main__":
    main(train)
