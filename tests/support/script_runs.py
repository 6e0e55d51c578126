"""Runs scripts as they are and under ``tb-dlprof run``, in processes of their own, on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tb_dlprof_plugin import read_profiles

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "lab" / "run_scripts"
TB_DLPROF = (sys.executable, "-m", "tb_dlprof_plugin.cli.main")
_TIMEOUT_S = 240

TRAINING = """
    import argparse, sys, torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Linear(8, 16)
            self.blocks = nn.Sequential(nn.Linear(16, 16), nn.ReLU())
            self.head = nn.Linear(16, 2)

        def forward(self, x):
            return self.head(self.blocks(self.stem(x)))

    def train(steps, model, optimizer):
        x = torch.randn(4 * steps, 8)
        for batch, target in DataLoader(TensorDataset(x, x.sum(1).gt(0).long()), batch_size=4):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(batch), target).backward()
            optimizer.step()

    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
"""A model, an optimizer and ``train(steps, model, optimizer)``."""


@dataclass(frozen=True)
class Done:
    """A process that has ended."""

    status: int
    out: str
    err: str


def environment(**extra: str) -> dict[str, str]:
    """One thread: two processes of a test must not fight for the CPUs, and sums must not depend on how they do."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""} | extra


def execute(*command: object, cwd: Path, **env: str) -> Done:
    """Run a command to its end."""
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment(**env), capture_output=True, text=True,
        timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def run(*arguments: object, cwd: Path, **env: str) -> Done:
    """``tb-dlprof run``."""
    return execute(*TB_DLPROF, "run", *arguments, cwd=cwd, **env)


def write(folder: Path, text: str, name: str = "train.py", training: bool = True) -> Path:
    """A script of these lines, below `TRAINING`."""
    path = folder / name
    path.write_text(textwrap.dedent(TRAINING if training else "") + textwrap.dedent(text))
    return path


def profiles(run_directory: Path) -> list[Any]:
    """By rank and cycle."""
    stored = [one.profile for one in read_profiles(run_directory)]
    return sorted(stored, key=lambda profile: (profile.source.rank, profile.source.cycle))


def numbers(profile: Any) -> list[int]:
    """Of the iterations."""
    return [int(number) for number in profile.iterations.number]


def modules(profile: Any) -> set[str]:
    """The paths of the modules that ops belong to."""
    return {profile.strings[index] for index in profile.ops.module.tolist()} - {""}
