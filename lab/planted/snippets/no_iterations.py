"""Fault: the ends of steps are not marked. Fixed: ``prof.step()`` after each batch.

python -m lab.planted.snippets.no_iterations --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, profiler, run_steps, size

BATCHES = 8


def train(logdir: Path, fixed: bool) -> None:
    """Scores batches of images with a small model; there is no optimizer whose steps could be counted."""
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    ).to(DEVICE)  # fmt: skip
    images = torch.randn(size(128, 2), 3, 64, 64)
    hits = torch.zeros(10, dtype=torch.long, device=DEVICE)

    def score() -> None:
        nonlocal hits
        with torch.inference_mode():
            hits = hits + torch.bincount(model(images.to(DEVICE)).argmax(1), minlength=10)

    if fixed:
        run_steps(logdir, score, model=model, batch_size=len(images))
        return
    for _ in range(BATCHES):
        score()
    with profiler(logdir, schedule=None, model=model, batch_size=len(images)):
        for _ in range(BATCHES):
            score()


if __name__ == "__main__":
    main(train)
