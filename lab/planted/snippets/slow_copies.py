"""Fault: features are copied to new pageable memory each step. Fixed: to pinned memory that is used again.

python -m lab.planted.snippets.slow_copies --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A network whose features are kept on the CPU, for a look at them after each step."""
    width, batch = size(3072, 32), size(8192, 16)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(8))).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(batch, width, device=DEVICE)
    targets = torch.randn(batch, width, device=DEVICE)
    pinned = torch.empty(batch // 8, width, pin_memory=DEVICE == "cuda")
    copied = torch.cuda.Event() if DEVICE == "cuda" else None

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            features = model(inputs)
        loss = nn.functional.mse_loss(features.float(), targets)
        kept = features.detach()[: batch // 8].float()
        if not fixed:
            features_on_cpu = kept.cpu()
        else:
            features_on_cpu = pinned.copy_(kept, non_blocking=True)
            if copied:
                copied.record()
        loss.backward()
        optimizer.step()
        if fixed and copied:
            copied.synchronize()
        return features_on_cpu[0].clone()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


if __name__ == "__main__":
    main(train)
