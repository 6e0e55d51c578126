"""Measures how long the hook delays the training, compared with torch's own trace handler.

Two tables. First the time that ``on_trace_ready`` blocks, ours and torch's in turn, cycle by cycle in one profiled run
of one workload; no analysis runs while either is timed. Then the time of a training step with and without module
ranges, while the profiler records and while it does not. The last line is the first table's ratio: ours to torch's.

    python lab/speed/capture_blocking.py [--pairs 8] [--steps 10] [--device cuda] [--gzip]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tb_dlprof_plugin.capture import trace_handler
from tb_dlprof_plugin.capture.modules import ModuleRanges


class Residual(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        out: torch.Tensor = self.relu(self.bn2(self.conv2(y)) + x)
        return out


def make_model() -> nn.Module:
    """ResNet-50 where torchvision is installed, else a conv net with as many modules."""
    try:
        import torchvision  # type: ignore[import-not-found]
    except ImportError:
        blocks = [Residual(32) for _ in range(24)]
        return nn.Sequential(nn.Conv2d(3, 32, 3), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    model: nn.Module = torchvision.models.resnet50()
    return model


def make_step(model: nn.Module, device: torch.device) -> Callable[[], None]:
    """One training step on a fixed batch; returns once the device is done."""
    model.to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    side, batch = (128, 32) if device.type == "cuda" else (16, 2)
    x = torch.randn(batch, 3, side, side, device=device)
    target = torch.zeros(batch, dtype=torch.long, device=device)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), target).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()

    return step


def blocking_ms(
    model: nn.Module, step: Callable[[], None], logdir: Path, pairs: int, steps: int, use_gzip: bool
) -> tuple[list[float], list[float], float]:
    """Milliseconds in ``on_trace_ready`` of ours and of torch's, and the mean size of a trace in MB."""
    ours = trace_handler(logdir / "ours", use_gzip=use_gzip, model=model, module_ranges=False)
    peer = torch.profiler.tensorboard_trace_handler(str(logdir / "torch"), use_gzip=use_gzip)
    times: dict[str, list[float]] = {"ours": [], "torch": []}

    def timed(prof: Any) -> None:
        turn = sum(len(values) for values in times.values())
        # ours torch torch ours ...: neither is always the first of a pair.
        name = ("ours", "torch", "torch", "ours")[turn % 4]
        start = time.perf_counter()
        (ours if name == "ours" else peer)(prof)
        times[name].append((time.perf_counter() - start) * 1e3)
        if not ours.wait(300):
            raise SystemExit("the analysis failed")

    schedule = torch.profiler.schedule(wait=0, warmup=1, active=steps, repeat=2 * (pairs + 1))
    with torch.profiler.profile(schedule=schedule, on_trace_ready=timed, record_shapes=True) as prof:
        for _ in range(2 * (pairs + 1) * (steps + 1)):
            step()
            prof.step()
    ours.close()
    sizes = [path.stat().st_size for path in (logdir / "torch").iterdir()]
    # The first pair imports and caches.
    return times["ours"][1:], times["torch"][1:], statistics.mean(sizes) / 1e6


def step_ms(model: nn.Module, step: Callable[[], None], recording: bool, rounds: int) -> tuple[float, float]:
    """Median milliseconds of a step without and with module ranges, in turn."""
    ranges = ModuleRanges(model)
    times: dict[bool, list[float]] = {False: [], True: []}

    def run() -> None:
        for index in range(2 * rounds):
            hooked = index % 2 == 1
            if hooked:
                ranges.install()
            else:
                ranges.remove()
            step()
            start = time.perf_counter()
            step()
            times[hooked].append((time.perf_counter() - start) * 1e3)
        ranges.remove()

    if recording:
        with torch.profiler.profile(record_shapes=True):
            run()
    else:
        run()
    return statistics.median(times[False]), statistics.median(times[True])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10, help="recorded steps in one trace")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--gzip", action="store_true", help="use_gzip=True in both handlers")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", message="Warning: Profiler clears events")

    torch.manual_seed(0)
    device = torch.device(args.device)
    model = make_model()
    step = make_step(model, device)
    for _ in range(3):
        step()
    modules = sum(1 for _ in model.modules())
    with tempfile.TemporaryDirectory(prefix="capture_blocking_") as folder:
        ours, peer, size = blocking_ms(model, step, Path(folder), args.pairs, args.steps, args.gzip)
    print(f"torch {torch.__version__}, {device}, {type(model).__name__} of {modules} modules")
    print(f"{args.pairs} pairs, {args.steps} steps a trace, {size:.1f} MB a trace{', gzip' if args.gzip else ''}\n")
    print(f"{'on_trace_ready blocks, ms':<28}{'median':>9}{'min':>9}{'max':>9}")
    for name, values in (("ours", ours), ("torch", peer)):
        print(f"{name:<28}{statistics.median(values):>9.1f}{min(values):>9.1f}{max(values):>9.1f}")
    print(f"\n{'module ranges, ms a step':<28}{'without':>9}{'with':>9}{'ratio':>9}")
    for recording in (True, False):
        without, with_ranges = step_ms(model, step, recording, rounds=15)
        name = "profiler records" if recording else "profiler off"
        print(f"{name:<28}{without:>9.2f}{with_ranges:>9.2f}{with_ranges / without:>9.3f}")
    print(f"\nblocking ratio ours/torch: {statistics.median(ours) / statistics.median(peer):.3f}")


if __name__ == "__main__":
    main()
