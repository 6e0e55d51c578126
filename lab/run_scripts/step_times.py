"""Trains a demo model and writes how long each step took, in nanoseconds; for `lab/speed/run_overhead.py`.

With `--profile FIRST LAST` those steps run under a bare torch.profiler with record_shapes, after three of warm-up.
With `--toggle` every other block of ten steps runs without the hook on optimizer steps.

python lab/run_scripts/step_times.py --model mlp --steps 200 --out times.json
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import torch
from torch.optim.optimizer import _global_optimizer_post_hooks as hooks

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "demo"))

from models import MODELS
from training import Training, synchronize

WARMUP = 3
BLOCK = 10
GPU_BATCH_SIZES = {"resnet50": 16, "vgg16": 8, "alexnet": 32, "custom": 16}
"""So small that the CPU sets the pace, or nearly: where the GPU does, a hook's time on the CPU costs nothing."""


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", choices=sorted(MODELS), default="mlp")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--profile", type=int, nargs=2, metavar=("FIRST", "LAST"))
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--toggle", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    spec = MODELS[args.model]
    setting = spec.full if device.type == "cuda" else spec.quick
    training = Training(spec.build(setting.image_shape, spec.num_classes), device, "fp32")
    batch = GPU_BATCH_SIZES.get(args.model, setting.batch_size) if device.type == "cuda" else setting.batch_size
    batch = args.batch_size or batch
    images = torch.rand(batch, *setting.image_shape, device=device)
    labels = torch.randint(0, spec.num_classes, (batch,), device=device)
    # Without a GPU one thread does all the work, and other programs on the machine do not count.
    clock = time.perf_counter_ns if device.type == "cuda" else time.thread_time_ns
    if device.type == "cpu":
        torch.set_num_threads(1)
    profiler = None
    times = []
    all_hooks = dict(hooks)
    for step in range(args.steps):
        if args.toggle and step % BLOCK == 0:
            hooks.clear()
            if step // BLOCK % 2:
                hooks.update(all_hooks)
        if args.profile and step == args.profile[0] - WARMUP:
            schedule = torch.profiler.schedule(wait=0, warmup=WARMUP, active=args.steps)
            profiler = torch.profiler.profile(schedule=schedule, record_shapes=True)
            profiler.start()
        begun = clock()
        training.step(images, labels)
        synchronize(device)
        if profiler is not None:
            profiler.step()
        times.append(clock() - begun)
        if profiler is not None and step == args.profile[1]:
            profiler.stop()
            profiler = None
    if args.toggle and not all_hooks:
        sys.exit("--toggle: there is no hook on optimizer steps; run this under tb-dlprof run.")
    args.out.write_text(json.dumps(times))


if __name__ == "__main__":
    main()
