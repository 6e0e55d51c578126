"""Fault: batches are copied, and a metric is read back, by copies that the CPU waits for. Fixed: it goes on.

python -m lab.planted.snippets.blocking_copies --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A network with four heads; each target is copied where it is needed."""
    width, batch = size(3072, 64), size(8192, 16)
    trunk = nn.Sequential(nn.Linear(64, width), *(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(6)))
    heads = nn.ModuleList([nn.Linear(width, 10) for _ in range(4)])
    model = nn.ModuleDict({"trunk": trunk, "heads": heads}).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    pinned = DEVICE == "cuda"
    inputs = torch.randn(batch, 64, pin_memory=pinned)
    targets = [torch.zeros(batch, dtype=torch.long, pin_memory=pinned) for _ in heads]
    losses: list[torch.Tensor] = []

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            hidden = trunk(inputs.to(DEVICE, non_blocking=fixed))
            loss = torch.zeros((), device=DEVICE)
            for head, target in zip(heads, targets, strict=True):
                loss = loss + nn.functional.cross_entropy(head(hidden), target.to(DEVICE, non_blocking=fixed))
        loss.backward()
        losses.append(loss.detach() if fixed else loss.detach().cpu())
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


if __name__ == "__main__":
    main(train)
