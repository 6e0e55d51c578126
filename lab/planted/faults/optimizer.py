"""Faults of optimizers and of the handling of gradients."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from torch import Tensor, nn

from ..common import DEVICE, adamw, classes, normal, planted, run_steps, sgd, size, train
from ..models import layers

DECAYS = (0.99, 0.9999)


@planted()
def optimizer_not_fused(logdir: Path, fixed: bool) -> None:
    """Fault: AdamW over lists of parameters, a pass over all of them for each term. Fixed: one pass of a fused
    kernel.
    """
    width = size(8192, 64)
    model = nn.Sequential(*layers(3, width, nn.GELU)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fixed, foreach=not fixed)
    inputs = normal(size(2048, 16), width)
    train(logdir, model, optimizer, inputs, torch.randn_like(inputs), amp=torch.bfloat16)


@planted()
def single_tensor_optimizer(logdir: Path, fixed: bool) -> None:
    """Fault: Adam updates each parameter by kernels of its own. Fixed: one fused kernel for many of them."""
    torch.set_float32_matmul_precision("high")
    model = nn.Sequential(*layers(12, 512, lambda: nn.LayerNorm(512), nn.ReLU)).to(DEVICE)
    inputs = normal(size(16384, 16), 512)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=fixed or None, foreach=None if fixed else False)
    train(logdir, model, optimizer, inputs, torch.randn_like(inputs))


@planted()
def zero_grad_to_zero(logdir: Path, fixed: bool) -> None:
    """Fault: gradients are filled with zeros and added to. Fixed: they are set to None, and the new ones take their
    place.
    """
    width = size(8192, 64)
    model = nn.Sequential(*layers(3, width, nn.GELU)).to(DEVICE)
    optimizer = sgd(model)
    inputs = normal(size(1024, 16), width)
    targets = torch.randn_like(inputs)

    def step() -> None:
        optimizer.zero_grad(set_to_none=fixed)
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


@planted()
def late_zero_grad(logdir: Path, fixed: bool) -> None:
    """Fault: gradients of the last step stay until the backward pass begins. Fixed: they go before the forward pass."""
    torch.set_float32_matmul_precision("high")
    width = size(8192, 32)
    model = nn.Sequential(*layers(6, width, nn.GELU)).to(DEVICE)
    optimizer = sgd(model, 1e-4)
    inputs = normal(size(8192, 16), width)
    targets = torch.randn_like(inputs)

    def step() -> None:
        if fixed:
            optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(inputs), targets)
        if not fixed:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs), profile_memory=True)


class Model(nn.Module):
    """A body and a head."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*layers(6, width, lambda: nn.LayerNorm(width), nn.GELU))
        self.head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 16))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


@planted(gpus=0)
def gradients_without_optimizer(logdir: Path, fixed: bool) -> None:
    """Fault: a new head is trained on a body that the optimizer does not have, and the body's gradients are computed.
    Fixed: the body does not require gradients.
    """
    torch.set_float32_matmul_precision("high")
    model = Model(size(4096, 256)).to(DEVICE)
    if fixed:
        model.body.requires_grad_(False)
    optimizer = adamw(model.head)
    inputs = normal(size(4096, 256), size(4096, 256))
    labels = classes(16, len(inputs))

    def step() -> None:
        model.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs), profile_memory=True)


@planted()
def low_utilization_stretch(logdir: Path, fixed: bool) -> None:
    """Fault: moving averages of the weights are kept parameter by parameter. Fixed: by ops over lists of parameters.
    The loss is read before, as many trainings do, so that the GPU has nothing else to do while the small ops are
    launched.
    """
    torch.set_float32_matmul_precision("high")
    width = size(512, 32)
    model = nn.Sequential(*layers(16, width, nn.GELU)).to(DEVICE)
    averages = {decay: copy.deepcopy(model).requires_grad_(False) for decay in DECAYS}
    optimizer = sgd(model)
    inputs = normal(size(65536, 16), width)
    targets = torch.randn_like(inputs)
    losses: list[float] = []

    @torch.no_grad()
    def keep_averages() -> None:
        weights: list[Tensor] = list(model.parameters())
        for decay, average in averages.items():
            kept: list[Tensor] = list(average.parameters())
            if fixed:
                torch._foreach_lerp_(kept, weights, 1 - decay)
                continue
            for old, new in zip(kept, weights, strict=True):
                old.copy_(old * decay + new * (1 - decay))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        keep_averages()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))
