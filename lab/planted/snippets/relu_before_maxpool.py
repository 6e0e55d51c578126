"""Fault: each ReLU stands before its max pooling. Fixed: after it, where there are a quarter of the elements.

python -m lab.planted.snippets.relu_before_maxpool --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import itertools
from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """The first blocks of a VGG under BF16 autocast, channels last."""
    torch.backends.cudnn.benchmark = True
    widths = (8, size(64, 8), size(64, 8), size(128, 16))
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        behind = [nn.ReLU(), nn.MaxPool2d(2)]
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), *(reversed(behind) if fixed else behind)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 16))
    model = model.to(DEVICE).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    images = torch.randn(size(64, 2), widths[0], size(224, 16), size(224, 16), device=DEVICE)
    images = images.to(memory_format=torch.channels_last)
    labels = torch.randint(16, (len(images),), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(images))


if __name__ == "__main__":
    main(train)
