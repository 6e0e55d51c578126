"""Fault: convolutions with a bias that the batch norm after them removes again. Fixed: bias=False.

python -m lab.planted.snippets.bias_before_batch_norm --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import itertools
from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A small image model under BF16 autocast, channels last."""
    torch.backends.cudnn.benchmark = True
    widths = (8, *(size(64, 8) for _ in range(6)))
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=not fixed), nn.BatchNorm2d(outputs), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 16))
    model = model.to(DEVICE).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    images = torch.randn(size(64, 2), widths[0], size(112, 8), size(112, 8), device=DEVICE)
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
