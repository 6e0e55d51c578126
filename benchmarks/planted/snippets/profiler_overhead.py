"""Fault: Python stacks and memory are recorded of a model of many small ops. Mended: the options are left off.

python -m benchmarks.planted.snippets.profiler_overhead --logdir runs/planted [--mended]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps


def train(logdir: Path, mended: bool) -> None:
    """Twelve narrow layers: the step is as long as the CPU needs to launch them."""
    layers: list[nn.Module] = []
    for _ in range(12):
        layers += [nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU()]
    model = nn.Sequential(*layers, nn.Linear(64, 10)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    rows = torch.randn(256, 64, device=DEVICE)
    labels = torch.randint(10, (len(rows),), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()

    costly = {} if mended else {"with_stack": True, "profile_memory": True}
    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(rows), **costly)


if __name__ == "__main__":
    main(train)
