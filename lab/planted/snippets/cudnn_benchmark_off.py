"""Fault: cuDNN chooses the algorithms of convolutions by its heuristics. Fixed: it times them once.

python -m lab.planted.snippets.cudnn_benchmark_off --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import itertools
from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A small image model in FP32."""
    torch.backends.cudnn.benchmark = fixed
    widths = (3, 64, 128, 256)
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    images = torch.randn(size(64, 2), 3, 56, 56, device=DEVICE)
    labels = torch.randint(10, (len(images),), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(images))


if __name__ == "__main__":
    main(train)
