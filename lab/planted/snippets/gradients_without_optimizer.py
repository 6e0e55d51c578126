"""Fault: a new head is trained on a body that the optimizer does not have, and the body's gradients are computed.

Fixed: the body does not require gradients.

python -m lab.planted.snippets.gradients_without_optimizer --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from ..common import DEVICE, main, run_steps, size

GPUS = 0


class Model(nn.Module):
    """A body and a head."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(layer for _ in range(6) for layer in (nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()))
        )
        self.head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 16))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


def train(logdir: Path, fixed: bool) -> None:
    """The head alone is in the optimizer."""
    torch.set_float32_matmul_precision("high")
    model = Model(size(4096, 256)).to(DEVICE)
    if fixed:
        model.body.requires_grad_(False)
    optimizer = torch.optim.AdamW(model.head.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(size(4096, 256), size(4096, 256), device=DEVICE)
    labels = torch.randint(16, (len(inputs),), device=DEVICE)

    def step() -> None:
        model.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs), profile_memory=True)


if __name__ == "__main__":
    main(train)
