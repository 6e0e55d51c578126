"""Faults of GPU memory."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..common import ACTIVE, DEVICE, STEPS, adamw, classes, normal, planted, run_steps, sgd, size, train
from ..models import layers

_BLOCKS = 24
_OF_FREE = 0.97
"""Of the memory that is free before the training begins."""
_BYTES_PER_PARAMETER = 16
"""Parameter, gradient and Adam's two moments in FP32."""
_OF_GPU = 0.86
"""Of the GPU's memory that the training takes."""


@planted()
def allocation_in_steps(logdir: Path, fixed: bool) -> None:
    """Fault: PyTorch's cache of GPU memory is emptied in each step, and all of it is allocated again. Fixed: it is
    kept.

    Without a GPU there is no cache, and the two are the same.
    """
    width = size(4096, 64)
    model = nn.Sequential(*layers(4, width, nn.GELU)).to(DEVICE)
    optimizer = sgd(model)
    inputs = normal(size(8192, 16), width)
    targets = torch.randn_like(inputs)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        if not fixed:
            torch.cuda.empty_cache()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


@planted()
def allocator_churn(logdir: Path, fixed: bool) -> None:
    """Fault: batches get longer and longer, and the blocks of the shorter ones lie about. Fixed: expandable segments.
    The recorded steps are no longer than those before, so that they ask the GPU for no more memory.
    """
    if fixed and DEVICE == "cuda":
        # The same as PYTORCH_ALLOC_CONF=expandable_segments:True in the environment.
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    width = size(1024, 32)
    model = nn.Sequential(*layers(6, width, nn.ReLU), nn.Linear(width, 16)).to(DEVICE)
    optimizer = adamw(model)
    longest = size(262144, 64)
    growing = STEPS - ACTIVE
    lengths = [longest // 2 + longest * (i + 1) // (2 * growing) for i in range(growing)] + [longest] * ACTIVE
    batches = iter(lengths)

    def step() -> None:
        inputs = normal(next(batches), width)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = model(inputs).float().square().mean()
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, profile_memory=True)


@planted()
def optimizer_state(logdir: Path, fixed: bool) -> None:
    """Fault: Adam's FP32 states fill half of what the GPU holds. Fixed: Adafactor, whose states are rows and
    columns.
    """
    torch.set_float32_matmul_precision("high")
    width = size(24576, 32)
    memory = torch.cuda.mem_get_info()[1] if DEVICE == "cuda" else 4 * width * width * _BYTES_PER_PARAMETER
    count = int(_OF_GPU * memory / (width * width * _BYTES_PER_PARAMETER))
    with torch.device(DEVICE):
        model = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(count)))
    smaller = torch.optim.Adafactor(model.parameters(), lr=1e-4, foreach=False)
    optimizer = smaller if fixed else adamw(model)
    inputs = normal(size(64, 4), width)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(inputs).square().mean().backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


@planted()
def out_of_memory_ahead(logdir: Path, fixed: bool) -> None:
    """Fault: tensors take nearly all of the GPU's memory. Fixed: half the batch.

    Narrow layers on as many samples as fit: what they keep for their backward pass fills the memory.
    """
    torch.set_float32_matmul_precision("high")
    width = size(256, 16)
    model = nn.Sequential(*layers(_BLOCKS, width, nn.GELU), nn.Linear(width, 16)).to(DEVICE)
    free = torch.cuda.mem_get_info()[0] if DEVICE == "cuda" else 4 << 20
    # The input, what two layers of a block keep, and a gradient of their size.
    samples = int(_OF_FREE * free / (4 * width * (2 * _BLOCKS + 2)))
    inputs = normal(samples // 2 if fixed else samples, width)
    labels = torch.zeros(len(inputs), dtype=torch.int64, device=DEVICE)
    train(logdir, model, adamw(model), inputs, labels, profile_memory=True)


class Recomputing(nn.Module):
    """Feed-forward blocks, each with a shortcut."""

    def __init__(self, width: int, recompute: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(6)
        )
        self.head = nn.Linear(width, 16)
        self.recompute = recompute

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = x + (checkpoint(block, x, use_reentrant=False) if self.recompute else block(x))
        return self.head(x)


@planted()
def recomputation(logdir: Path, fixed: bool) -> None:
    """Fault: activations are recomputed in the backward pass though most of the memory is free. Fixed: they are
    kept.
    """
    model = Recomputing(size(1024, 32), recompute=not fixed).to(DEVICE)
    inputs = normal(size(32768, 8), size(1024, 32))
    train(logdir, model, adamw(model), inputs, classes(16, len(inputs)), amp=torch.bfloat16)
