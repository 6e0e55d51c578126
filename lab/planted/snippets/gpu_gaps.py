"""Fault: each step draws its samples by weights that Python sums up again, and the GPU runs out of work meanwhile.

Fixed: the sums are made once.

python -m lab.planted.snippets.gpu_gaps --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size

SAMPLES = 300_000
"""Of the data set, each with a weight of its own."""


def train(logdir: Path, fixed: bool) -> None:
    """Samples are sequences of 16 on the device, drawn by their weights; the network is wide, so the GPU has work."""
    width, batch = size(4096, 64), size(512, 16)
    model = nn.Sequential(*(layer for _ in range(6) for layer in (nn.Linear(width, width), nn.GELU()))).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    data = torch.randn(2 * batch, 16, width, device=DEVICE)
    indices = range(SAMPLES)
    weights = [random.random() for _ in indices]
    sums = list(itertools.accumulate(weights))

    def step() -> None:
        if fixed:
            chosen = random.choices(indices, cum_weights=sums, k=batch)
        else:
            chosen = random.choices(indices, weights=weights, k=batch)
        rows = torch.tensor(chosen, pin_memory=DEVICE == "cuda").to(DEVICE, non_blocking=True)
        inputs = data[rows % len(data)]
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = nn.functional.mse_loss(model(inputs), inputs)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


if __name__ == "__main__":
    main(train)
