"""Applies each remedy to one small training in this process: does it work here, and does it train the same?

    python -m benchmarks.trying.each_remedy --deadline 200

Prints a row per remedy: the largest relative difference of its losses to the baseline's and to what a baseline with
another seed differs by, or why it changed nothing, or its error.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import os
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tb_dlprof_plugin.trial.inside.applied import AppliedRemedies
from tb_dlprof_plugin.trial.inside.remedies import classes

from .planted.parts import Block, convnet

_STEPS = 12
_LAST = ("compile", "compile_reduce_overhead", "cuda_graphs", "compile_max_autotune")
"""Those that take long or may leave the process in another state."""


class Both(nn.Module):
    """Convolutions and attention, so that all remedies of models have something to change."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.images = convnet(width, 2)
        self.blocks = nn.ModuleList(Block(width, 4, attention_weights=True) for _ in range(2))
        self.head = nn.Linear(width, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.images[:-3](images)
        tokens = features.flatten(2).transpose(1, 2)
        for block in self.blocks:
            tokens = block(tokens)
        return self.head(tokens.mean(dim=1))


def train(applied: AppliedRemedies | None, device: str, seed: int = 0) -> tuple[list[float], float]:
    """Losses, and milliseconds per step of the second half."""
    torch.manual_seed(seed)
    model = Both(64).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = TensorDataset(torch.randn(512, 3, 16, 16), torch.randint(10, (512,)))
    loader = DataLoader(data, 32, generator=torch.Generator().manual_seed(1), shuffle=True)
    losses, began = [], 0.0
    for step, (images, targets) in zip(range(_STEPS), loader, strict=False):
        images, targets = images.to(device), targets.to(device)
        optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.cross_entropy(model(images), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if applied is not None:
            applied.step_ended(step)
        losses.append(loss.detach())
        if step == _STEPS // 2:
            _wait(device)
            began = time.perf_counter()
    _wait(device)
    taken = 1e3 * (time.perf_counter() - began) / (len(losses) - 1 - _STEPS // 2)
    return [loss.item() for loss in losses], taken


def _wait(device: str) -> None:
    if device == "cuda":
        torch._C._cuda_synchronize()


def _difference(losses: list[float], base: list[float]) -> float:
    return max(abs(one - other) / abs(other) for one, other in zip(losses, base, strict=False))


def row(name: str, device: str, base: list[float], spread: float) -> dict[str, Any]:
    """What one remedy does."""
    applied = AppliedRemedies([name])
    said: dict[str, Any] = {"remedy": name}
    try:
        applied.start()
        losses, said["step_ms"] = train(applied, device)
        said["difference"] = _difference(losses, base)
        said["of_seeds"] = said["difference"] / spread
        said["no_effect"] = applied.no_effect().get(name, "")
    except Exception as error:
        said["error"] = f"{type(error).__name__}: {error}"[:300]
    finally:
        with contextlib.suppress(Exception):
            applied.stop()
    return said


def main() -> None:
    """See the module's docstring."""
    options = argparse.ArgumentParser()
    options.add_argument("--deadline", type=float, default=200.0, help="seconds after which no remedy is begun")
    options.add_argument("--without", nargs="*", default=[])
    chosen = options.parse_args()
    until = time.monotonic() + chosen.deadline
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train(None, device)
    base, step_ms = train(None, device)
    again, _ = train(None, device)
    spread = _difference(train(None, device, seed=1)[0], base)
    same = _difference(again, base)
    print(f"{device}: {step_ms:.2f} ms; same seed again differs by {same:.2g}, another by {spread:.2g}", flush=True)
    rows = []
    names = [name for name in classes() if name not in _LAST]
    for name in [*names, *_LAST]:
        if name in chosen.without or time.monotonic() > until:
            continue
        rows.append(row(name, device, base, spread))
        one = copy.copy(rows[-1])
        numbers = f"{one.get('step_ms', float('nan')):8.2f} ms {one.get('difference', float('nan')):9.2g}"
        print(f"{name:26} {numbers} {one.get('error') or one.get('no_effect') or ''}", flush=True)
    out = os.environ.get("OUT")
    if out:
        Path(out, "each_remedy.json").write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
