"""Fault: before each micro-batch the weights of its samples are drawn one by one in Python. Fixed: by one NumPy call.

Each draw is small, and so is each pause of the GPU; together they leave it idle for more than half of the step.

python -m lab.planted.snippets.gpu_underutilized --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size

MICRO_BATCHES = 8


def train(logdir: Path, fixed: bool) -> None:
    """Gradients accumulate over eight micro-batches of a small regression model under BF16 autocast."""
    width = size(4096, 64)
    model = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(size(3072, 16), width, device=DEVICE)
    targets = torch.randn_like(inputs)
    generator = np.random.default_rng(0)

    def drawn(count: int) -> torch.Tensor:
        values = generator.beta(0.4, 0.4, count) if fixed else [random.betavariate(0.4, 0.4) for _ in range(count)]
        on_host = torch.as_tensor(values, dtype=torch.float32)
        return on_host.pin_memory() if DEVICE == "cuda" else on_host

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        for _ in range(MICRO_BATCHES):
            weights = drawn(len(inputs)).to(DEVICE, non_blocking=True)[:, None]
            with torch.autocast(DEVICE, torch.bfloat16):
                loss = nn.functional.mse_loss(model(inputs * weights), targets * weights)
            loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


if __name__ == "__main__":
    main(train)
