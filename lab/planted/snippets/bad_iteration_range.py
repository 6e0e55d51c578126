"""Fault: the recorded steps hold one that also validates. Fixed: those between two validations are recorded.

python -m lab.planted.snippets.bad_iteration_range --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import ACTIVE, DEVICE, WAIT, WARMUP, main, run_steps, size

EVERY = WAIT + WARMUP + 2
"""Steps from one validation to the next: the first comes with the third of the steps that are recorded by default."""


def train(logdir: Path, fixed: bool) -> None:
    """A classifier that validates on 20 batches now and then."""
    width = size(2048, 64)
    model = nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    model.to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    rows = torch.randn(size(4096, 32), 256, device=DEVICE)
    labels = torch.randint(10, (len(rows),), device=DEVICE)
    done = 0

    def step() -> None:
        nonlocal done
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()
        if done and done % EVERY == 0:
            validate()
        done += 1

    def validate() -> None:
        with torch.no_grad():
            hits = torch.zeros((), dtype=torch.long, device=DEVICE)
            for _ in range(20):
                hits += (model(rows).argmax(1) == labels).sum()

    wait = WAIT + ACTIVE if fixed else WAIT
    schedule = {"wait": wait, "warmup": WARMUP, "active": ACTIVE, "repeat": 1}
    run_steps(
        logdir, step, wait + WARMUP + ACTIVE, schedule=schedule, model=model, optimizer=optimizer, batch_size=len(rows)
    )


if __name__ == "__main__":
    main(train)
