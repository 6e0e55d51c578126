"""Fault: ``nn.DataParallel`` over two GPUs in one process. Fixed: DistributedDataParallel, a process for each.

python -m lab.planted.snippets.data_parallel --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from ..common import DEVICE, main, run_steps, size
from ..ranks import RANKS, run_ranks

GPUS = 2
BATCH = size(1024, 16)
"""Of both GPUs together."""


def train(logdir: Path, fixed: bool) -> None:
    """A perceptron of eight layers."""
    if fixed:
        run_ranks(lambda rank: _train(logdir, DistributedDataParallel(_model(), gradient_as_bucket_view=True), RANKS))
    else:
        _train(logdir, DataParallel(_model()), 1)


def _model() -> nn.Module:
    width = size(1024, 32)
    layers: list[nn.Module] = []
    for _ in range(8):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 10)).to(DEVICE)


def _train(logdir: Path, model: nn.Module, processes: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    rows = torch.randn(BATCH // processes, size(1024, 32), device=DEVICE)
    labels = torch.randint(10, (len(rows),), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(rows))


if __name__ == "__main__":
    main(train)
