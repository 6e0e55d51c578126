"""Train one of the six demo models for a few steps and profile it with tb_dlprof_plugin.

The steps are first timed without the profiler: that is the true step time, against which the profile's own numbers and
its predictions can be held. The result is one JSON line on standard output.

    python demo/train.py --model vgg16 --precision amp-fp16 --logdir runs/vgg16/amp-fp16
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

try:
    import torch
except ImportError:
    sys.exit("demo/train.py: torch is missing: install it (pip install torch), or run `make demo`, which does.")

try:
    import tb_dlprof_plugin
except ImportError as error:
    sys.exit(
        f"demo/train.py: tb_dlprof_plugin cannot be imported ({error}): run `pip install -e .` in the repository first."
    )

from torch import Tensor
from torch.utils.data import DataLoader

from models import MODELS, Setting
from synthetic_data import make_loader
from training import PRECISIONS, Mark, Training, synchronize

WARMUP_STEPS = 5
WAIT_STEPS = 10
PROFILER_WARMUP_STEPS = 2
AFTER_STEPS = 22
"""Trained on after the recording: two that settle, and twenty that the hook times without the profiler."""


def _parse_args(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train and profile one of the six demo models.")
    parser.add_argument("--model", choices=sorted(MODELS), required=True)
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32")
    parser.add_argument("--logdir", type=Path, required=True, help="directory of this run, for trace and event file")
    parser.add_argument("--steps", type=int, default=None, help="iterations to record (default 10, quick 5)")
    parser.add_argument("--timed-steps", type=int, default=None, help="unprofiled steps to time (default 20, quick 5)")
    parser.add_argument("--batch-size", type=int, default=None, help="default: the model's own")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--workers", type=int, help="DataLoader workers (default 0 on a CPU, else 2 to 8)")
    parser.add_argument("--cudnn-benchmark", action="store_true", help="let cuDNN search for the fastest algorithms")
    parser.add_argument("--channels-last", action="store_true", help="keep images as batch x height x width x channels")
    parser.add_argument("--profile-memory", action="store_true", help="record the memory, too")
    parser.add_argument("--quick", action="store_true", help="small images, small batches, few steps")
    return parser.parse_args(argv)


def choose_device(wanted: str) -> torch.device:
    """The device of that name; ``auto`` is the GPU where there is one."""
    if wanted == "cuda" and not torch.cuda.is_available():
        sys.exit("demo/train.py: --device cuda was asked for, but this torch sees no CUDA GPU: use --device cpu.")
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(wanted)


def time_steps(training: Training, loader: DataLoader[tuple[Tensor, Tensor]], steps: int) -> float:
    """Mean milliseconds of a step as a training sees it, the loader included, after a warm-up."""
    batches = iter(loader)
    for images, labels in itertools.islice(batches, WARMUP_STEPS):
        training.step(*training.to_device(images, labels))
    synchronize(training.device)
    start = time.perf_counter()
    for images, labels in itertools.islice(batches, steps):
        training.step(*training.to_device(images, labels))
    synchronize(training.device)
    return (time.perf_counter() - start) * 1e3 / steps


def time_steps_without_loader(training: Training, loader: DataLoader[tuple[Tensor, Tensor]], steps: int) -> float:
    """Mean milliseconds of a step on one batch that stays on the device."""
    images, labels = training.to_device(*next(iter(loader)))
    training.step(images, labels)
    synchronize(training.device)
    start = time.perf_counter()
    for _ in range(steps):
        training.step(images, labels)
    synchronize(training.device)
    return (time.perf_counter() - start) * 1e3 / steps


def profile_steps(
    training: Training,
    loader: DataLoader[tuple[Tensor, Tensor]],
    steps: int,
    after: int,
    logdir: Path,
    run_name: str,
    profile_memory: bool,
) -> tuple[float, float]:
    """Record ``steps`` iterations and train on for ``after``; returns the mean milliseconds of a recorded one on the
    device, and the last loss."""
    schedule = {"wait": WAIT_STEPS, "warmup": PROFILER_WARMUP_STEPS, "active": steps, "repeat": 1}
    skipped = WAIT_STEPS + PROFILER_WARMUP_STEPS
    start = stop = Mark(training.device)
    loss = torch.zeros(())
    with tb_dlprof_plugin.profile(
        logdir,
        model=training.model,
        dataloader=loader,
        optimizer=training.optimizer,
        schedule=schedule,
        run_name=run_name,
        profile_memory=profile_memory,
    ) as prof:
        for index, (images, labels) in enumerate(itertools.islice(loader, skipped + steps + after)):
            if index == skipped:
                start = Mark(training.device)
            loss = training.step(*training.to_device(images, labels))
            if index == skipped + steps - 1:
                stop = Mark(training.device)
            prof.step()
    return stop.ms_since(start) / steps, loss.item()


def train(args: argparse.Namespace) -> dict[str, Any]:
    """Run the training that the arguments describe; returns what `main` prints."""
    device = choose_device(args.device)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = args.cudnn_benchmark
    spec = MODELS[args.model]
    setting: Setting = spec.quick if args.quick else spec.full
    batch_size = args.batch_size or setting.batch_size
    steps = args.steps or (5 if args.quick else 10)
    timed_steps = args.timed_steps or (5 if args.quick else 20)
    after = 5 if args.quick else AFTER_STEPS
    workers = args.workers
    if workers is None:
        workers = min(8, max(2, (os.cpu_count() or 2) // 2)) if device.type == "cuda" else 0

    training = Training(spec.build(setting.image_shape, spec.num_classes), device, args.precision, args.channels_last)
    loader = make_loader(
        batches=max(WARMUP_STEPS + timed_steps, WAIT_STEPS + PROFILER_WARMUP_STEPS + steps + after),
        batch_size=batch_size,
        image_shape=setting.image_shape,
        num_classes=spec.num_classes,
        workers=workers,
        pin_memory=device.type == "cuda",
    )
    unprofiled_ms = time_steps(training, loader, timed_steps)
    without_loader_ms = time_steps_without_loader(training, loader, timed_steps)
    run_name = f"{args.model}/{args.precision}"
    profiled_ms, loss = profile_steps(training, loader, steps, after, args.logdir, run_name, args.profile_memory)
    return {
        "model": args.model,
        "precision": args.precision,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "batch_size": batch_size,
        "image_shape": list(setting.image_shape),
        "workers": workers,
        "cudnn_benchmark": args.cudnn_benchmark,
        "channels_last": args.channels_last,
        "recorded_steps": steps,
        "unprofiled_step_ms": round(unprofiled_ms, 4),
        "unprofiled_step_without_loader_ms": round(without_loader_ms, 4),
        "profiled_step_ms": round(profiled_ms, 4),
        "final_loss": round(loss, 5),
    }


def main(argv: list[str] | None = None) -> None:
    """Entry point of the script."""
    print(json.dumps(train(_parse_args(argv))), flush=True)


if __name__ == "__main__":
    main()
