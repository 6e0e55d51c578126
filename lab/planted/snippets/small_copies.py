"""Fault: the samples of a batch are copied one by one. Fixed: in one copy, and parted on the GPU.

python -m lab.planted.snippets.small_copies --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A network over point clouds of different sizes."""
    width, clouds = size(2048, 32), size(256, 8)
    points = [32 + 2 * (number % 32) for number in range(clouds)]
    model = nn.Sequential(
        nn.Linear(8, width),
        *(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(8)),
        nn.Linear(width, 16),
    ).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    batch = torch.randn(sum(points), 8, pin_memory=DEVICE == "cuda")

    def step() -> None:
        if fixed:
            samples = batch.to(DEVICE, non_blocking=True).split(points)
        else:
            samples = tuple(sample.to(DEVICE, non_blocking=True) for sample in batch.split(points))
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = model(torch.cat(samples)).square().mean()
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=clouds)


if __name__ == "__main__":
    main(train)
