"""Fault: gradients of the last step stay until the backward pass begins. Fixed: they go before the forward pass.

python -m lab.planted.snippets.late_zero_grad --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """Wide layers, so that the gradients are as large as what the forward pass keeps."""
    torch.set_float32_matmul_precision("high")
    width = size(8192, 32)
    model = nn.Sequential(*(layer for _ in range(6) for layer in (nn.Linear(width, width), nn.GELU()))).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(size(8192, 16), width, device=DEVICE)
    targets = torch.randn_like(inputs)

    def step() -> None:
        if fixed:
            optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(inputs), targets)
        if not fixed:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs), profile_memory=True)


if __name__ == "__main__":
    main(train)
