"""Fault: many small layers, each launched by itself. Fixed: forward and backward are replayed as CUDA graphs.

python -m lab.planted.snippets.launch_bound --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """A deep network of small layers; CUDA graphs need a GPU, so on a CPU the two are the same."""
    torch.set_float32_matmul_precision("high")
    width = size(1024, 64)
    layers: list[nn.Module] = []
    for _ in range(size(40, 8)):
        layers += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(size(2048, 16), width, device=DEVICE)
    targets = torch.randn_like(inputs)
    forward: Any = model
    if fixed and DEVICE == "cuda":
        forward = torch.cuda.make_graphed_callables(model, (inputs,))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.mse_loss(forward(inputs), targets).backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


if __name__ == "__main__":
    main(train)
