"""Fault: a head that no loss uses any more; DDP looks for it in every step and sums up its empty gradients.

Fixed: without the head, and so without ``find_unused_parameters``.

python -m lab.planted.snippets.unused_parameters --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ..common import DEVICE, main, run_steps, set_up, size

GPUS = 2


class Model(nn.Module):
    """A body with a head, and perhaps a second head from an earlier experiment."""

    def __init__(self, width: int, old_head: bool) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for _ in range(4):
            layers += [nn.Linear(width, width), nn.ReLU()]
        self.body, self.head = nn.Sequential(*layers), nn.Linear(width, 16)
        self.old_head = nn.Linear(width, 16 * width) if old_head else None

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


def train(logdir: Path, fixed: bool) -> None:
    """Two ranks, each with a GPU of its own."""
    os.environ["NCCL_NVLS_ENABLE"] = "0"
    with tempfile.TemporaryDirectory() as meeting:
        torch.multiprocessing.spawn(_rank, (str(logdir), fixed, f"{meeting}/store"), nprocs=GPUS)


def _rank(rank: int, logdir: str, fixed: bool, store: str) -> None:
    set_up(rank)
    device = torch.device(DEVICE, rank) if DEVICE == "cuda" else torch.device(DEVICE)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.distributed.init_process_group(
        "nccl" if device.type == "cuda" else "gloo", init_method=f"file://{store}", rank=rank, world_size=GPUS
    )
    width = size(4096, 32)
    model = DistributedDataParallel(
        Model(width, old_head=not fixed).to(device),
        device_ids=[rank] if device.type == "cuda" else None,
        gradient_as_bucket_view=True,
        find_unused_parameters=not fixed,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(size(4096, 8), width, device=device)
    labels = torch.randint(16, (len(inputs),), device=device)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()

    run_steps(Path(logdir), step, model=model, optimizer=optimizer, batch_size=len(inputs))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(train)
