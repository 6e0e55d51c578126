"""Faults that leave the GPU without enough work: launches, waits, small kernels and work of the CPU in between."""

from __future__ import annotations

import itertools
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..common import DEVICE, adamw, classes, listed_sgd, normal, planted, run_steps, sgd, size, train
from ..models import layers, pairs

SAMPLES = 300_000
"""Of the data set, each with a weight of its own."""
MICRO_BATCHES = 8
BRANCHES = 6


@planted()
def launch_bound(logdir: Path, fixed: bool) -> None:
    """Fault: many small layers, each launched by itself. Fixed: forward and backward are replayed as CUDA graphs.

    CUDA graphs need a GPU, so on a CPU the two are the same.
    """
    torch.set_float32_matmul_precision("high")
    width = size(1024, 64)
    model = nn.Sequential(*layers(size(40, 8), width, nn.ReLU)).to(DEVICE)
    optimizer = sgd(model)
    inputs = normal(size(2048, 16), width)
    targets = torch.randn_like(inputs)
    forward: Any = model
    if fixed and DEVICE == "cuda":
        forward = torch.cuda.make_graphed_callables(model, (inputs,))
    train(logdir, forward, optimizer, inputs, targets, model=model)


@planted()
def slow_api(logdir: Path, fixed: bool) -> None:
    """Fault: anomaly detection was left on after a hunt for NaN. Fixed: off."""
    width = size(1024, 64)
    model = nn.Sequential(*layers(8, width, nn.ReLU), nn.Linear(width, 10)).to(DEVICE)
    rows = normal(size(1024, 16), width)
    with torch.autograd.set_detect_anomaly(not fixed):
        train(logdir, model, listed_sgd(model), rows, classes(10, len(rows)))


@planted()
def for_loop_indexing(logdir: Path, fixed: bool) -> None:
    """Fault: a Python loop scales the samples of a batch row by row. Fixed: one product scales them all."""
    width, batch = size(2048, 64), size(128, 8)
    model = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)).to(DEVICE)
    optimizer = sgd(model)
    inputs = normal(batch, size(256, 4), width)
    gains = torch.rand(batch, device=DEVICE)
    targets = torch.randn_like(inputs)

    def scaled() -> Tensor:
        if fixed:
            return inputs * gains[:, None, None]
        result = torch.empty_like(inputs)
        for row in range(batch):
            result[row] = inputs[row] * gains[row]
        return result

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        samples = scaled()
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = nn.functional.mse_loss(model(samples), targets)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


@planted()
def gpu_gaps(logdir: Path, fixed: bool) -> None:
    """Fault: each step draws its samples by weights that Python sums up again, and the GPU runs out of work meanwhile.
    Fixed: the sums are made once.

    Samples are sequences of 16 on the device; the network is wide, so the GPU has work.
    """
    width, batch = size(4096, 64), size(512, 16)
    model = nn.Sequential(*layers(6, width, nn.GELU)).to(DEVICE)
    optimizer = sgd(model)
    data = normal(2 * batch, 16, width)
    indices = range(SAMPLES)
    weights = [random.random() for _ in indices]
    sums = list(itertools.accumulate(weights))

    def step() -> None:
        if fixed:
            chosen = random.choices(indices, cum_weights=sums, k=batch)
        else:
            chosen = random.choices(indices, weights=weights, k=batch)
        rows = torch.tensor(chosen, pin_memory=DEVICE == "cuda").to(DEVICE, non_blocking=True)
        inputs = data[rows % len(data)]
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = nn.functional.mse_loss(model(inputs), inputs)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


@planted()
def gpu_underutilized(logdir: Path, fixed: bool) -> None:
    """Fault: before each micro-batch Python draws the weight of each sample alone. Fixed: by one NumPy
    call. Each draw is small, and so is each pause of the GPU; together they leave it idle for more than half of the
    step.
    """
    width = size(4096, 64)
    model = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)).to(DEVICE)
    optimizer = sgd(model)
    inputs = normal(size(3072, 16), width)
    targets = torch.randn_like(inputs)
    generator = np.random.default_rng(0)

    def drawn(count: int) -> Tensor:
        values = generator.beta(0.4, 0.4, count) if fixed else [random.betavariate(0.4, 0.4) for _ in range(count)]
        on_host = torch.as_tensor(values, dtype=torch.float32)
        return on_host.pin_memory() if DEVICE == "cuda" else on_host

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        for _ in range(MICRO_BATCHES):
            weights = drawn(len(inputs)).to(DEVICE, non_blocking=True)[:, None]
            with torch.autocast(DEVICE, torch.bfloat16):
                loss = nn.functional.mse_loss(model(inputs * weights), targets * weights)
            loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


def gradient_norm(model: nn.Module) -> float:
    """Of all parameters, as a number: the CPU waits for the GPU at each of them."""
    total = 0.0
    for parameter in model.parameters():
        if parameter.grad is not None:
            total += parameter.grad.norm().item() ** 2
    return total**0.5


def gradient_norm_on_the_gpu(model: nn.Module) -> Tensor:
    """The same as a tensor, without a wait."""
    norms = [parameter.grad.norm() for parameter in model.parameters() if parameter.grad is not None]
    return torch.stack(norms).norm()


@planted()
def host_reads(logdir: Path, fixed: bool) -> None:
    """Fault: the norm of each gradient is read on the CPU in each step. Fixed: the sum stays on the GPU.

    Recorded with Python stacks.
    """
    width, batch = size(3072, 32), size(8192, 16)
    model = nn.Sequential(*pairs(8, width)).to(DEVICE)
    optimizer = adamw(model, 1e-3)
    inputs, targets = normal(batch, width), normal(batch, width)
    log: list[float | Tensor] = []

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        log.append(gradient_norm_on_the_gpu(model) if fixed else gradient_norm(model))
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch, with_stack=True)


class Clock:
    """Times the parts of a step."""

    def __init__(self, wait: bool) -> None:
        self.wait = wait and DEVICE == "cuda"
        self.times: list[float] = []
        self.events: list[torch.cuda.Event] = []

    def part_ends(self) -> None:
        """One part ends and the next begins."""
        if self.wait:
            torch.cuda.synchronize()
            self.times.append(time.perf_counter())
        elif DEVICE == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.events.append(event)


@planted()
def synchronising_calls(logdir: Path, fixed: bool) -> None:
    """Fault: each layer and part of a step is timed by waiting for the GPU. Fixed: by events that it records itself."""
    width, batch = size(3072, 32), size(8192, 16)
    model = nn.Sequential(*pairs(8, width)).to(DEVICE)
    optimizer = adamw(model, 1e-3)
    inputs, targets = normal(batch, width), normal(batch, width)
    clock = Clock(wait=not fixed)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        clock.part_ends()
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            outputs = inputs
            for layer in model:
                outputs = layer(outputs)
                clock.part_ends()
            loss = nn.functional.mse_loss(outputs, targets)
        loss.backward()
        clock.part_ends()
        optimizer.step()
        clock.part_ends()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


class Pooling(nn.Module):
    """Attention pooling over long signals, by a softmax over their positions."""

    def __init__(self, together: bool) -> None:
        super().__init__()
        self.sharpness = nn.Parameter(torch.ones(1))
        self.together = together

    def forward(self, signals: Tensor) -> Tensor:
        scores = signals * self.sharpness
        if self.together:
            weights = torch.softmax(scores, dim=1)
        else:
            weights = torch.stack([torch.softmax(row, dim=0) for row in scores.unbind(0)])
        return (weights * signals).sum(dim=1, keepdim=True)


@planted()
def small_kernels(logdir: Path, fixed: bool) -> None:
    """Fault: each signal of a batch is pooled alone, by kernels of one thread block. Fixed: all at once.

    Pooled signals are added to what a wide network makes of other inputs.
    """
    width, batch = size(4096, 64), 16
    wide = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
    model = nn.ModuleDict({"pooling": Pooling(together=fixed), "wide": wide}).to(DEVICE)
    optimizer = sgd(model)
    signals = normal(batch, size(1 << 19, 1 << 10))
    inputs = normal(batch, size(512, 2), width)
    targets = torch.randn_like(inputs)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        pooled = model["pooling"](signals)
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = nn.functional.mse_loss(model["wide"](inputs) + pooled[:, None], targets)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


class Sensor(Pooling):
    """A softmax over millions of positions for each of a few signals, and a layer."""

    def __init__(self) -> None:
        super().__init__(together=True)
        self.head = nn.Linear(1, 16)

    def forward(self, signals: Tensor) -> Tensor:
        return self.head(super().forward(signals))


class Sensors(nn.Module):
    """A branch for each sensor."""

    def __init__(self, fixed: bool) -> None:
        super().__init__()
        self.branches = nn.ModuleList(Sensor() for _ in range(BRANCHES))
        self.streams = [torch.cuda.Stream() for _ in range(BRANCHES)] if fixed and DEVICE == "cuda" else []

    def forward(self, sensors: list[Tensor]) -> Tensor:
        if not self.streams:
            return torch.cat([branch(sensor) for branch, sensor in zip(self.branches, sensors, strict=True)], dim=1)
        main_stream = torch.cuda.current_stream()
        outputs = []
        for branch, sensor, stream in zip(self.branches, sensors, self.streams, strict=True):
            stream.wait_stream(main_stream)
            with torch.cuda.stream(stream):
                outputs.append(branch(sensor))
        for output, stream in zip(outputs, self.streams, strict=True):
            main_stream.wait_stream(stream)
            output.record_stream(main_stream)
        return torch.cat(outputs, dim=1)


@planted()
def kernel_concurrency(logdir: Path, fixed: bool) -> None:
    """Fault: branches that do not depend on each other run one after another, each on a few multiprocessors.
    Fixed: each branch has a CUDA stream of its own.
    """
    torch.set_float32_matmul_precision("high")
    model = Sensors(fixed).to(DEVICE)
    optimizer = sgd(model)
    sensors = [normal(size(8, 2), size(1 << 22, 1 << 10)) for _ in range(BRANCHES)]
    targets = normal(len(sensors[0]), 16 * BRANCHES)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.mse_loss(model(sensors), targets).backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(targets))
