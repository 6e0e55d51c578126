"""Fault: the first two steps of the process are recorded. Fixed: five later ones, after a warm-up.

python -m lab.planted.snippets.profiling_window --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, STEPS, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A small image model, whose first step loads cuDNN and allocates what the later ones use again."""
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10),
    ).to(DEVICE)  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    images = torch.randn(size(128, 2), 3, 64, 64, device=DEVICE)
    labels = torch.randint(10, (len(images),), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    schedule = {} if fixed else {"schedule": {"wait": 0, "warmup": 0, "active": 2, "repeat": 1}}
    steps = STEPS if fixed else 2
    run_steps(logdir, step, steps, model=model, optimizer=optimizer, batch_size=len(images), **schedule)


if __name__ == "__main__":
    main(train)
