"""Trains each model in each precision, first timed without the profiler, then profiled; keeps event files and times.

    python -m lab.precision_pairs.record --out DIRECTORY [--subjects torchvision/resnet18 ...] [--seconds 500]

Event files go to DIRECTORY/<library>/<model>/<precision>/, the times of the unprofiled steps to
DIRECTORY/recording.json: the truth that forecasts are held to. The precisions of a subject are timed in turns, half
of the turns before the profiles and half after: a CPU that others use too is faster in one minute than in the next.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import tb_dlprof_plugin

from .subjects import BY_NAME, SUBJECTS, Subject

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "demo"))
from training import Mark, allow_tf32, synchronize

PRECISIONS = ("fp32", "tf32", "amp-fp16", "amp-bf16")
EXTRA = {
    "torchvision/resnet18": ("cast-fp16", "cast-bf16", "compile-fp32", "compile-amp-bf16"),
    "transformers/bert": ("cast-fp16", "cast-bf16", "compile-fp32", "compile-amp-bf16"),
}
"""Other ways to other precisions, of one model of each kind."""
WARMUP_STEPS = 8
TURNS = 4
TURN_S = 0.3
PROFILED_STEPS = 6


class Step:
    """One training step of a subject in a precision, from the batch in pinned memory to the update."""

    def __init__(self, subject: Subject, precision: str, device: str = "cuda") -> None:
        torch.manual_seed(0)
        self.subject, self.precision, self.device = subject, precision, torch.device(device)
        with self.device:
            model = subject.build()
        if subject.channels_last:
            model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.cast = {"cast-fp16": torch.float16, "cast-bf16": torch.bfloat16}.get(precision)
        self.model: nn.Module = model.to(self.device).train()
        if self.cast:
            self.model = self.model.to(self.cast)
        self.autocast = (
            torch.float16 if precision.endswith("amp-fp16") else torch.bfloat16 if "amp-bf16" in precision else None
        )
        self.called: Any = torch.compile(self.model) if precision.startswith("compile") else self.model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.scaler = torch.amp.GradScaler(device, enabled=precision == "amp-fp16")
        batch = subject.batch(subject.batch_size)
        self.batch = [tensor.pin_memory() for tensor in batch] if device == "cuda" else batch

    def __call__(self) -> Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        batch = [self._on_gpu(tensor) for tensor in self.batch]
        with torch.autocast(self.device.type, dtype=self.autocast, enabled=self.autocast is not None):
            loss = self.subject.loss(self.called, batch)
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def _on_gpu(self, tensor: Tensor) -> Tensor:
        moved = tensor.to(self.device, non_blocking=True)
        if self.cast and moved.is_floating_point():
            moved = moved.to(self.cast)
        if self.subject.channels_last and moved.dim() == 4:
            moved = moved.contiguous(memory_format=torch.channels_last)
        return moved


def warm_up(step: Step) -> int:
    """Runs a step some times; returns how many of them make a turn."""
    allow_tf32(step.precision == "tf32")
    for _ in range(WARMUP_STEPS):
        step()
    synchronize(step.device)
    start = time.perf_counter()
    for _ in range(5):
        step()
    synchronize(step.device)
    return max(10, int(TURN_S / ((time.perf_counter() - start) / 5)))


def turn_ms(step: Step, count: int) -> float:
    """Mean milliseconds of ``count`` steps without the profiler."""
    allow_tf32(step.precision == "tf32")
    for _ in range(3):
        step()
    synchronize(step.device)
    begin = Mark(step.device)
    for _ in range(count):
        step()
    return Mark(step.device).ms_since(begin) / count


def profiled_ms(step: Step, directory: Path) -> float:
    """Records some iterations with the hook, as a user would; returns the mean milliseconds of one."""
    device = step.device
    allow_tf32(step.precision == "tf32")
    skipped = 4
    start = stop = Mark(device)
    with tb_dlprof_plugin.profile(
        directory,
        model=step.model,
        optimizer=step.optimizer,
        batch_size=step.subject.batch_size,
        schedule={"wait": 1, "warmup": 3, "active": PROFILED_STEPS, "repeat": 1},
        run_name=f"{step.subject.name}/{step.precision}",
        keep_trace=False,
        wait=True,
    ) as prof:
        for index in range(skipped + PROFILED_STEPS):
            if index == skipped:
                start = Mark(device)
            step()
            if index == skipped + PROFILED_STEPS - 1:
                stop = Mark(device)
            prof.step()
    return stop.ms_since(start) / PROFILED_STEPS


def record(subject: Subject, precisions: Sequence[str], out: Path) -> list[dict[str, Any]]:
    """The runs of one subject; what went wrong with one is in its ``error``."""
    runs: dict[str, dict[str, Any]] = {
        precision: {"subject": subject.name, "precision": precision, "batch_size": subject.batch_size}
        for precision in precisions
    }
    steps: dict[str, Step] = {}
    counts: dict[str, int] = {}
    turns: dict[str, list[float]] = {precision: [] for precision in precisions}

    def attempt(precision: str, action: Callable[[], object]) -> None:
        if "error" not in runs[precision]:
            try:
                action()
            except Exception as error:
                runs[precision]["error"] = f"{type(error).__name__}: {error}"[:300]

    def prepare(precision: str) -> None:
        steps[precision] = Step(subject, precision)
        counts[precision] = warm_up(steps[precision])

    def take_turns(number: int) -> None:
        for _ in range(number):
            for precision in precisions:
                attempt(precision, lambda p=precision: turns[p].append(turn_ms(steps[p], counts[p])))  # type: ignore[misc]

    def profile(precision: str) -> None:
        directory = out / subject.name / precision
        directory.mkdir(parents=True, exist_ok=True)
        run = runs[precision]
        run["profiled_step_ms"] = round(profiled_ms(steps[precision], directory), 4)
        run["event_files"] = [path.name for path in sorted(directory.glob("events.out.tfevents.*"))]
        run["event_bytes"] = sum((directory / name).stat().st_size for name in run["event_files"])

    for precision in precisions:
        attempt(precision, lambda p=precision: prepare(p))  # type: ignore[misc]
    take_turns(TURNS // 2)
    for precision in precisions:
        attempt(precision, lambda p=precision: profile(p))  # type: ignore[misc]
    take_turns(TURNS - TURNS // 2)
    for precision, run in runs.items():
        if "error" not in run:
            run["unprofiled_step_ms"] = round(statistics.median(turns[precision]), 4)
            run["unprofiled_turns_ms"] = [round(value, 4) for value in turns[precision]]
    steps.clear()
    gc.collect()
    torch.cuda.empty_cache()
    torch._dynamo.reset()
    return list(runs.values())


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    names = [subject.name for subject in SUBJECTS]
    parser.add_argument("--subjects", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--precisions", nargs="+", default=None, help="default: all of a subject")
    parser.add_argument("--seconds", type=float, default=3600, help="begin no subject after about this long")
    args = parser.parse_args()
    start = time.monotonic()
    results: list[dict[str, Any]] = []
    for name in args.subjects:
        if time.monotonic() - start > args.seconds:
            print(f"{args.seconds:.0f} s are over: {name} was not begun.")
            continue
        for run in record(BY_NAME[name], args.precisions or (*PRECISIONS, *EXTRA.get(name, ())), args.out):
            results.append(run)
            print(f"{time.monotonic() - start:6.1f} s  {name + '/' + run['precision']:48} {_line(run)}", flush=True)
        _write(args.out, results)


def _line(run: dict[str, Any]) -> str:
    if "error" in run:
        return str(run["error"])
    turns = ", ".join(f"{turn:.2f}" for turn in run["unprofiled_turns_ms"])
    return f"{run['unprofiled_step_ms']:8.2f} ms ({turns})  profiled {run['profiled_step_ms']:8.2f} ms"


def _write(out: Path, results: list[dict[str, Any]]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    machine = {
        "command": "python -m lab.precision_pairs.record",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "python": sys.version.split()[0],
    }
    (out / "recording.json").write_text(json.dumps({**machine, "runs": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
