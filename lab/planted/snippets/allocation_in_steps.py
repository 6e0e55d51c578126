"""Fault: PyTorch's cache of GPU memory is emptied in each step, and all of it is allocated again. Fixed: it is kept.

python -m lab.planted.snippets.allocation_in_steps --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A wide network under BF16 autocast; without a GPU there is no cache, and the two are the same."""
    width = size(4096, 64)
    model = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(width, width), nn.GELU()))).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(size(8192, 16), width, device=DEVICE)
    targets = torch.randn_like(inputs)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        if not fixed:
            torch.cuda.empty_cache()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


if __name__ == "__main__":
    main(train)
