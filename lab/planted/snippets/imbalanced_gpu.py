"""Fault: one of two ranks gets sequences three times as long as the other's. Fixed: both get the same.

python -m lab.planted.snippets.imbalanced_gpu --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ..common import DEVICE, main, run_steps, size
from ..ranks import run_ranks

GPUS = 2
LENGTHS = (768, 256)
"""Tokens of a sequence, by rank, as a dataset sorted by length deals them out; fixed the mean of them."""


def train(logdir: Path, fixed: bool) -> None:
    """A model that works on each token alone, so that its work grows with the length of the sequences."""
    run_ranks(lambda rank: _train(rank, logdir, fixed))


def _train(rank: int, logdir: Path, fixed: bool) -> None:
    width = size(512, 16)
    layers: list[nn.Module] = []
    for _ in range(4):
        layers += [nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)]
    model = DistributedDataParallel(nn.Sequential(*layers).to(DEVICE), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    length = sum(LENGTHS) // len(LENGTHS) if fixed else LENGTHS[rank]
    tokens = torch.randn(8, length, width, device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(tokens).square().mean().backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(tokens))


if __name__ == "__main__":
    main(train)
