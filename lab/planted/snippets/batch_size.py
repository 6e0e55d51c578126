"""Fault: batches of 8 images leave the GPU idle and its memory empty. Fixed: batches of 256.

python -m lab.planted.snippets.batch_size --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import itertools
from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A small image model."""
    torch.backends.cudnn.benchmark = True
    widths = (3, 32, 64, 128)
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    batch = size(256, 4) if fixed else size(8, 2)
    images = torch.randn(batch, 3, 64, 64, device=DEVICE)
    labels = torch.randint(10, (batch,), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


if __name__ == "__main__":
    main(train)
