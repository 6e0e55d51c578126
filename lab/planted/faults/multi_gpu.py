"""Faults of trainings over two GPUs."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from ..common import DEVICE, adamw, classes, listed_sgd, normal, planted, run_steps, size, train
from ..models import layers
from ..ranks import RANKS, run_ranks

ACCUMULATED = 4
BATCH = size(1024, 16)
"""Of both GPUs together."""
LENGTHS = (768, 256)
"""Tokens of a sequence, by rank, as a dataset sorted by length deals them out; fixed the mean of them."""


def _ddp(model: nn.Module, **options: Any) -> DistributedDataParallel:
    return DistributedDataParallel(model.to(DEVICE), gradient_as_bucket_view=True, **options)


@planted(gpus=RANKS)
def communication_bound(logdir: Path, fixed: bool) -> None:
    """Fault: gradients are exchanged after each of four accumulated batches. Fixed: `no_sync` around the first three.

    Large layers and small batches: much to exchange, little to compute meanwhile.
    """

    def of_rank(rank: int) -> None:
        width = size(6144, 64)
        model = _ddp(nn.Sequential(*layers(3, width, nn.ReLU)))
        optimizer = listed_sgd(model)
        rows = normal(size(128, 8), width)

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            for batch in range(ACCUMULATED):
                last = batch == ACCUMULATED - 1
                with model.no_sync() if fixed and not last else contextlib.nullcontext():
                    (model(rows).square().mean() / ACCUMULATED).backward()
            optimizer.step()

        run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=ACCUMULATED * len(rows))

    run_ranks(of_rank)


@planted(gpus=RANKS)
def data_parallel(logdir: Path, fixed: bool) -> None:
    """Fault: `nn.DataParallel` over two GPUs in one process. Fixed: DistributedDataParallel, a process for each."""
    width = size(1024, 32)

    def perceptron() -> nn.Module:
        return nn.Sequential(*layers(8, width, nn.ReLU), nn.Linear(width, 10)).to(DEVICE)

    def classify(model: nn.Module, processes: int) -> None:
        rows = normal(BATCH // processes, width)
        train(logdir, model, listed_sgd(model), rows, classes(10, len(rows)))

    if fixed:
        run_ranks(lambda rank: classify(_ddp(perceptron()), RANKS))
    else:
        classify(DataParallel(perceptron()), 1)


@planted(gpus=RANKS)
def imbalanced_gpu(logdir: Path, fixed: bool) -> None:
    """Fault: one of two ranks gets sequences three times as long as the other's. Fixed: both get the same.

    A model that works on each token alone, so that its work grows with the length of the sequences.
    """

    def of_rank(rank: int) -> None:
        width = size(512, 16)
        body: list[nn.Module] = []
        for _ in range(4):
            body += [nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)]
        model = _ddp(nn.Sequential(*body))
        optimizer = listed_sgd(model)
        length = sum(LENGTHS) // len(LENGTHS) if fixed else LENGTHS[rank]
        tokens = normal(8, length, width)

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            model(tokens).square().mean().backward()
            optimizer.step()

        run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(tokens))

    run_ranks(of_rank)


class Heads(nn.Module):
    """A body with a head, and perhaps a second head from an earlier experiment."""

    def __init__(self, width: int, old_head: bool) -> None:
        super().__init__()
        self.body, self.head = nn.Sequential(*layers(4, width, nn.ReLU)), nn.Linear(width, 16)
        self.old_head = nn.Linear(width, 16 * width) if old_head else None

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


@planted(gpus=RANKS)
def unused_parameters(logdir: Path, fixed: bool) -> None:
    """Fault: a head that no loss uses any more; DDP looks for it in every step and sums up its empty gradients.
    Fixed: without the head, and so without `find_unused_parameters`.
    """

    def of_rank(rank: int) -> None:
        width = size(4096, 32)
        model = _ddp(Heads(width, old_head=not fixed), find_unused_parameters=not fixed)
        inputs = normal(size(4096, 8), width)
        train(logdir, model, adamw(model), inputs, classes(16, len(inputs)), amp=torch.bfloat16)

    run_ranks(of_rank)
