"""Fault: Adam's FP32 states fill half of what the GPU holds. Fixed: Adafactor, whose states are rows and columns.

python -m lab.planted.snippets.optimizer_state --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size

_BYTES_PER_PARAMETER = 16
"""Parameter, gradient and Adam's two moments in FP32."""
_SHARE = 0.86
"""Of the GPU's memory that the training takes."""


def train(logdir: Path, fixed: bool) -> None:
    """As many layers as fit."""
    torch.set_float32_matmul_precision("high")
    width = size(24576, 32)
    memory = torch.cuda.mem_get_info()[1] if DEVICE == "cuda" else 4 * width * width * _BYTES_PER_PARAMETER
    count = int(_SHARE * memory / (width * width * _BYTES_PER_PARAMETER))
    with torch.device(DEVICE):
        model = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(count)))
    optimizer: torch.optim.Optimizer
    if fixed:
        optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-4, foreach=False)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(size(64, 4), width, device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(inputs).square().mean().backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


if __name__ == "__main__":
    main(train)
