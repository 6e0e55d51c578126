"""Fault: a GradScaler with BF16 autocast, whose gradients have FP32's range. Fixed: without it.

python -m lab.planted.snippets.scaler_with_bf16 --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """Layers of one width; the same loop as for FP16."""
    width = size(1024, 32)
    layers: list[nn.Module] = []
    for _ in range(12):
        layers += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, 16)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    scaler = torch.amp.GradScaler(DEVICE, enabled=not fixed)
    inputs = torch.randn(size(32768, 8), width, device=DEVICE)
    labels = torch.randint(16, (len(inputs),), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(inputs), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


if __name__ == "__main__":
    main(train)
