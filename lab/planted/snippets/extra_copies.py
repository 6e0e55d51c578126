"""Fault: noise and a mask are made on the CPU and copied each step. Fixed: they are made on the GPU.

python -m lab.planted.snippets.extra_copies --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A network that learns to remove noise from its inputs."""
    features, width, batch = size(128, 16), size(3072, 32), size(8192, 16)
    hidden = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(7)]
    model = nn.Sequential(nn.Linear(features, width), *hidden, nn.Linear(width, features)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(batch, features, device=DEVICE)

    def step() -> None:
        if fixed:
            noise = torch.randn(batch, features, device=DEVICE)
            weights = torch.ones(batch, 1, device=DEVICE)
        else:
            noise = torch.randn(batch, features).to(DEVICE)
            weights = torch.ones(batch, 1).to(DEVICE)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            outputs = model(inputs + noise)
        loss = ((outputs - noise).square() * weights).mean()
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


if __name__ == "__main__":
    main(train)
