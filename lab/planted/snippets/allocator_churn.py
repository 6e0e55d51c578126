"""Fault: batches get longer and longer, and the blocks of the shorter ones lie about. Fixed: expandable segments.

The recorded steps are no longer than those before, so that they ask the GPU for no more memory.

python -m lab.planted.snippets.allocator_churn --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import ACTIVE, DEVICE, STEPS, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """Layers of one width under BF16 autocast."""
    if fixed and DEVICE == "cuda":
        # The same as PYTORCH_ALLOC_CONF=expandable_segments:True in the environment.
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    width = size(1024, 32)
    layers: list[nn.Module] = []
    for _ in range(6):
        layers += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, 16)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    longest = size(262144, 64)
    growing = STEPS - ACTIVE
    lengths = [longest // 2 + longest * (i + 1) // (2 * growing) for i in range(growing)] + [longest] * ACTIVE
    batches = iter(lengths)

    def step() -> None:
        inputs = torch.randn(next(batches), width, device=DEVICE)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = model(inputs).float().square().mean()
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, profile_memory=True)


if __name__ == "__main__":
    main(train)
