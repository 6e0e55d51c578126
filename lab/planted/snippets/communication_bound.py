"""Fault: gradients are exchanged after each of four accumulated batches. Fixed: ``no_sync`` around the first three.

python -m lab.planted.snippets.communication_bound --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ..common import DEVICE, main, run_steps, size
from ..ranks import run_ranks

GPUS = 2
ACCUMULATED = 4


def train(logdir: Path, fixed: bool) -> None:
    """Large layers and small batches: much to exchange, little to compute meanwhile."""
    run_ranks(lambda rank: _train(logdir, fixed))


def _train(logdir: Path, fixed: bool) -> None:
    width = size(6144, 64)
    layers: list[nn.Module] = []
    for _ in range(3):
        layers += [nn.Linear(width, width), nn.ReLU()]
    model = DistributedDataParallel(nn.Sequential(*layers).to(DEVICE), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    rows = torch.randn(size(128, 8), width, device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        for batch in range(ACCUMULATED):
            last = batch == ACCUMULATED - 1
            with model.no_sync() if fixed and not last else contextlib.nullcontext():
                (model(rows).square().mean() / ACCUMULATED).backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=ACCUMULATED * len(rows))


if __name__ == "__main__":
    main(train)
