"""Fault: a GradScaler that doubles its scale after every good step, so that every other step overflows and is skipped.

Fixed: the scaler's own settings, which double it every 2,000 steps.

python -m lab.planted.snippets.loss_scale_overflow --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """Feed-forward blocks under FP16 autocast."""
    width = size(1024, 32)
    blocks = [nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)) for _ in range(4)]
    model = nn.Sequential(*blocks, nn.Linear(width, 16)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=True)
    scaler = torch.amp.GradScaler(DEVICE) if fixed else torch.amp.GradScaler(DEVICE, 2.0**30, growth_interval=1)
    inputs = torch.randn(size(4096, 8), width, device=DEVICE)
    labels = torch.randint(16, (len(inputs),), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


if __name__ == "__main__":
    main(train)
