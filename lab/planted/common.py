"""What the planted trainings share: where they run, and how they are recorded."""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

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


def main(train: Callable[[Path, bool], None]) -> None:
    """The command line of a planted training."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--logdir", type=Path, required=True, help="where the run is recorded")
    parser.add_argument("--fixed", action="store_true", help="without the fault")
    args = parser.parse_args()
    set_up()
    train(args.logdir, args.fixed)
