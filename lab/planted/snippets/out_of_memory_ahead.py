"""Fault: tensors take nearly all of the GPU's memory. Fixed: half the batch.

python -m lab.planted.snippets.out_of_memory_ahead --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size

_BLOCKS = 24
_SHARE = 0.97
"""Of the memory that is free before the training begins."""


def train(logdir: Path, fixed: bool) -> None:
    """Narrow layers on as many samples as fit: what they keep for their backward pass fills the memory."""
    torch.set_float32_matmul_precision("high")
    width = size(256, 16)
    layers = [layer for _ in range(_BLOCKS) for layer in (nn.Linear(width, width), nn.GELU())]
    model = nn.Sequential(*layers, nn.Linear(width, 16)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    free = torch.cuda.mem_get_info()[0] if DEVICE == "cuda" else 4 << 20
    # The input, what two layers of a block keep, and a gradient of their size.
    samples = int(_SHARE * free / (4 * width * (2 * _BLOCKS + 2)))
    inputs = torch.randn(samples // 2 if fixed else samples, width, device=DEVICE)
    labels = torch.zeros(len(inputs), dtype=torch.int64, device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs), profile_memory=True)


if __name__ == "__main__":
    main(train)
