"""Fault: Python stacks and memory are recorded of a model of many small ops. Fixed: the options are left off.

python -m lab.planted.snippets.profiler_overhead --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, fixed: bool) -> None:
    """Twelve layers: the CPU launches them a little faster than the GPU works, without a profiler."""
    width = size(512, 64)
    layers: list[nn.Module] = []
    for _ in range(12):
        layers += [nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()]
    model = nn.Sequential(*layers, nn.Linear(width, 10)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    rows = torch.randn(size(8192, 256), width, device=DEVICE)
    labels = torch.randint(10, (len(rows),), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()

    costly = {} if fixed else {"with_stack": True, "profile_memory": True}
    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(rows), **costly)


if __name__ == "__main__":
    main(train)
