"""Fault: so little work in a step that mixed precision would make it longer. Fixed: a batch with which it pays.

Both run in FP32: what is wrong is not the precision but to expect anything of changing it.

python -m lab.planted.snippets.amp_will_not_pay --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A deep and narrow model."""
    width = size(512, 32)
    layers: list[nn.Module] = []
    for _ in range(16):
        layers += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, 16)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    inputs = torch.randn(size(32768, 16) if fixed else size(64, 8), width, device=DEVICE)
    labels = torch.randint(16, (len(inputs),), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


if __name__ == "__main__":
    main(train)
