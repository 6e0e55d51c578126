"""Faults of precision: TF32, autocast and GradScaler."""

from __future__ import annotations

import itertools
from pathlib import Path

import torch
from torch import Tensor, nn

from ..common import DEVICE, adamw, classes, listed_sgd, normal, planted, size, train
from ..models import blocks, layers


class Tagger(nn.Module):
    """Feed-forward blocks over tokens, and a head over a vocabulary."""

    def __init__(self, width: int, vocabulary: int, head_in_fp32: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(*blocks(6, width, 4 * width))
        self.head = nn.Linear(width, vocabulary)
        self.head_in_fp32 = head_in_fp32

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.body(tokens)
        if not self.head_in_fp32:
            return self.head(hidden)
        with torch.autocast(DEVICE, enabled=False):
            return self.head(hidden.float())


@planted()
def amp_defeated(logdir: Path, fixed: bool) -> None:
    """Fault: the largest layer of a model under autocast runs in FP32, "to be safe". Fixed: only the loss does."""
    width, vocabulary = size(1024, 32), size(8192, 64)
    model = Tagger(width, vocabulary, head_in_fp32=not fixed).to(DEVICE)
    tokens = normal(size(4096, 8), width)
    train(logdir, model, adamw(model), tokens, classes(vocabulary, len(tokens)), amp=torch.bfloat16)


@planted()
def amp_not_used(logdir: Path, fixed: bool) -> None:
    """Fault: a model of large matrix products runs in FP32. Fixed: forward pass and loss under BF16 autocast."""
    width = size(1024, 32)
    body = blocks(4, width, size(4096, 64))
    model = nn.Sequential(*body, nn.LayerNorm(width), nn.Linear(width, 16)).to(DEVICE)
    inputs = normal(size(2048, 8), width)
    train(logdir, model, adamw(model), inputs, classes(16, len(inputs)), amp=torch.bfloat16 if fixed else None)


@planted()
def amp_will_not_pay(logdir: Path, fixed: bool) -> None:
    """Fault: so little work in a step that mixed precision would make it longer. Fixed: a batch with which it pays.
    Both run in FP32: what is wrong is not the precision but to expect anything of changing it.
    """
    width = size(512, 32)
    model = nn.Sequential(*layers(16, width, nn.ReLU), nn.Linear(width, 16)).to(DEVICE)
    inputs = normal(size(32768, 16) if fixed else size(64, 8), width)
    train(logdir, model, listed_sgd(model, 1e-3), inputs, classes(16, len(inputs)))


@planted()
def tf32_off(logdir: Path, fixed: bool) -> None:
    """Fault: matrix products in FP32 with TF32 off, as PyTorch has it by default. Fixed: TF32 is allowed."""
    torch.set_float32_matmul_precision("high" if fixed else "highest")
    widths = (size(2048, 64), size(1024, 32), size(512, 16), size(1024, 32), size(2048, 64))
    body: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        body += [nn.Linear(before, after), nn.ReLU()]
    model = nn.Sequential(*body[:-1]).to(DEVICE)
    inputs = normal(size(8192, 8), widths[0])
    train(logdir, model, adamw(model), inputs, inputs)


@planted()
def scaler_with_bf16(logdir: Path, fixed: bool) -> None:
    """Fault: a GradScaler with BF16 autocast, whose gradients have FP32's range. Fixed: without it."""
    width = size(1024, 32)
    model = nn.Sequential(*layers(12, width, nn.ReLU), nn.Linear(width, 16)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    scaler = torch.amp.GradScaler(DEVICE, enabled=not fixed)
    inputs = normal(size(32768, 8), width)
    train(logdir, model, optimizer, inputs, classes(16, len(inputs)), amp=torch.bfloat16, scaler=scaler)


@planted()
def loss_scale_overflow(logdir: Path, fixed: bool) -> None:
    """Fault: a GradScaler that doubles its scale after every good step, so that every other step overflows and is
    skipped. Fixed: the scaler's own settings, which double it every 2,000 steps.
    """
    width = size(1024, 32)
    model = nn.Sequential(*blocks(4, width, 4 * width, nn.ReLU), nn.Linear(width, 16)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=True)
    scaler = torch.amp.GradScaler(DEVICE) if fixed else torch.amp.GradScaler(DEVICE, 2.0**30, growth_interval=1)
    inputs = normal(size(4096, 8), width)
    train(logdir, model, optimizer, inputs, classes(16, len(inputs)), amp=torch.float16, scaler=scaler)
