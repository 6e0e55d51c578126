"""Do our operator averages equal ``prof.key_averages()`` of the same profile object?

Trains the demo models for a few steps under ``torch.profiler`` (GPU if there is one, else CPU, in quick sizes), exports
the trace, analyses it, and compares calls, self and total CPU time and, on a GPU, self and total device time of every
op, annotation and runtime call. Prints a row per run and ends with 1 where anything differs by more than the tolerance.

    python lab/key_averages_agreement.py [--models lenet resnet50] [--precisions fp32 amp-fp16]

Each run is a process of its own: torch joins kernels to ops by two kinds of ids at once, and in a process that has
profiled a lot the two overlap, so that torch counts some kernels twice.

Taken out of torch's list first are the rows of the profiler's and driver's own overhead ("Command Buffer Full", "Lazy
Function Loading"): torch nests them by clock into a thread that the trace does not name, and gives each the kernels of
the call it lies in once more, so that an op that waits for a full queue counts its kernels twice.

Rows that torch adds for kernels and for annotations on the GPU timeline have no counterpart among host events and are
left out. The tolerance is 0.1 % of the time or 2 ns a call: the trace's times have nanosecond digits, and each may be
rounded once.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "demo"))

from recordings.recorder import without_overhead

from models import MODELS
from synthetic_data import make_loader
from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.metrics.averages import OperatorAverage, operator_averages
from tb_dlprof_plugin.profile_view import ProfileView
from training import PRECISIONS, Training

STEPS = 3
TOLERANCE = 1e-3
NS_PER_CALL = 2.0


def record(model: str, precision: str, device: torch.device, trace: Path) -> Any:
    """Trains a few steps and exports the trace; returns torch's own averages."""
    spec = MODELS[model]
    setting = spec.full if device.type == "cuda" else spec.quick
    torch.manual_seed(0)
    training = Training(spec.build(setting.image_shape, spec.num_classes), device, precision, False)
    loader = make_loader(
        batches=STEPS + 2,
        batch_size=setting.batch_size,
        image_shape=setting.image_shape,
        num_classes=spec.num_classes,
        workers=0,
        pin_memory=device.type == "cuda",
    )
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.type == "cuda" else [])
    with profile(activities=activities, schedule=schedule(wait=1, warmup=1, active=STEPS), record_shapes=True) as prof:
        for images, labels in loader:
            training.step(*training.to_device(images, labels))
            prof.step()
    prof.export_chrome_trace(str(trace))
    return without_overhead(prof.events()).key_averages()


def differences(torchs: Any, ours: list[OperatorAverage], device: torch.device) -> tuple[int, list[str]]:
    """Number of rows compared, and a line for each that differs."""
    mine = {row.name: row for row in ours}
    lines = []
    compared = 0
    for row in torchs:
        if row.device_type != torch.autograd.DeviceType.CPU:
            continue
        compared += 1
        own = mine.get(row.key)
        if own is None:
            lines.append(f"{row.key}: missing ({row.count} calls)")
            continue
        pairs = [
            ("cpu total", own.cpu_total_ns, row.cpu_time_total),
            ("cpu self", own.cpu_self_ns, row.self_cpu_time_total),
        ]
        if device.type == "cuda":
            pairs += [
                ("device total", own.device_total_ns or 0, row.device_time_total),
                ("device self", own.device_self_ns or 0, row.self_device_time_total),
            ]
        if own.calls != row.count:
            lines.append(f"{row.key}: {own.calls} calls, torch counts {row.count}")
        for what, ns, us in pairs:
            if abs(ns - us * 1e3) > max(TOLERANCE * us * 1e3, NS_PER_CALL * row.count):
                lines.append(f"{row.key}: {what} {ns / 1e3:.3f} us, torch has {us:.3f} us")
    return compared, lines


def compare_one(model: str, precision: str) -> int:
    """Records and compares one run; prints its row and its differences; returns the exit status."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "run.pt.trace.json"
        torchs = record(model, precision, device, trace)
        compared, lines = differences(torchs, operator_averages(ProfileView(analyze_trace(trace))), device)
    for line in lines[:20]:
        print(f"  {line}")
    print(f"{model:10} {precision:9} {compared:5} rows {len(lines):4} differ")
    return 1 if lines else 0


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description="Hold our operator averages against torch's key_averages().")
    parser.add_argument("--models", nargs="+", choices=sorted(MODELS), default=["mlp", "lenet", "resnet50", "custom"])
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=["fp32", "amp-bf16"])
    parser.add_argument("--one", nargs=2, metavar=("MODEL", "PRECISION"), help="compare one run in this process")
    args = parser.parse_args()
    if args.one:
        sys.exit(compare_one(*args.one))
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    print(f"torch {torch.__version__}, {name}", flush=True)
    runs = [(model, precision) for model in args.models for precision in args.precisions]
    statuses = [subprocess.call([sys.executable, __file__, "--one", *run]) for run in runs]
    sys.exit(1 if any(statuses) else 0)


if __name__ == "__main__":
    main()
