"""Fault: AdamW over lists of parameters, a pass over all of them for each term. Fixed: one pass of a fused kernel.

python -m lab.planted.snippets.optimizer_not_fused --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """Many weights and a small batch, under BF16 autocast."""
    width = size(8192, 64)
    model = nn.Sequential(*(layer for _ in range(3) for layer in (nn.Linear(width, width), nn.GELU()))).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fixed, foreach=not fixed)
    inputs = torch.randn(size(2048, 16), width, device=DEVICE)
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
