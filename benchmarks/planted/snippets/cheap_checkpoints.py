"""Fault: what normalisation and activation keep fills the memory, though it is quickly computed again.

Fixed: these parts are checkpointed.

python -m benchmarks.planted.snippets.cheap_checkpoints --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..common import DEVICE, main, run_steps, size

_BLOCKS = 8
_SHARE = 0.88
"""Of the memory that is free before the training begins."""
_KEPT = 17
"""Bytes of an element of a block: three FP32 tensors, the dropout's result and its mask."""


class Block(nn.Module):
    """A product, and what is cheap beside it."""

    def __init__(self, width: int, recompute: bool) -> None:
        super().__init__()
        self.product = nn.Linear(width, width)
        self.pointwise = nn.Sequential(nn.LayerNorm(width), nn.GELU(), nn.Dropout(0.1))
        self.recompute = recompute

    def forward(self, x: Tensor) -> Tensor:
        x = self.product(x)
        return checkpoint(self.pointwise, x, use_reentrant=False) if self.recompute else self.pointwise(x)


def train(logdir: Path, fixed: bool) -> None:
    """As many samples as fit without checkpoints."""
    torch.set_float32_matmul_precision("high")
    width = size(4096, 32)
    model = nn.Sequential(*(Block(width, fixed) for _ in range(_BLOCKS)), nn.Linear(width, 16)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    free = torch.cuda.mem_get_info()[0] if DEVICE == "cuda" else 4 << 20
    samples = int(_SHARE * free / (width * (_KEPT * _BLOCKS + 16)))
    inputs = torch.randn(samples, width, device=DEVICE)
    labels = torch.zeros(samples, dtype=torch.int64, device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=samples, profile_memory=True)


if __name__ == "__main__":
    main(train)
