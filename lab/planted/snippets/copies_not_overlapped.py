"""Fault: each batch is copied before its step, while the GPU computes nothing. Fixed: during the step before.

python -m lab.planted.snippets.copies_not_overlapped --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


class Prefetcher:
    """Copies the next batch on a stream of its own."""

    def __init__(self, batches: Iterator[torch.Tensor]) -> None:
        self.batches = batches
        self.stream = torch.cuda.Stream()
        self.fetch()

    def fetch(self) -> None:
        """Begins the next copy."""
        with torch.cuda.stream(self.stream):
            self.upcoming = next(self.batches).to(DEVICE, non_blocking=True)

    def __next__(self) -> torch.Tensor:
        torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.upcoming
        batch.record_stream(torch.cuda.current_stream())
        self.fetch()
        return batch


def train(logdir: Path, fixed: bool) -> None:
    """A network over image patches whose images are the larger part of its work; on a CPU nothing is copied."""
    width, batch = size(768, 32), size(128, 2)
    blocks = [nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(3)]
    model = nn.Sequential(nn.Linear(3 * 16 * 16, width), *blocks, nn.Linear(width, 10)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    batches = [torch.rand(batch, 196, 3 * 16 * 16, pin_memory=DEVICE == "cuda") for _ in range(3)]
    labels = torch.randint(10, (batch,), device=DEVICE)
    upcoming = itertools.cycle(batches)
    prefetcher = Prefetcher(upcoming) if fixed and DEVICE == "cuda" else None

    def step() -> None:
        images = next(prefetcher) if prefetcher else next(upcoming).to(DEVICE, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images).mean(1), labels)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


if __name__ == "__main__":
    main(train)
