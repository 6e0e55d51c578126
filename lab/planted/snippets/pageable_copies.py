"""Fault: batches lie in pageable memory, from which a copy is staged. Fixed: in pinned memory.

python -m lab.planted.snippets.pageable_copies --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import itertools
from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A network over image patches whose images are the larger part of its work."""
    width, batch = size(768, 32), size(128, 2)
    blocks = [nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(4)]
    model = nn.Sequential(nn.Linear(3 * 16 * 16, width), *blocks, nn.Linear(width, 10)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    batches = [torch.rand(batch, 196, 3 * 16 * 16) for _ in range(3)]
    if fixed and DEVICE == "cuda":
        batches = [images.pin_memory() for images in batches]
    labels = torch.randint(10, (batch,), device=DEVICE)
    upcoming = itertools.cycle(batches)

    def step() -> None:
        images = next(upcoming).to(DEVICE, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images).mean(1), labels)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


if __name__ == "__main__":
    main(train)
