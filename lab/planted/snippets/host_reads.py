"""Fault: the norm of each gradient is read on the CPU in each step. Fixed: the sum stays on the GPU.

python -m lab.planted.snippets.host_reads --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def gradient_norm(model: nn.Module) -> float:
    """Of all parameters, as a number: the CPU waits for the GPU at each of them."""
    total = 0.0
    for parameter in model.parameters():
        if parameter.grad is not None:
            total += parameter.grad.norm().item() ** 2
    return total**0.5


def gradient_norm_on_the_gpu(model: nn.Module) -> torch.Tensor:
    """The same as a tensor, without a wait."""
    norms = [parameter.grad.norm() for parameter in model.parameters() if parameter.grad is not None]
    return torch.stack(norms).norm()


def train(logdir: Path, fixed: bool) -> None:
    """A network that logs the norm of its gradients, recorded with Python stacks."""
    width, batch = size(3072, 32), size(8192, 16)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(8))).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(batch, width, device=DEVICE)
    targets = torch.randn(batch, width, device=DEVICE)
    log: list[float | torch.Tensor] = []

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        log.append(gradient_norm_on_the_gpu(model) if fixed else gradient_norm(model))
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch, with_stack=True)


if __name__ == "__main__":
    main(train)
