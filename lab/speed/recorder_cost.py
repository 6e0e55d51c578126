"""Measures what a recording costs its steps: ours and the light window, compared with no profiler and a bare
torch.profiler.

All ways run in one process, in blocks of steps that take turns, because processes differ from one another by more than
some of the differences, and a machine's speed drifts: of each round every way has one block, in an order that changes.
A round's cost of a way is its block's median step over that of the block without a profiler; the table has the medians
of all rounds, and their quartiles. A step ends with a wait for the GPU where there is one.

    plain   no profiler
    bare    torch.profiler with CPU (and CUDA) activities
    shapes  the same with record_shapes
    ours    the same with the module ranges and the optimizer's watch of tb_dlprof_plugin.profile
    light   CUDA activities alone, as in the light window; with a GPU only

Before that, what a call of `step()` costs while the window is far away, ours and torch's own by turns.

    python lab/speed/recorder_cost.py [--models mlp transformer resnet50] [--rounds 12] [--out cost.json]

Names that are none of the built-in ones are those of torchvision.models. Batches are small, so that the CPU sets the
pace; `--batch-size` changes that.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity

from tb_dlprof_plugin.capture.facts.optimizer import OptimizerWatch
from tb_dlprof_plugin.capture.modules import ModuleRanges

Step = Callable[[], None]
WARMUP_STEPS = 2
"""Of each block; they are not counted."""


class Residual(nn.Module):
    """A block as of ResNet, with nothing to compute: its modules' calls are what counts."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Adds the body's output."""
        return torch.relu(x + self.body(x))


def mlp(batch: int) -> tuple[nn.Module, torch.Tensor]:
    """Forty linear layers with activations."""
    layers = [layer for _ in range(40) for layer in (nn.Linear(64, 64), nn.ReLU())]
    return nn.Sequential(*layers), torch.randn(batch, 64)


def convolutions(batch: int) -> tuple[nn.Module, torch.Tensor]:
    """Sixteen residual blocks."""
    return nn.Sequential(nn.Conv2d(3, 16, 3), *[Residual(16) for _ in range(16)]), torch.randn(batch, 3, 16, 16)


def transformer(batch: int) -> tuple[nn.Module, torch.Tensor]:
    """Twelve encoder layers."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return nn.TransformerEncoder(layer, 12, enable_nested_tensor=False), torch.randn(batch, 16, 64)


def torchvision_model(name: str, batch: int) -> tuple[nn.Module, torch.Tensor]:
    """Of torchvision, with its images of 224 x 224. Raises ImportError, ValueError."""
    import torchvision

    return torchvision.models.get_model(name), torch.randn(batch, 3, 224, 224)


MODELS = {"mlp": mlp, "convolutions": convolutions, "transformer": transformer}


def make_step(name: str, batch: int, device: torch.device, dtype: str) -> tuple[nn.Module, Step]:
    """A model and one step of its training."""
    torch.manual_seed(0)
    model, inputs = MODELS[name](batch) if name in MODELS else torchvision_model(name, batch)
    model, inputs = model.to(device), inputs.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(device.type, torch.bfloat16, enabled=dtype == "bf16"):
            loss = model(inputs).float().square().mean()
        loss.backward()
        optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()

    return model, step


@contextlib.contextmanager
def profiled(activities: list[ProfilerActivity], shapes: bool) -> Iterator[None]:
    """Under torch's profiler, whose trace is thrown away."""
    from torch.profiler.profiler import _KinetoProfile

    profiler = _KinetoProfile(activities=activities, record_shapes=shapes)
    profiler.start()
    try:
        yield
    finally:
        profiler.stop()


@contextlib.contextmanager
def ours(model: nn.Module, activities: list[ProfilerActivity]) -> Iterator[None]:
    """As `tb_dlprof_plugin.profile` records."""
    ranges, watch = ModuleRanges(model), OptimizerWatch()
    ranges.install()
    watch.install()
    try:
        with profiled(activities, shapes=True):
            yield
    finally:
        ranges.remove()
        watch.remove()


def waiting_us(rounds: int) -> tuple[float, float]:
    """CPU time of `step()` of torch's profiler and of `tb_dlprof_plugin.profile`, while both wait; one thread."""
    from tb_dlprof_plugin import profile

    far, calls = 10**9, 500
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        torch.profiler.profile(schedule=torch.profiler.schedule(wait=far, warmup=1, active=1)) as bare,
        profile(folder, schedule=(far, 1, 1, 1)) as mine,
    ):
        # The block ends without a recording.
        warnings.simplefilter("ignore")
        times: dict[Any, list[float]] = {bare: [], mine: []}
        for _ in range(rounds):
            for profiler, found in times.items():
                began = time.thread_time_ns()
                for _ in range(calls):
                    profiler.step()
                found.append((time.thread_time_ns() - began) / calls / 1e3)
    return statistics.median(times[bare]), statistics.median(times[mine])


def ways(model: nn.Module, device: torch.device) -> dict[str, Callable[[], Any]]:
    """Context managers for a block of steps, by name."""
    everything = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    found: dict[str, Callable[[], Any]] = {
        "plain": contextlib.nullcontext,
        "bare": lambda: profiled(everything, shapes=False),
        "shapes": lambda: profiled(everything, shapes=True),
        "ours": lambda: ours(model, everything),
    }
    if device.type == "cuda":
        found["light"] = lambda: profiled([ProfilerActivity.CUDA], shapes=False)
    return found


def block_ms(step: Step, steps: int, way: Callable[[], Any], clock: Callable[[], int]) -> float:
    """Median step of a block."""
    times = []
    with way():
        for _ in range(WARMUP_STEPS):
            step()
        for _ in range(steps):
            began = clock()
            step()
            times.append((clock() - began) / 1e6)
    return statistics.median(times)


def measure(name: str, args: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    """Of one model: the plain step, and the costs of each way in percent of it and of the bare profiler's."""
    model, step = make_step(name, args.batch_size, device, args.dtype)
    by_name = ways(model, device)
    # Without a GPU one thread does all the work, and other programs on the machine do not count.
    clock = time.perf_counter_ns if device.type == "cuda" else time.thread_time_ns
    for context in by_name.values():
        block_ms(step, 3, context, clock)
    blocks: dict[str, list[float]] = {way: [] for way in by_name}
    for number in range(args.rounds):
        order = list(by_name)
        order = order[number % len(order) :] + order[: number % len(order)]
        for way in order:
            blocks[way].append(block_ms(step, args.steps, by_name[way], clock))
    found: dict[str, Any] = {"model": name, "plain_ms": statistics.median(blocks["plain"])}
    for way, times in blocks.items():
        if way != "plain":
            found[way] = spread([100 * (t / p - 1) for t, p in zip(times, blocks["plain"], strict=True)])
    for way in ("bare", "shapes"):
        found[f"ours_over_{way}"] = spread(
            [100 * (t / p - 1) for t, p in zip(blocks["ours"], blocks[way], strict=True)]
        )
    return found


def spread(percents: list[float]) -> dict[str, float]:
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(percents, n=4)
    return {"percent": middle, "low": low, "high": high}


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", default=[*MODELS])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=10, help="counted steps of a block")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--cpu", action="store_true", help="also where there is a GPU")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() and not args.cpu else "cpu")
    if device.type == "cpu":
        torch.set_num_threads(1)
    bare_us, ours_us = waiting_us(40)
    print(f"waiting: {ours_us:.1f} us a step, torch's own profiler {bare_us:.1f} us", flush=True)
    results = []
    for name in args.models:
        results.append(measure(name, args, device))
        print(f"{name} is measured", flush=True)
    if args.out is not None:
        machine = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
        found = {"device": machine, "torch": torch.__version__, "waiting_us": {"bare": bare_us, "ours": ours_us}}
        args.out.write_text(json.dumps({**found, "results": results}, indent=1))
    columns = [
        way for way in ("bare", "shapes", "ours", "light", "ours_over_bare", "ours_over_shapes") if way in results[0]
    ]
    print(f"{'model':16} {'plain':>10}" + "".join(f" {column.replace('_', ' '):>24}" for column in columns))
    for result in results:
        cells = [
            f"{c['percent']:+.1f} % ({c['low']:+.1f} to {c['high']:+.1f})"
            for c in (result[column] for column in columns)
        ]
        print(f"{result['model']:16} {result['plain_ms']:7.2f} ms" + "".join(f" {cell:>24}" for cell in cells))


if __name__ == "__main__":
    main()
