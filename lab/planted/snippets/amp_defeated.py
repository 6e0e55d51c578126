"""Fault: the largest layer of a model under autocast runs in FP32, "to be safe". Fixed: only the loss does.

python -m lab.planted.snippets.amp_defeated --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from ..common import DEVICE, main, run_steps, size


class Tagger(nn.Module):
    """Feed-forward blocks over tokens, and a head over a vocabulary."""

    def __init__(self, width: int, vocabulary: int, head_in_fp32: bool) -> None:
        super().__init__()
        blocks = [nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(6)]
        self.body = nn.Sequential(*blocks)
        self.head = nn.Linear(width, vocabulary)
        self.head_in_fp32 = head_in_fp32

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.body(tokens)
        if not self.head_in_fp32:
            return self.head(hidden)
        with torch.autocast(DEVICE, enabled=False):
            return self.head(hidden.float())


def train(logdir: Path, fixed: bool) -> None:
    """BF16 autocast; the loss is computed in FP32 either way."""
    width, vocabulary = size(1024, 32), size(8192, 64)
    model = Tagger(width, vocabulary, head_in_fp32=not fixed).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randn(size(4096, 8), width, device=DEVICE)
    labels = torch.randint(vocabulary, (len(tokens),), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(tokens), labels)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(tokens))


if __name__ == "__main__":
    main(train)
