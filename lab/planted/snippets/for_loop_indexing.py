"""Fault: a Python loop scales the samples of a batch row by row. Fixed: one product scales them all.

python -m lab.planted.snippets.for_loop_indexing --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A wide network under BF16 autocast; each sample is a sequence with a gain of its own."""
    width, batch = size(2048, 64), size(128, 8)
    model = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(batch, size(256, 4), width, device=DEVICE)
    gains = torch.rand(batch, device=DEVICE)
    targets = torch.randn_like(inputs)

    def scaled() -> torch.Tensor:
        if fixed:
            return inputs * gains[:, None, None]
        result = torch.empty_like(inputs)
        for row in range(batch):
            result[row] = inputs[row] * gains[row]
        return result

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        samples = scaled()
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = nn.functional.mse_loss(model(samples), targets)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


if __name__ == "__main__":
    main(train)
