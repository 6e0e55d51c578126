"""Fault: each layer and part of a step is timed by waiting for the GPU. Fixed: by events that it records itself.

python -m lab.planted.snippets.synchronising_calls --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import time
from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


class Clock:
    """Times the parts of a step."""

    def __init__(self, wait: bool) -> None:
        self.wait = wait and DEVICE == "cuda"
        self.times: list[float] = []
        self.events: list[torch.cuda.Event] = []

    def part_ends(self) -> None:
        """One part ends and the next begins."""
        if self.wait:
            torch.cuda.synchronize()
            self.times.append(time.perf_counter())
        elif DEVICE == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.events.append(event)


def train(logdir: Path, fixed: bool) -> None:
    """A network whose layers, backward pass and update are timed in each step."""
    width, batch = size(3072, 32), size(8192, 16)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(8))).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(batch, width, device=DEVICE)
    targets = torch.randn(batch, width, device=DEVICE)
    clock = Clock(wait=not fixed)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        clock.part_ends()
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            outputs = inputs
            for layer in model:
                outputs = layer(outputs)
                clock.part_ends()
            loss = nn.functional.mse_loss(outputs, targets)
        loss.backward()
        clock.part_ends()
        optimizer.step()
        clock.part_ends()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


if __name__ == "__main__":
    main(train)
