"""Fault: products in BF16 take all the power that the GPU may have, so that its clock is held down.

Fixed: the same layers on a batch so small that memory sets the pace, which needs less power.

python -m benchmarks.planted.snippets.clock_held_down --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, QUICK, STEPS, main, profiler, size

_MEASURED_S = 0.2 if QUICK else 3.0
"""Of steps behind the recording, in which the hook reads the GPU's power and clocks."""


def train(logdir: Path, fixed: bool) -> None:
    """A wide perceptron, under BF16 autocast."""
    width = size(8192, 32)
    model = nn.Sequential(*(layer for _ in range(6) for layer in (nn.Linear(width, width), nn.ReLU()))).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(size(64 if fixed else 16384, 8), width, device=DEVICE)
    targets = torch.randn_like(inputs)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()

    with profiler(logdir, model=model, optimizer=optimizer, batch_size=len(inputs)) as prof:
        for _ in range(STEPS):
            step()
            prof.step()
        until_s, ahead = time.monotonic() + _MEASURED_S, deque()
        while time.monotonic() < until_s:
            step()
            prof.step()
            if DEVICE == "cuda":
                # Two steps under way at most: else the steps queued would go on for long after the loop.
                ahead.append(torch.cuda.Event())
                ahead[-1].record()
                if len(ahead) > 2:
                    ahead.popleft().synchronize()


if __name__ == "__main__":
    main(train)
