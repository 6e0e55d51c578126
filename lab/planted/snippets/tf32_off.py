"""Fault: matrix products in FP32 with TF32 off, as PyTorch has it by default. Fixed: TF32 is allowed.

python -m lab.planted.snippets.tf32_off --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import itertools
from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A wide autoencoder."""
    torch.set_float32_matmul_precision("high" if fixed else "highest")
    widths = (size(2048, 64), size(1024, 32), size(512, 16), size(1024, 32), size(2048, 64))
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    model = nn.Sequential(*layers[:-1]).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(size(8192, 8), widths[0], device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.mse_loss(model(inputs), inputs).backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


if __name__ == "__main__":
    main(train)
