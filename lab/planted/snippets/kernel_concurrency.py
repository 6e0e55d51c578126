"""Fault: branches that do not depend on each other run one after another, each on a few multiprocessors.

Fixed: each branch has a CUDA stream of its own.

python -m lab.planted.snippets.kernel_concurrency --logdir runs/planted [--fixed]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size

BRANCHES = 6


class Pooled(nn.Module):
    """Attention pooling over a long signal: a softmax over millions of positions for each of a few signals."""

    def __init__(self) -> None:
        super().__init__()
        self.sharpness = nn.Parameter(torch.ones(1))
        self.head = nn.Linear(1, 16)

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(signals * self.sharpness, dim=1)
        return self.head((weights * signals).sum(dim=1, keepdim=True))


class Model(nn.Module):
    """A branch per sensor."""

    def __init__(self, fixed: bool) -> None:
        super().__init__()
        self.branches = nn.ModuleList(Pooled() for _ in range(BRANCHES))
        self.streams = [torch.cuda.Stream() for _ in range(BRANCHES)] if fixed and DEVICE == "cuda" else []

    def forward(self, sensors: list[torch.Tensor]) -> torch.Tensor:
        if not self.streams:
            return torch.cat([branch(sensor) for branch, sensor in zip(self.branches, sensors, strict=True)], dim=1)
        main_stream = torch.cuda.current_stream()
        outputs = []
        for branch, sensor, stream in zip(self.branches, sensors, self.streams, strict=True):
            stream.wait_stream(main_stream)
            with torch.cuda.stream(stream):
                outputs.append(branch(sensor))
        for output, stream in zip(outputs, self.streams, strict=True):
            main_stream.wait_stream(stream)
            output.record_stream(main_stream)
        return torch.cat(outputs, dim=1)


def train(logdir: Path, fixed: bool) -> None:
    """Eight signals of each of six sensors per step."""
    torch.set_float32_matmul_precision("high")
    model = Model(fixed).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    sensors = [torch.randn(size(8, 2), size(1 << 22, 1 << 10), device=DEVICE) for _ in range(BRANCHES)]
    targets = torch.randn(len(sensors[0]), 16 * BRANCHES, device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.mse_loss(model(sensors), targets).backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(targets))


if __name__ == "__main__":
    main(train)
