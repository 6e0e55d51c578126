"""Fault: a model of large matrix products runs in FP32. Fixed: forward pass and loss under BF16 autocast.

python -m lab.planted.snippets.amp_not_used --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """Four feed-forward blocks and a classifier."""
    width, hidden = size(1024, 32), size(4096, 64)
    blocks = [nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width)) for _ in range(4)]
    model = nn.Sequential(*blocks, nn.LayerNorm(width), nn.Linear(width, 16)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(size(2048, 8), width, device=DEVICE)
    labels = torch.randint(16, (len(inputs),), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=fixed):
            loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


if __name__ == "__main__":
    main(train)
