"""Fault: moving averages of the weights are kept parameter by parameter. Fixed: by ops over lists of parameters.

The loss is read before, as many trainings do, so that the GPU has nothing else to do while the small ops are launched.

python -m lab.planted.snippets.low_utilization_stretch --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size

DECAYS = (0.99, 0.9999)


def train(logdir: Path, fixed: bool) -> None:
    """Long batches through layers with few weights."""
    torch.set_float32_matmul_precision("high")
    width = size(512, 32)
    layers: list[nn.Module] = []
    for _ in range(16):
        layers += [nn.Linear(width, width), nn.GELU()]
    model = nn.Sequential(*layers).to(DEVICE)
    averages = {decay: copy.deepcopy(model).requires_grad_(False) for decay in DECAYS}
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(size(65536, 16), width, device=DEVICE)
    targets = torch.randn_like(inputs)
    losses: list[float] = []

    @torch.no_grad()
    def keep_averages() -> None:
        weights: list[torch.Tensor] = list(model.parameters())
        for decay, average in averages.items():
            kept: list[torch.Tensor] = list(average.parameters())
            if fixed:
                torch._foreach_lerp_(kept, weights, 1 - decay)
                continue
            for old, new in zip(kept, weights, strict=True):
                old.copy_(old * decay + new * (1 - decay))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        keep_averages()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


if __name__ == "__main__":
    main(train)
