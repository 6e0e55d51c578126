"""Fault: Adam goes through the parameters one by one. Fixed: one fused kernel for many of them.

python -m lab.planted.snippets.single_tensor_optimizer --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A small network with normalisations, whose parameters are many and small."""
    torch.set_float32_matmul_precision("high")
    layers: list[nn.Module] = []
    for _ in range(12):
        layers += [nn.Linear(512, 512), nn.LayerNorm(512), nn.ReLU()]
    model = nn.Sequential(*layers).to(DEVICE)
    if fixed:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=False)
    inputs = torch.randn(size(16384, 16), 512, device=DEVICE)
    targets = torch.randn_like(inputs)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


if __name__ == "__main__":
    main(train)
