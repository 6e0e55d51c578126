"""What the planted trainings share: where they run, the usual step, and how they are recorded."""

from __future__ import annotations

import inspect
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import tb_dlprof_plugin

# Asked through NVML: the default way initialises CUDA, and trainings are forked from a process that asked.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
QUICK = "PLANTED_QUICK" in os.environ
"""A few steps only, to see that a training runs."""
WAIT, WARMUP, ACTIVE = (2, 1, 3) if QUICK else (20, 3, 5)
STEPS = WAIT + WARMUP + ACTIVE
"""The first `WAIT` steps run without the profiler: their median is the step that savings are held to."""


SCALE = float(os.environ.get("PLANTED_SCALE", "1"))
"""Times the sizes that a GPU trains with: the same faults in trainings that the rules were not written with."""
_SCALED_FROM = 64
"""Smaller numbers (of layers, heads, branches) make a training what it is, and stay."""


def size(gpu: int, cpu: int) -> int:
    """A batch or width for a GPU, and a smaller one with which a CPU runs the same training in seconds."""
    if DEVICE != "cuda":
        return cpu
    return int(gpu * SCALE) if gpu >= _SCALED_FROM else gpu


def profiler(logdir: Path, **options: Any) -> Any:
    """The hook as a user would call it, with a short schedule and no trace kept; options as of `profile`."""
    schedule = {"wait": WAIT, "warmup": WARMUP, "active": ACTIVE, "repeat": 1}
    return tb_dlprof_plugin.profile(
        logdir, **{"schedule": schedule, "keep_trace": False, "wait": True, "run_name": logdir.name, **options}
    )


def run_steps(logdir: Path, step: Callable[[], object], steps: int = STEPS, **options: Any) -> None:
    """Calls ``step`` as often as the schedule needs, recorded with `profiler`."""
    with profiler(logdir, **options) as prof:
        for _ in range(steps):
            step()
            prof.step()


def set_up(seed: int = 0) -> None:
    """The same start for every training: seeds, and switches as PyTorch has them by default."""
    random.seed(seed)
    torch.manual_seed(seed)


@dataclass(frozen=True)
class Planted:
    """A training with a fault: ``train(logdir, fixed)`` runs it with the fault, or fixed, and records it.

    Attributes:
        gpus: how many GPUs it needs to show its fault; 0: a CPU will do.
    """

    train: Callable[[Path, bool], None]
    gpus: int

    @property
    def about(self) -> str:
        """What the fault is and how it is fixed: the first paragraph of the docstring."""
        return " ".join((inspect.getdoc(self.train) or "").split("\n\n")[0].split())

    @property
    def file(self) -> Path:
        """The file with its code."""
        return Path(inspect.getfile(self.train))


PLANTED: dict[str, Planted] = {}
"""By the rule that finds the fault, which is the name of the function."""


def planted(gpus: int = 1) -> Callable[[Callable[[Path, bool], None]], Callable[[Path, bool], None]]:
    """Adds a function to `PLANTED`."""

    def add(train: Callable[[Path, bool], None]) -> Callable[[Path, bool], None]:
        PLANTED[train.__name__] = Planted(train, gpus)
        return train

    return add


def train(
    logdir: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    inputs: Tensor,
    targets: Tensor,
    /,
    *,
    amp: torch.dtype | None = None,
    scaler: torch.amp.GradScaler | None = None,
    steps: int = STEPS,
    **options: Any,
) -> None:
    """Records the usual step on one batch: forward pass and loss, under autocast with ``amp``, backward pass, update.

    The loss is cross entropy of numbers of classes, and else the mean squared error. Other options are those of the
    hook, which is given model, optimizer and batch size where they do not say otherwise.
    """
    loss_of = nn.functional.mse_loss if targets.is_floating_point() else nn.functional.cross_entropy

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=amp or torch.bfloat16, enabled=amp is not None):
            loss = loss_of(model(inputs), targets)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    run_steps(logdir, step, steps, **{"model": model, "optimizer": optimizer, "batch_size": len(inputs), **options})


def sgd(model: nn.Module, rate: float = 1e-3) -> torch.optim.Optimizer:
    """In one fused kernel for many parameters."""
    return torch.optim.SGD(model.parameters(), lr=rate, fused=True)


def listed_sgd(model: nn.Module, rate: float = 0.01) -> torch.optim.Optimizer:
    """By ops over lists of parameters."""
    return torch.optim.SGD(model.parameters(), lr=rate, foreach=True)


def adamw(model: nn.Module, rate: float = 1e-4) -> torch.optim.Optimizer:
    """In one fused kernel for many parameters."""
    return torch.optim.AdamW(model.parameters(), lr=rate, fused=True)


def normal(*shape: int) -> Tensor:
    """Random numbers on the device."""
    return torch.randn(*shape, device=DEVICE)


def classes(count: int, *shape: int) -> Tensor:
    """Random numbers of classes on the device."""
    return torch.randint(count, shape, device=DEVICE)
