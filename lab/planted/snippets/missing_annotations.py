"""Fault: the hook is not given the model, so no op says which module it belongs to. Fixed: ``model=model``.

python -m lab.planted.snippets.missing_annotations --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


class Block(nn.Module):
    """Two layers around which the input is carried on."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows + self.narrow(nn.functional.gelu(self.wide(rows)))


def train(logdir: Path, fixed: bool) -> None:
    """Four equal blocks: without module names they are indistinguishable."""
    model = nn.Sequential(*(Block(size(512, 32)) for _ in range(4)), nn.Linear(size(512, 32), 10)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    rows = torch.randn(size(4096, 32), size(512, 32), device=DEVICE)
    labels = torch.randint(10, (len(rows),), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()

    run_steps(logdir, step, model=model if fixed else None, optimizer=optimizer if fixed else None)


if __name__ == "__main__":
    main(train)
