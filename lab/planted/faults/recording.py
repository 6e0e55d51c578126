"""Faults of the recording: which steps, with which options, and what the hook is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..common import (
    ACTIVE,
    DEVICE,
    STEPS,
    WAIT,
    WARMUP,
    classes,
    listed_sgd,
    normal,
    planted,
    profiler,
    run_steps,
    size,
    train,
)
from ..models import layers

EVERY = WAIT + WARMUP + 2
"""Steps from one validation to the next: the first comes with the third of the steps that are recorded by default."""
BATCHES = 8


@planted()
def bad_iteration_range(logdir: Path, fixed: bool) -> None:
    """Fault: the recorded steps hold one that also validates. Fixed: those between two validations are recorded."""
    width = size(2048, 64)
    model = nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    model.to(DEVICE)
    optimizer = listed_sgd(model)
    rows = normal(size(4096, 32), 256)
    labels = classes(10, len(rows))
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


class Block(nn.Module):
    """Two layers around which the input is carried on."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, rows: Tensor) -> Tensor:
        return rows + self.narrow(nn.functional.gelu(self.wide(rows)))


@planted()
def missing_annotations(logdir: Path, fixed: bool) -> None:
    """Fault: the hook is not given the model, so no op says which module it belongs to. Fixed: `model=model`.

    Four equal blocks: without module names they are indistinguishable.
    """
    width = size(512, 32)
    model = nn.Sequential(*(Block(width) for _ in range(4)), nn.Linear(width, 10)).to(DEVICE)
    optimizer = listed_sgd(model)
    rows = normal(size(4096, 32), width)
    options: dict[str, Any] = {
        "model": model if fixed else None,
        "optimizer": optimizer if fixed else None,
        "batch_size": None,
    }
    train(logdir, model, optimizer, rows, classes(10, len(rows)), **options)


@planted()
def no_iterations(logdir: Path, fixed: bool) -> None:
    """Fault: the ends of steps are not marked. Fixed: `prof.step()` after each batch.

    Batches of images are scored, so there is no optimizer whose steps could be counted.
    """
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    ).to(DEVICE)  # fmt: skip
    images = torch.randn(size(128, 2), 3, 64, 64)
    hits = torch.zeros(10, dtype=torch.long, device=DEVICE)

    def score() -> None:
        nonlocal hits
        with torch.inference_mode():
            hits = hits + torch.bincount(model(images.to(DEVICE)).argmax(1), minlength=10)

    if fixed:
        run_steps(logdir, score, model=model, batch_size=len(images))
        return
    for _ in range(BATCHES):
        score()
    with profiler(logdir, schedule=None, model=model, batch_size=len(images)):
        for _ in range(BATCHES):
            score()


@planted()
def profiler_overhead(logdir: Path, fixed: bool) -> None:
    """Fault: Python stacks and memory are recorded of a model of many small ops. Fixed: the options are left off.

    The CPU launches its layers a little faster than the GPU works, without a profiler.
    """
    width = size(512, 64)
    body = layers(12, width, lambda: nn.LayerNorm(width), nn.GELU)
    model = nn.Sequential(*body, nn.Linear(width, 10)).to(DEVICE)
    rows = normal(size(8192, 256), width)
    costly: dict[str, Any] = {} if fixed else {"with_stack": True, "profile_memory": True}
    train(logdir, model, listed_sgd(model), rows, classes(10, len(rows)), **costly)


@planted()
def profiling_window(logdir: Path, fixed: bool) -> None:
    """Fault: the first two steps of the process are recorded. Fixed: five later ones, after a warm-up.

    The first step loads cuDNN and allocates what the later ones use again.
    """
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10),
    ).to(DEVICE)  # fmt: skip
    images = normal(size(128, 2), 3, 64, 64)
    early = {"steps": 2, "schedule": {"wait": 0, "warmup": 0, "active": 2, "repeat": 1}}
    window: dict[str, Any] = {"steps": STEPS} if fixed else early
    train(logdir, model, listed_sgd(model), images, classes(10, len(images)), **window)
