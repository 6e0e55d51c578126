"""Fault: convolutions on Tensor Cores with channels first, so that cuDNN transposes. Fixed: channels last.

python -m lab.planted.snippets.channels_last --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import itertools
from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A small image model under BF16 autocast."""
    torch.backends.cudnn.benchmark = True
    widths = (size(32, 8), size(64, 8), size(128, 16), size(128, 16), size(128, 16))
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 16)).to(DEVICE)
    images = torch.randn(size(64, 2), widths[0], size(56, 8), size(56, 8), device=DEVICE)
    if fixed:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        images = images.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
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
