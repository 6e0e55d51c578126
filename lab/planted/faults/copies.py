"""Faults of copies between CPU and GPU."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from ..common import DEVICE, adamw, classes, normal, planted, run_steps, size
from ..models import pairs, patch_model

PINNED = DEVICE == "cuda"


@planted()
def blocking_copies(logdir: Path, fixed: bool) -> None:
    """Fault: batches are copied, and a metric is read back, by copies that the CPU waits for. Fixed: it goes on.

    A network with four heads; each target is copied where it is needed.
    """
    width, batch = size(3072, 64), size(8192, 16)
    trunk = nn.Sequential(nn.Linear(64, width), *pairs(6, width))
    heads = nn.ModuleList([nn.Linear(width, 10) for _ in range(4)])
    model = nn.ModuleDict({"trunk": trunk, "heads": heads}).to(DEVICE)
    optimizer = adamw(model, 1e-3)
    inputs = torch.randn(batch, 64, pin_memory=PINNED)
    targets = [torch.zeros(batch, dtype=torch.long, pin_memory=PINNED) for _ in heads]
    losses: list[Tensor] = []

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            hidden = trunk(inputs.to(DEVICE, non_blocking=fixed))
            loss = torch.zeros((), device=DEVICE)
            for head, target in zip(heads, targets, strict=True):
                loss = loss + nn.functional.cross_entropy(head(hidden), target.to(DEVICE, non_blocking=fixed))
        loss.backward()
        losses.append(loss.detach() if fixed else loss.detach().cpu())
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


def clear(buffer: Tensor, wait: bool) -> None:
    """Zeros in pinned memory, in the order of the GPU's work, as a CUDA extension clears what its kernels write to."""
    if not buffer.is_pinned():
        buffer.zero_()
        return
    runtime = ctypes.CDLL(f"libcudart.so.{(torch.version.cuda or '').split('.')[0]}")
    pointer, size_bytes = ctypes.c_void_p(buffer.data_ptr()), ctypes.c_size_t(buffer.nbytes)
    if wait:
        failed = runtime.cudaMemset(pointer, 0, size_bytes)
    else:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        failed = runtime.cudaMemsetAsync(pointer, 0, size_bytes, stream)
    if failed:
        raise RuntimeError(f"CUDA error {failed}")


@planted()
def blocking_sets(logdir: Path, fixed: bool) -> None:
    """Fault: a buffer in pinned memory is cleared by a call that waits for the GPU. Fixed: by one that does not wait.

    A network that clears the buffer before each layer and before the update.
    """
    width, batch = size(3072, 32), size(8192, 16)
    model = nn.Sequential(*pairs(8, width)).to(DEVICE)
    optimizer = adamw(model, 1e-3)
    inputs, targets = normal(batch, width), normal(batch, width)
    statistics = torch.zeros(4096, pin_memory=PINNED)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            outputs = inputs
            for layer in model:
                clear(statistics, wait=not fixed)
                outputs = layer(outputs)
            loss = nn.functional.mse_loss(outputs, targets)
        loss.backward()
        clear(statistics, wait=not fixed)
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


class Prefetcher:
    """Copies the next batch on a stream of its own."""

    def __init__(self, batches: Iterator[Tensor]) -> None:
        self.batches = batches
        self.stream = torch.cuda.Stream()
        self.fetch()

    def fetch(self) -> None:
        """Begins the next copy."""
        with torch.cuda.stream(self.stream):
            self.upcoming = next(self.batches).to(DEVICE, non_blocking=True)

    def __next__(self) -> Tensor:
        torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.upcoming
        batch.record_stream(torch.cuda.current_stream())
        self.fetch()
        return batch


def _classify_patches(logdir: Path, model: nn.Module, batches: Iterator[Tensor] | Prefetcher, batch: int) -> None:
    """Trains on images that are the larger part of the step's work."""
    optimizer = adamw(model, 1e-3)
    labels = classes(10, batch)

    def step() -> None:
        images = next(batches).to(DEVICE, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images).mean(1), labels)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


@planted()
def copies_not_overlapped(logdir: Path, fixed: bool) -> None:
    """Fault: each batch is copied before its step, while the GPU computes nothing. Fixed: during the step before.

    On a CPU nothing is copied.
    """
    batch = size(128, 2)
    model = patch_model(size(768, 32), 3)
    upcoming = itertools.cycle([torch.rand(batch, 196, 3 * 16 * 16, pin_memory=PINNED) for _ in range(3)])
    _classify_patches(logdir, model, Prefetcher(upcoming) if fixed and PINNED else upcoming, batch)


@planted()
def pageable_copies(logdir: Path, fixed: bool) -> None:
    """Fault: batches lie in pageable memory, from which a copy is staged. Fixed: in pinned memory."""
    batch = size(128, 2)
    model = patch_model(size(768, 32), 4)
    batches = [torch.rand(batch, 196, 3 * 16 * 16, pin_memory=fixed and PINNED) for _ in range(3)]
    _classify_patches(logdir, model, itertools.cycle(batches), batch)


@planted()
def extra_copies(logdir: Path, fixed: bool) -> None:
    """Fault: noise and a mask are made on the CPU and copied each step. Fixed: they are made on the GPU.

    A network that learns to remove noise from its inputs.
    """
    features, width, batch = size(128, 16), size(3072, 32), size(8192, 16)
    body = (nn.Linear(features, width), *pairs(7, width), nn.Linear(width, features))
    model = nn.Sequential(*body).to(DEVICE)
    optimizer = adamw(model, 1e-3)
    inputs = normal(batch, features)
    made_on = DEVICE if fixed else "cpu"

    def step() -> None:
        noise = torch.randn(batch, features, device=made_on).to(DEVICE)
        weights = torch.ones(batch, 1, device=made_on).to(DEVICE)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            outputs = model(inputs + noise)
        loss = ((outputs - noise).square() * weights).mean()
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


@planted()
def slow_copies(logdir: Path, fixed: bool) -> None:
    """Fault: features are copied to new pageable memory each step. Fixed: to pinned memory that is used again.

    A network whose features are kept on the CPU, for a look at them after each step.
    """
    width, batch = size(3072, 32), size(8192, 16)
    model = nn.Sequential(*pairs(8, width)).to(DEVICE)
    optimizer = adamw(model, 1e-3)
    inputs, targets = normal(batch, width), normal(batch, width)
    pinned = torch.empty(batch // 8, width, pin_memory=PINNED)
    copied = torch.cuda.Event() if PINNED else None

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            features = model(inputs)
        loss = nn.functional.mse_loss(features.float(), targets)
        kept = features.detach()[: batch // 8].float()
        if not fixed:
            features_on_cpu = kept.cpu()
        else:
            features_on_cpu = pinned.copy_(kept, non_blocking=True)
            if copied:
                copied.record()
        loss.backward()
        optimizer.step()
        if fixed and copied:
            copied.synchronize()
        return features_on_cpu[0].clone()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


@planted()
def small_copies(logdir: Path, fixed: bool) -> None:
    """Fault: each sample of a batch is copied alone. Fixed: one copy, split on the GPU.

    A network over point clouds of different sizes.
    """
    width, clouds = size(2048, 32), size(256, 8)
    points = [32 + 2 * (number % 32) for number in range(clouds)]
    model = nn.Sequential(nn.Linear(8, width), *pairs(8, width), nn.Linear(width, 16)).to(DEVICE)
    optimizer = adamw(model, 1e-3)
    batch = torch.randn(sum(points), 8, pin_memory=PINNED)

    def step() -> None:
        if fixed:
            samples = batch.to(DEVICE, non_blocking=True).split(points)
        else:
            samples = tuple(sample.to(DEVICE, non_blocking=True) for sample in batch.split(points))
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = model(torch.cat(samples)).square().mean()
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=clouds)
