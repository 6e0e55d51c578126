"""Faults of DataLoaders."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from ..common import DEVICE, STEPS, adamw, planted, run_steps, size
from ..models import Texts, blocks, pairs

VOCABULARY = 2048


def _learn(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, targets: Tensor) -> None:
    inputs, targets = inputs.to(DEVICE, non_blocking=True), targets.to(DEVICE, non_blocking=True)
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    loss.backward()
    optimizer.step()


def _language_model(logdir: Path, words: int, **workers: Any) -> None:
    """A small language model on texts that are tokenized when they are asked for."""
    width, batch = size(1024, 64), size(32, 4)
    body = (nn.Embedding(VOCABULARY, width), *blocks(4, width, 4 * width), nn.Linear(width, VOCABULARY))
    model = nn.Sequential(*body).to(DEVICE)
    optimizer = adamw(model, 1e-3)
    texts = Texts((STEPS + 20) * batch, VOCABULARY, words)
    loader = DataLoader(texts, batch_size=batch, pin_memory=DEVICE == "cuda", **workers)
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    run_steps(
        logdir, lambda: _learn(model, optimizer, *next(batches)), model=model, dataloader=loader, optimizer=optimizer
    )


@planted()
def dataloader_bound(logdir: Path, fixed: bool) -> None:
    """Fault: one worker process tokenizes texts slower than the GPU takes them. Fixed: eight of them keep up."""
    _language_model(logdir, size(800, 300), num_workers=8 if fixed else 1, persistent_workers=True)


@planted()
def synchronous_dataloader(logdir: Path, fixed: bool) -> None:
    """Fault: the training process tokenizes texts itself. Fixed: worker processes do it meanwhile."""
    _language_model(logdir, size(500, 300), num_workers=8 if fixed else 0, persistent_workers=fixed)


@planted()
def worker_restart(logdir: Path, fixed: bool) -> None:
    """Fault: an epoch is short, and each one starts new worker processes. Fixed: the workers are kept.

    A classifier of time steps on so few samples that each epoch is one batch.
    """
    samples, width = size(128, 8), size(4096, 64)
    model = nn.Sequential(nn.Linear(32, width), *pairs(6, width), nn.Linear(width, 10)).to(DEVICE)
    optimizer = adamw(model, 1e-3)
    data = TensorDataset(torch.randn(samples, 128, 32), torch.randint(10, (samples, 128)))
    loader = DataLoader(data, batch_size=samples, num_workers=2, pin_memory=DEVICE == "cuda", persistent_workers=fixed)

    def epoch() -> None:
        for inputs, targets in loader:
            _learn(model, optimizer, inputs, targets)

    run_steps(logdir, epoch, model=model, dataloader=loader, optimizer=optimizer)
