"""Fault: anomaly detection was left on after a hunt for NaN. Fixed: off.

python -m lab.planted.snippets.slow_api --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A deep perceptron."""
    width = size(1024, 64)
    layers: list[nn.Module] = []
    for _ in range(8):
        layers += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, 10)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    rows = torch.randn(size(1024, 16), width, device=DEVICE)
    labels = torch.randint(10, (len(rows),), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()

    with torch.autograd.set_detect_anomaly(not fixed):
        run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(rows))


if __name__ == "__main__":
    main(train)
