"""Fault: an epoch is short, and each one starts new worker processes. Fixed: the workers are kept.

python -m lab.planted.snippets.worker_restart --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A classifier of time steps on so few samples that each epoch is one batch."""
    samples, width = size(128, 8), size(4096, 64)
    layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(6)]
    model = nn.Sequential(nn.Linear(32, width), *layers, nn.Linear(width, 10)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    data = TensorDataset(torch.randn(samples, 128, 32), torch.randint(10, (samples, 128)))
    loader = DataLoader(
        data,
        batch_size=samples,
        num_workers=2,
        pin_memory=DEVICE == "cuda",
        persistent_workers=fixed,
    )

    def epoch() -> None:
        for inputs, targets in loader:
            inputs, targets = inputs.to(DEVICE, non_blocking=True), targets.to(DEVICE, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(DEVICE, dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
            loss.backward()
            optimizer.step()

    run_steps(logdir, epoch, model=model, dataloader=loader, optimizer=optimizer)


if __name__ == "__main__":
    main(train)
